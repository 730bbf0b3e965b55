# SPDX-License-Identifier: Apache-2.0
"""Packets for VIPs, built by scapy: all that a client may send and a load balancer must carry
unchanged. Each function returns IP packets."""

import replaying as r
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR, IPOption_Timestamp
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

ROUTER4, ROUTER6 = "198.18.7.1", "2001:db8:77::1"
TCP_OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None), ("WScale", 7)]
# RFC 4302: next header and length are filled in by with_authentication().
AUTHENTICATION = bytes.fromhex("0000 0000 00001234 00000001") + bytes(12)


def client(number: int, version: int) -> str:
    return f"198.51.100.{number % 250 + 1}" if version == 4 else f"2001:db8:99::{number + 1:x}"


def network(number: int, version: int, vip: str | None = None, **fields):
    """The IP layer of a client's packet. `fields` as IPv4 calls them: tos, flags, id."""
    if version == 4:
        return IP(src=client(number, 4), dst=vip or r.VIP4, **fields)
    return IPv6(src=client(number, 6), dst=vip or r.VIP6, tc=fields.get("tos", 0), fl=number)


def port_of(number: int) -> int:
    return 1024 + number * 7 % 60000


def syn(number: int, version: int, port: int = 80, **fields):
    return network(number, version, **fields) / TCP(
        sport=port_of(number), dport=port, flags="S", seq=number, options=TCP_OPTIONS)


def segment(number: int, version: int, port: int = 80, size: int = 100, **fields):
    return network(number, version, **fields) / TCP(
        sport=port_of(number), dport=port, flags="PA", seq=number, ack=1) / bytes(
            (number + i) % 256 for i in range(size))


def datagram(number: int, version: int, port: int = 53, size: int = 40, **fields):
    return network(number, version, **fields) / UDP(sport=port_of(number), dport=port) / bytes(
        (number * 3 + i) % 256 for i in range(size))


def ping(number: int, version: int, size: int = 56):
    echo = ICMP(type=8, id=number, seq=3) if version == 4 else ICMPv6EchoRequest(id=number, seq=3)
    return network(number, version) / echo / bytes(i % 256 for i in range(size))


def without_checksum(number: int, port: int = 53):
    return network(number, 4) / UDP(sport=port_of(number), dport=port, chksum=0) / b"no checksum"


def with_options(number: int, port: int = 80):
    """IPv4 options, RFC 791."""
    layer = TCP(sport=port_of(number), dport=port, flags="S")
    for options in ([IPOption_NOP()], [IPOption_RR(length=11, routers=["0.0.0.0", "0.0.0.0"])],
                    [IPOption_Timestamp()], [IPOption_NOP()] * 40):
        yield network(number, 4, options=options) / layer


def with_extensions(number: int, port: int = 80):
    """IPv6 extension headers, RFC 8200; the fragment is an atomic one (RFC 6946)."""
    layer = TCP(sport=port_of(number), dport=port, flags="S")
    hop_by_hop = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])
    destination = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 12)])
    routing = IPv6ExtHdrRouting(type=4, segleft=0, addresses=[r.VIP6])
    atomic = IPv6ExtHdrFragment(offset=0, m=0, id=number)
    for chain in (hop_by_hop, destination, routing, atomic, hop_by_hop / destination / routing,
                  hop_by_hop / routing / atomic / destination):
        yield network(number, 6) / chain / layer
    yield with_authentication(network(number, 6), layer)


