# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by one link, for tests of what sits on an interface: `lb`, where a
daemon runs, and `peer`, the rest of the world, from which a test sends frames of its own making.
Needs root."""

import contextlib
import ctypes
import errno
import itertools
import mmap
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import namespaces, state  # noqa: E402

_PREFIX = "hfwire"
_libc = ctypes.CDLL(None, use_errno=True)
_ETH_P_ALL = 3
_serials = itertools.count(1)


@contextlib.contextmanager
def inside(namespace: str):
    """This thread is in the namespace; sockets made here stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    target = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set_namespace(target)
        yield
    finally:
        _set_namespace(home)
        os.close(target)
        os.close(home)


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, 0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "setns")


def remove_stale() -> None:
    """What test runs left behind that were killed."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/run/netns"):
            found = re.fullmatch(rf"{_PREFIX}(\d+)-\w+", name)
            if found and state.start_time(int(found[1])) is None:
                _remove(name)


def _remove(namespace: str) -> None:
    inode = namespaces.inode(namespace)
    if inode is not None:
        namespaces.stop_processes({inode}, patience=1.0)
        namespaces.delete(namespace)


class Wire:
    """lb: eth0, 192.0.2.1/24 and 2001:db8:1::1/64. peer: p0, 192.0.2.2 and 2001:db8:1::2.
    `vips` are addresses of lb's kernel too: whatever reaches the kernel is answered, so silence
    proves that a packet did not."""

    def __init__(self, *, queues: int = 1, mtu: int = 1600, vips=()):
        remove_stale()
        serial = next(_serials)
        self.lb, self.peer = (f"{_PREFIX}{os.getpid()}-{end}{serial}" for end in ("lb", "peer"))
        try:
            self._raise(queues, mtu, vips)
        except BaseException:
            self.close()
            raise
        with inside(self.peer):
            self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.raw.bind(("p0", _ETH_P_ALL))
        self.raw.setblocking(False)
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.mac_lb = self._mac(self.lb, "eth0")
        self.mac_peer = self._mac(self.peer, "p0")

    def _raise(self, queues: int, mtu: int, vips) -> None:
        for namespace in (self.lb, self.peer):
            namespaces.add(namespace)
            namespaces.set_sysctls(namespace, namespaces.sysctls_of("lb"))
        count = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        run("ip", "link", "add", "eth0", "netns", self.lb, "mtu", str(mtu), *count, "type", "veth",
            "peer", "name", "p0", "netns", self.peer, "mtu", str(mtu), *count)
        for namespace, name, last in ((self.lb, "eth0", 1), (self.peer, "p0", 2)):
            self.ip(namespace, "link", "set", "lo", "up")
            self.ip(namespace, "link", "set", name, "up")
            self.ip(namespace, "address", "add", f"192.0.2.{last}/24", "dev", name)
            self.ip(namespace, "address", "add", f"2001:db8:1::{last}/64", "dev", name, "nodad")
            # Tags and checksums are to be in the frame, as on a real wire.
            run("ip", "netns", "exec", namespace, "ethtool", "-K", name, "tx", "off", "txvlan", "off")
        for vip in vips:
            self.ip(self.lb, "address", "add", vip, "dev", "lo", *(["nodad"] if ":" in vip else []))
            self.ip(self.peer, "route", "add", vip, "via",
                    "2001:db8:1::1" if ":" in vip else "192.0.2.1")

    def close(self) -> None:
        with contextlib.suppress(AttributeError):
            self.raw.close()
        for namespace in (self.lb, self.peer):
            _remove(namespace)

    def ip(self, namespace: str, *arguments: str) -> str:
        return run("ip", "-n", namespace, *arguments)

    def exec(self, namespace: str, *argv: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["ip", "netns", "exec", namespace, *argv], capture_output=True, text=True
        )

    def _mac(self, namespace: str, name: str) -> bytes:
        shown = self.ip(namespace, "-o", "link", "show", name)
        return bytes.fromhex(re.search(r"link/ether ([0-9a-f:]+)", shown)[1].replace(":", ""))

    def xdp_id(self) -> int:
        """Of the program on lb's eth0; 0: none."""
        found = re.search(r"prog/xdp id (\d+)", self.ip(self.lb, "-d", "link", "show", "eth0"))
        return int(found[1]) if found else 0

    def send(self, *frames: bytes) -> None:
        """Each with the addresses of this link."""
        for frame in frames:
            ready = self.mac_lb + self.mac_peer + frame[12:]
            deadline = time.monotonic() + 5
            while True:
                try:
                    self.raw.send(ready)
                    break
                except OSError as error:
                    full = error.errno in (errno.EAGAIN, errno.ENOBUFS)
                    if not full or time.monotonic() > deadline:
                        raise
                    time.sleep(0.001)

    def receive(self, wanted, count: int, seconds: float = 5.0) -> list[bytes]:
        """The frames from lb that `wanted(frame)` holds for: `count`, or those that came in
        `seconds`."""
        found: list[bytes] = []
        deadline = time.monotonic() + seconds
        while len(found) < count and (left := deadline - time.monotonic()) > 0:
            if not select.select([self.raw], [], [], left)[0]:
                break
            frame, (_, _, kind, _, _) = self.raw.recvfrom(65536)
            if kind != socket.PACKET_OUTGOING and wanted(frame):
                found.append(frame)
        return found

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.raw.recv(65536)

    def queue_counts(self) -> list[int]:
        """How many packets XDP saw on each of lb's receive queues."""
        shown = self.exec(self.lb, "ethtool", "-S", "eth0").stdout
        return [int(n) for n in re.findall(r"rx_queue_\d+_xdp_packets: (\d+)", shown)]


def run(*argv: str) -> str:
    return namespaces.run(list(argv))


class ForeignProgram:
    """Somebody else's XDP program on an interface: it passes everything."""

    def __init__(self, namespace: str, interface: str, name: str):
        bpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
        # r0 = XDP_PASS; exit
        code = struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)
        self._program = bpf.bpf_prog_load(6, name.encode(), b"GPL", code, ctypes.c_size_t(2), None)
        if self._program < 0:
            raise OSError(ctypes.get_errno(), "bpf_prog_load")
        with inside(namespace):
            index = socket.if_nametoindex(interface)
            result = bpf.bpf_xdp_attach(index, self._program, 0, None)
        if result != 0:
            raise OSError(-result, "bpf_xdp_attach")

    def close(self) -> None:
        os.close(self._program)


class ForeignSocket:
    """Another program's AF_XDP socket on a queue, without an XDP program (linux/if_xdp.h)."""

    FRAMES, FRAME = 4, 4096

    def __init__(self, namespace: str, interface: str, queue: int):
        sol_xdp, umem_reg, fill_ring, completion_ring, rx_ring = 283, 4, 5, 6, 2
        self._memory = mmap.mmap(-1, self.FRAMES * self.FRAME)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        with inside(namespace):
            self._socket = socket.socket(44, socket.SOCK_RAW)
            index = socket.if_nametoindex(interface)
        registered = struct.pack("=QQIIII", address, len(self._memory), self.FRAME, 0, 0, 0)
        self._socket.setsockopt(sol_xdp, umem_reg, registered)
        for ring in (fill_ring, completion_ring, rx_ring):
            self._socket.setsockopt(sol_xdp, ring, self.FRAMES)
        place = struct.pack("=HHIII", 44, 0, index, queue, 0)
        # Python's bind() does not know this family.
        if _libc.bind(self._socket.fileno(), place, len(place)) != 0:
            raise OSError(ctypes.get_errno(), "bind")

    def close(self) -> None:
        self._socket.close()
