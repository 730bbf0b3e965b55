# SPDX-License-Identifier: Apache-2.0
"""The independent judge: takes what the load balancer sent apart with scapy and says what is wrong
with it. It knows the RFCs and docs/, and no code of ours; every checksum is computed again."""

import dataclasses
import ipaddress
from collections.abc import Callable

import replaying as r
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import GRE, Dot1Q, Ether

IPIP_PROTOCOL = {4: 4, 6: 41}
ETHER_TYPE = {4: 0x0800, 6: 0x86DD}
MACS = {**r.BACKENDS4, **r.BACKENDS6, **r.TAGGED}
GUE_PORT = 6080


class Wrong(AssertionError):
    pass


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


@dataclasses.dataclass(frozen=True)
class Tunnelled:
    """What a frame carries, and what may differ between frames of one flow only if it must."""

    backend: str
    inner: bytes
    entropy: tuple  # source port, flow label: one for each flow
    overhead: int  # bytes before the inner packet, Ethernet not counted


def version_of(packet: bytes) -> int:
    return packet[0] >> 4


def checked_ipv4_header(packet: bytes) -> IP:
    """With the header's checksum computed again."""
    header = IP(packet[: (packet[0] & 15) * 4])
    again = header.copy()
    del again.chksum
    require(IP(bytes(again)).chksum == header.chksum, f"IPv4 header checksum {header.chksum:#x}")
    return header


def _unwrap_ipip(outer, payload: bytes, inner_version: int) -> tuple[bytes, tuple]:
    protocol = outer.proto if isinstance(outer, IP) else outer.nh
    require(protocol == IPIP_PROTOCOL[inner_version], f"IPIP protocol {protocol}")
    return payload, ()


def _unwrap_gre(outer, payload: bytes, inner_version: int) -> tuple[bytes, tuple]:
    """RFC 2784 without any option."""
    protocol = outer.proto if isinstance(outer, IP) else outer.nh
    require(protocol == 47, f"GRE protocol {protocol}")
    header = GRE(payload[:4])
    flags = header.chksum_present, header.routing_present, header.key_present, header.seqnum_present
    require(not any(flags) and header.version == 0, f"GRE flags {flags}")
    require(header.proto == ETHER_TYPE[inner_version], f"GRE type {header.proto:#x}")
    return payload[4:], ()


def _checked_udp(outer, payload: bytes) -> bytes:
    udp = UDP(payload[:8])
    require(udp.len == len(payload), f"UDP length {udp.len} of {len(payload)}")
    require(udp.dport == GUE_PORT, f"UDP port {udp.dport}")
    require(49152 <= udp.sport <= 65535, f"UDP source port {udp.sport}")
    if isinstance(outer, IP):
        require(udp.chksum == 0, "the outer UDP checksum over IPv4 is to be 0")
    else:
        pseudo = IPv6(src=outer.src, dst=outer.dst)
        zeroed = payload[:6] + b"\0\0" + payload[8:]
        expected = in6_chksum(17, pseudo, zeroed) or 0xFFFF
        require(udp.chksum == expected, f"UDP checksum {udp.chksum:#x}, not {expected:#x}")
    return payload[8:]


def _unwrap_gue(outer, payload: bytes, inner_version: int) -> tuple[bytes, tuple]:
    """draft-ietf-intarea-gue, variant 1: the IP packet itself; its version field is the variant."""
    protocol = outer.proto if isinstance(outer, IP) else outer.nh
    require(protocol == 17, f"GUE protocol {protocol}")
    inner = _checked_udp(outer, payload)
    require(version_of(inner) == inner_version, "GUE variant 1 carries an IP packet")
    return inner, (UDP(payload[:8]).sport,)


def _unwrap_gue0(outer, payload: bytes, inner_version: int) -> tuple[bytes, tuple]:
    """Variant 0: four bytes, without optional fields, before the packet."""
    protocol = outer.proto if isinstance(outer, IP) else outer.nh
    require(protocol == 17, f"GUE protocol {protocol}")
    rest = _checked_udp(outer, payload)
    require(rest[0] == 0, f"GUE version, control and header length {rest[0]:#x}")
    require(rest[1] == IPIP_PROTOCOL[inner_version], f"GUE protocol {rest[1]}")
    require(rest[2:4] == b"\0\0", "GUE flags")
    return rest[4:], (UDP(payload[:8]).sport,)