def with_authentication(ip, layer):
    """AH in transport mode over IPv6. Checksums as without it."""
    plain = bytes(ip / layer)
    header = bytes([6, len(AUTHENTICATION) // 4 - 2]) + AUTHENTICATION[2:]
    return IPv6(plain[:4] + (len(plain) - 40 + len(header)).to_bytes(2, "big") + b"\x33" + plain[7:40]
                + header + plain[40:])


def all_kinds(first: int = 0):
    """Some of everything, of both families, for services on both pools: (IP packet, port of TCP or
    UDP). `first`: the number of the first client."""
    number = first
    for version in (4, 6):
        for port in (80, 443):
            for make in (syn, segment):
                for _ in range(4):
                    yield make(number, version, port)
                    number += 1
            for size in (0, 1, 2, 7, 1399, 1400):
                yield segment(number, version, port, size)
                number += 1
        for port in (53, 443, 7):
            for size in (0, 1, 2, 512, 1201):
                yield datagram(number, version, port, size)
                number += 1
        for tos in (*range(4), 0xB8, 0xBB, 0xFC, 0xFF):  # ECN; DSCP EF; all
            yield segment(number, version, tos=tos)
            yield datagram(number, version, port=443, tos=tos)
            number += 1
    for port in (53, 443, 7):
        yield without_checksum(number, port)
        number += 1
    for flags in ("", "DF"):
        yield segment(number, 4, flags=flags, id=number)
        number += 1
    for port in (80, 443):
        yield from with_options(number, port)
        yield from with_extensions(number + 1, port)
        number += 2


def pieces_of(packet, size: int, number: int) -> list[bytes]:
    """The packet's IP fragments with at most `size` bytes of payload each, as its sender would make
    them; `size` is a multiple of 8."""
    whole = bytes(packet)
    if whole[0] >> 4 == 4:
        header, payload = packet.copy(), whole[20:]
        header.remove_payload()

        def piece(at: int, data: bytes, more: bool) -> bytes:
            return bytes(IP(src=header.src, dst=header.dst, id=number, proto=whole[9],
                            flags="MF" if more else "", frag=at // 8) / data)
    else:
        payload = whole[40:]

        def piece(at: int, data: bytes, more: bool) -> bytes:
            return bytes(IPv6(src=packet.src, dst=packet.dst) / IPv6ExtHdrFragment(
                nh=whole[6], offset=at // 8, m=int(more), id=number) / data)
    return [piece(at, payload[at: at + size], at + size < len(payload))
            for at in range(0, len(payload), size)]


def packet_of(piece: bytes):
    return IP(piece) if piece[0] >> 4 == 4 else IPv6(piece)


def frame(packet) -> Ether:
    return Ether(src="02:00:00:00:99:01", dst=r.PORT_MAC) / packet


def tagged(packet) -> Ether:
    return Ether(src="02:00:00:00:99:01", dst=r.PORT_MAC) / Dot1Q(vlan=5, prio=3) / packet


def double_tagged(packet) -> Ether:
    return Ether(src="02:00:00:00:99:01", dst=r.PORT_MAC) / Dot1AD(vlan=5) / Dot1Q(vlan=6) / packet


def padded(packet) -> bytes:
    return bytes(frame(packet)) + b"\xee" * 40


def errors_about(number: int, version: int, port: int = 80, transport=TCP):
    """ICMP errors of routers about what a backend sent to the client of that number: the quote has
    the flow's ports, but from the other side."""
    if version == 4:
        quote = IP(src=r.VIP4, dst=client(number, 4), flags="DF", ttl=60) / transport(
            sport=port, dport=port_of(number)) / bytes(100)
        quotes = (bytes(quote)[:28], bytes(quote)[:-90], bytes(quote))  # 8 bytes of transport; more
        for kind, code in ((3, 4), (3, 1), (3, 3), (11, 0), (11, 1), (12, 0)):
            for quoted in quotes:
                yield IP(src=ROUTER4, dst=r.VIP4) / ICMP(type=kind, code=code,
                                                         nexthopmtu=1400 if code == 4 else 0) / quoted
        return
    plain = IPv6(src=r.VIP6, dst=client(number, 6)) / transport(sport=port, dport=port_of(number))
    extended = IPv6(src=r.VIP6, dst=client(number, 6)) / IPv6ExtHdrDestOpt() / transport(
        sport=port, dport=port_of(number))
    for quote in (plain / bytes(1100), extended / bytes(300)):
        for error in (ICMPv6PacketTooBig(mtu=1400), ICMPv6DestUnreach(code=0),
                      ICMPv6TimeExceeded(code=0), ICMPv6ParamProblem(code=1)):
            yield IPv6(src=ROUTER6, dst=r.VIP6) / error / bytes(quote)
