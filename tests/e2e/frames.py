# SPDX-License-Identifier: Apache-2.0
"""Ethernet frames built with struct, taken apart again, and pcap files of them. On purpose apart
from the C++ code under test: two readings of the RFCs that must agree."""

import dataclasses
import ipaddress
import struct
from pathlib import Path

CLIENT_MAC = bytes.fromhex("020000000001")
LB_MAC = bytes.fromhex("020000000002")

IPV4, IPV6, VLAN, ARP = 0x0800, 0x86DD, 0x8100, 0x0806
ICMP, IPIP, TCP, UDP, IP6IP, FRAGMENT, ICMP6 = 1, 4, 6, 17, 41, 44, 58
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


def checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(payload: bytes, ether_type: int, vlans: tuple[int, ...] = ()) -> bytes:
    head = LB_MAC + CLIENT_MAC
    for vlan in vlans:
        head += struct.pack("!HH", VLAN, vlan)
    return head + struct.pack("!H", ether_type) + payload


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def ip(source: str, destination: str, protocol: int, payload: bytes, **fields) -> bytes:
    """An IPv4 or IPv6 packet, by the addresses. `fields`: traffic_class, ttl; for IPv4 also
    identification and fragment (the 16 bits of flags and offset)."""
    if ":" in destination:
        first = 6 << 28 | fields.get("traffic_class", 0) << 20
        head = struct.pack("!IHBB", first, len(payload), protocol, fields.get("ttl", 61))
        return head + _packed(source) + _packed(destination) + payload
    head = struct.pack(
        "!BBHHHBBH",
        0x45,
        fields.get("traffic_class", 0),
        20 + len(payload),
        fields.get("identification", 0),
        fields.get("fragment", 0x4000),
        fields.get("ttl", 61),
        protocol,
        0,
    )
    head += _packed(source) + _packed(destination)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def _with_checksum(source: str, destination: str, protocol: int, segment: bytes, at: int) -> bytes:
    pseudo = _packed(source) + _packed(destination) + struct.pack("!II", len(segment), protocol)
    return segment[:at] + struct.pack("!H", checksum(pseudo + segment)) + segment[at + 2 :]


def tcp(source: tuple[str, int], destination: tuple[str, int], flags: int, data=b"", **ip_fields):
    segment = struct.pack("!HHIIBBHHH", source[1], destination[1], 1, 1, 0x50, flags, 65535, 0, 0)
    segment = _with_checksum(source[0], destination[0], TCP, segment + data, 16)
    return ip(source[0], destination[0], TCP, segment, **ip_fields)


def udp(source: tuple[str, int], destination: tuple[str, int], data=b"", **ip_fields) -> bytes:
    segment = struct.pack("!HHHH", source[1], destination[1], 8 + len(data), 0) + data
    segment = _with_checksum(source[0], destination[0], UDP, segment, 6)
    return ip(source[0], destination[0], UDP, segment, **ip_fields)


def _icmp(source: str, destination: str, message: bytes) -> bytes:
    """`message` with a checksum of zero."""
    if ":" in destination:
        return ip(source, destination, ICMP6, _with_checksum(source, destination, ICMP6, message, 2))
    message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    return ip(source, destination, ICMP, message)


def echo(source: str, destination: str) -> bytes:
    """An echo request (ping)."""
    kind = 128 if ":" in destination else 8
    return _icmp(source, destination, struct.pack("!BBHHH", kind, 0, 0, 7, 1) + bytes(32))


def icmp_too_big(source: str, destination: str, mtu: int, quoted: bytes) -> bytes:
    """RFC 1191 / RFC 4443 3.2: a router on the way to the client says that `quoted` was too long."""
    if ":" in destination:
        return _icmp(source, destination, struct.pack("!BBHI", 2, 0, 0, mtu) + quoted)
    return _icmp(source, destination, struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + quoted)


def frame_of(packet: bytes, vlans: tuple[int, ...] = ()) -> bytes:
    return ethernet(packet, IPV4 if packet[0] >> 4 == 4 else IPV6, vlans)


@dataclasses.dataclass(frozen=True)
class Tunnelled:
    """A frame as the load balancer sends it."""

    destination_mac: bytes
    source_mac: bytes
    vlan: int | None
    source: str
    destination: str
    protocol: int
    traffic_class: int
    ttl: int
    dont_fragment: bool
    checksum_ok: bool
    inner: bytes
    rest: bytes  # behind the outer packet: there should be nothing


def take_apart(frame: bytes) -> Tunnelled:
    (ether_type,) = struct.unpack_from("!H", frame, 12)
    at, vlan = 14, None
    if ether_type == VLAN:
        vlan, ether_type = struct.unpack_from("!HH", frame, 14)
        at = 18
    outer = frame[at:]
    common = {"destination_mac": frame[:6], "source_mac": frame[6:12], "vlan": vlan}
    if ether_type == IPV4:
        length, flags = struct.unpack_from("!2xH2xH", outer)
        return Tunnelled(
            **common,
            source=str(ipaddress.ip_address(outer[12:16])),
            destination=str(ipaddress.ip_address(outer[16:20])),
            protocol=outer[9],
            traffic_class=outer[1],
            ttl=outer[8],
            dont_fragment=bool(flags & 0x4000),
            checksum_ok=checksum(outer[:20]) == 0 and outer[0] == 0x45,
            inner=outer[20:length],
            rest=outer[length:],
        )
    if ether_type == IPV6:
        first, length = struct.unpack_from("!IH", outer)
        return Tunnelled(
            **common,
            source=str(ipaddress.ip_address(outer[8:24])),
            destination=str(ipaddress.ip_address(outer[24:40])),
            protocol=outer[6],
            traffic_class=first >> 20 & 0xFF,
            ttl=outer[7],
            dont_fragment=True,
            checksum_ok=first >> 28 == 6,
            inner=outer[40 : 40 + length],
            rest=outer[40 + length :],
        )
    raise ValueError(f"neither IPv4 nor IPv6: EtherType {ether_type:#06x}")


def write_pcap(path: Path, frames: list[bytes]) -> None:
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


def read_pcap(path: Path) -> list[bytes]:
    """The whole frames so far; the file may still be written."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    frames, at = [], 24
    while at + 16 <= len(data):
        captured, original = struct.unpack_from("<8xII", data, at)
        if at + 16 + captured > len(data):
            break
        if captured != original:
            raise ValueError(f"{path}: a frame of {original} bytes was cut to {captured}")
        frames.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
    return frames