Unwrap = Callable[[IP | IPv6, bytes, int], tuple[bytes, tuple]]
UNWRAP: dict[str, Unwrap] = {
    "ipip": _unwrap_ipip,
    "gre": _unwrap_gre,
    "gue": _unwrap_gue,
    "gue0": _unwrap_gue0,
}


def take_apart(frame: bytes, encapsulation: str, inner_version: int) -> Tunnelled:
    """`frame` is a tunnelled packet as docs/configuration.md promises it. Its traffic class is for
    the caller to compare."""
    ether = Ether(frame[:14])
    require(ether.src == r.PORT_MAC, f"source MAC {ether.src}")
    at, ether_type, vlan = 14, ether.type, None
    if ether_type == 0x8100:
        tag = Dot1Q(frame[14:18])
        at, ether_type, vlan = 18, tag.type, tag.vlan
    packet = frame[at:]
    version = version_of(packet)
    require(ether_type == ETHER_TYPE.get(version), f"EtherType {ether_type:#x}")
    label: tuple = ()
    if version == 4:
        outer = checked_ipv4_header(packet)
        length, header, hops = outer.len, 20, outer.ttl
        require(outer.ihl == 5 and outer.flags == "DF" and outer.frag == 0, "outer IPv4 header")
        require(outer.src == r.SOURCE4, f"outer source {outer.src}")
    else:
        outer = IPv6(packet[:40])
        length, header, hops = 40 + outer.plen, 40, outer.hlim
        require(outer.src == r.SOURCE6, f"outer source {outer.src}")
        label = (outer.fl,)
    require(length == len(packet), f"outer length {length} of {len(packet)}")
    require(hops == 64, f"outer TTL {hops}")
    require(ether.dst == MACS.get(outer.dst), f"MAC {ether.dst} for {outer.dst}")
    require(vlan == (r.EGRESS_VLAN if outer.dst in r.TAGGED else None), f"tag {vlan}")
    inner, entropy = UNWRAP[encapsulation](outer, packet[header:], inner_version)
    return Tunnelled(outer.dst, inner, label + entropy, len(packet) - len(inner))


def traffic_class(packet: bytes) -> int:
    return packet[1] if version_of(packet) == 4 else IPv6(packet[:40]).tc


def outer_traffic_class(frame: bytes) -> int:
    return traffic_class(frame[18 if frame[12:14] == b"\x81\x00" else 14:])


def checksums_hold(packet: bytes) -> bool:
    """All of the packet itself, not of what an ICMP message quotes."""
    parsed = IP(packet) if version_of(packet) == 4 else IPv6(packet)
    again = parsed.copy()
    layer = again
    while layer and layer.name not in ("IP in ICMP", "IPv6 in ICMPv6"):
        for field in ("chksum", "cksum"):
            none = isinstance(layer, UDP) and layer.chksum == 0  # a sender need not have one
            if field in layer.fields and not none:
                delattr(layer, field)
        if isinstance(layer, ICMP) or layer.name.startswith("ICMPv6"):
            break
        layer = layer.payload
    return bytes(again) == packet


def ip_packet_of(frame: bytes) -> bytes | None:
    """The IP packet that an Ethernet frame carries, without padding, whatever its checksums and what
    is in it; None: there is none, or its length can not be."""
    at = 12 + 4 * tag_count(frame)
    kind, packet = frame[at: at + 2], frame[at + 2:]
    if kind == b"\x08\x00" and len(packet) >= 20 and version_of(packet) == 4:
        least, length = 20, int.from_bytes(packet[2:4], "big")
    elif kind == b"\x86\xdd" and len(packet) >= 40 and version_of(packet) == 6:
        least, length = 40, 40 + int.from_bytes(packet[4:6], "big")
    else:
        return None
    return packet[:length] if least <= length <= len(packet) else None


def flow_of(packet: bytes) -> tuple:
    """Of a whole TCP or UDP packet."""
    parsed = IP(packet) if version_of(packet) == 4 else IPv6(packet)
    transport = parsed.getlayer(TCP) or parsed.getlayer(UDP)
    return parsed.src, parsed.dst, transport.name, transport.sport, transport.dport


def tag_count(frame: bytes) -> int:
    at = 12
    while frame[at: at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    return (at - 12) // 4


def in_ethernet(packet: bytes) -> bytes:
    kind = ETHER_TYPE[6] if packet[:1] and packet[0] >> 4 == 6 else ETHER_TYPE[4]
    return bytes(12) + kind.to_bytes(2, "big") + packet


def address_bytes(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def destination_of(packet: bytes) -> bytes:
    return packet[16:20] if version_of(packet) == 4 else packet[24:40]
