# SPDX-License-Identifier: Apache-2.0
"""The bpf() system call, so that tests can run the attached program on a frame of theirs."""

import ctypes
import os
import platform
import struct

PROG_LOAD, OBJ_GET, PROG_TEST_RUN = 5, 7, 10
PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD, LINK_CREATE = 13, 15, 28
SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
XDP_DROP, XDP_PASS, XDP_TYPE, XDP_ATTACH = 1, 2, 6, 37

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    """`attributes`: a struct of union bpf_attr. Returns the result, and the struct afterwards."""
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    result = libc.syscall(SYSCALL, command, buffer, len(attributes))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf({command}): {os.strerror(error)}")
    return result, buffer.raw


def address_of(buffer):
    return ctypes.addressof(buffer)


class Program:
    """The program behind a pinned link."""

    def __init__(self, link_path):
        path = ctypes.create_string_buffer(os.fsencode(link_path))
        link, _ = bpf(OBJ_GET, struct.pack("QII", address_of(path), 0, 0))
        info = ctypes.create_string_buffer(128)
        bpf(OBJ_GET_INFO_BY_FD, struct.pack("IIQ", link, len(info), address_of(info)))
        self.number = struct.unpack_from("III", info)[2]  # type, id, prog_id
        os.close(link)
        self.fd, _ = bpf(PROG_GET_FD_BY_ID, struct.pack("III", self.number, 0, 0))
        self.out = ctypes.create_string_buffer(70000)

    def close(self):
        os.close(self.fd)

    def run(self, frame, linear=None, repeat=1):
        """(verdict, frame afterwards, nanoseconds a run). `linear`: bytes in the first buffer."""
        data = ctypes.create_string_buffer(frame, len(frame))
        context = ctypes.create_string_buffer(struct.pack("IIIIII", 0, linear or 0, 0, 0, 0, 0), 24)
        _, after = bpf(PROG_TEST_RUN, struct.pack(
            "IIIIQQIIIIQQ", self.fd, 0, len(frame), len(self.out), address_of(data),
            address_of(self.out), repeat, 0, 24 if linear else 0, 0,
            address_of(context) if linear else 0, 0))
        _, verdict, _, size, _, _, _, duration = struct.unpack_from("IIIIQQII", after)
        return verdict, self.out.raw[:size], duration


def load_passing_program():
    """An XDP program of somebody else, which lets everything pass."""
    code = ctypes.create_string_buffer(  # r0 = XDP_PASS; exit
        struct.pack("<BBhiBBhi", 0xB7, 0, 0, XDP_PASS, 0x95, 0, 0, 0), 16)
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("IIQQIIQII16s", XDP_TYPE, 2, address_of(code), address_of(licence),
                             0, 0, 0, 0, 0, b"somebody_else")
    return bpf(PROG_LOAD, attributes)[0]


def attach_with_link(program, interface_index):
    return bpf(LINK_CREATE, struct.pack("IIII", program, interface_index, XDP_ATTACH, 0))[0]
