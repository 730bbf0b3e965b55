# SPDX-License-Identifier: Apache-2.0
"""The judge of what a VIP says itself, and of packets that come in several pieces: see judge.py."""

import judge
from judge import require
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6PacketTooBig, IPv6


def check_answer(asked: bytes, frame: bytes) -> IP | IPv6:
    """`frame` may be an answer to the frame `asked`: back the way it came, from its destination to
    its source, with good checksums, no longer than allowed, and quoting nothing else. The answer's
    IP packet, dissected."""
    require(frame[:12] == asked[6:12] + asked[:6], "MAC addresses are not turned around")
    end = 12 + 4 * judge.tag_count(asked)
    require(frame[12:end] == asked[12:end], "other tags than it came with")
    question, packet = judge.ip_packet_of(asked), judge.ip_packet_of(frame)
    require(question is not None and packet is not None, "no IP packet")
    require(len(frame) == end + 2 + len(packet), "bytes behind the packet")
    v4 = judge.version_of(packet) == 4
    require(judge.version_of(question) == judge.version_of(packet), "another family")
    if v4:
        require(packet[12:20] == question[16:20] + question[12:16], "addresses not turned around")
        judge.checked_ipv4_header(packet)
    else:
        require(packet[8:40] == question[24:40] + question[8:24], "addresses not turned around")
    # An echo's checksum is carried over, so that a damaged request comes back damaged.
    require(judge.checksums_hold(packet) or (is_echo_reply(packet) and not icmp_holds(question)),
            "a checksum is wrong")
    answer = IP(packet) if v4 else IPv6(packet)
    if TCP in answer and answer.payload.name == "TCP":
        require("R" in answer[TCP].flags and len(answer[TCP]) == 20, "no reset")
        return answer
    quote = quote_of(packet)
    if quote is not None:
        require(len(packet) <= (576 if v4 else 1280), f"an error of {len(packet)} bytes")
        require(question.startswith(quote), "quotes what was not sent")
        # As much as may be: QUIC, for one, needs more than ports.
        require(len(quote) == len(question) or len(packet) >= (569 if v4 else 1273), "quotes little")
    else:
        echo = answer.payload
        kind = (echo.type, echo.code) == (0, 0) if v4 else isinstance(echo, ICMPv6EchoReply)
        require(kind, f"neither error, echo reply nor reset: {answer.summary()}")
    return answer


def is_echo_reply(packet: bytes) -> bool:
    if judge.version_of(packet) == 4:
        return packet[9] == 1 and packet[20:22] == b"\0\0"
    return packet[6] == 58 and packet[40:42] == b"\x81\0"


def icmp_holds(packet: bytes) -> bool:
    """The checksum of an ICMP message, whatever headers are before it, by RFC 1071 and RFC 4443 2.3:
    of what scapy takes it for."""
    parsed = IP(packet) if judge.version_of(packet) == 4 else IPv6(packet)
    again = parsed.copy()
    layer = again.payload
    while layer and not (isinstance(layer, ICMP) or layer.name.startswith("ICMPv6")):
        layer = layer.payload
    for field in ("chksum", "cksum"):
        if layer and field in layer.fields:
            delattr(layer, field)
    return bool(layer) and bytes(again) == packet


def quote_of(packet: bytes) -> bytes | None:
    """What an ICMP error quotes; None: it is none that a VIP may send."""
    if judge.version_of(packet) == 4:
        return packet[28:] if packet[9] == 1 and packet[20] == 3 and packet[21] in (3, 4) else None
    return packet[48:] if packet[6] == 58 and (packet[40] == 2 or packet[40:42] == b"\1\4") else None


def mtu_told(answer: IP | IPv6) -> int | None:
    """Of frag-needed or Packet Too Big."""
    if ICMPv6PacketTooBig in answer:
        return answer[ICMPv6PacketTooBig].mtu
    if isinstance(answer, IP) and answer.proto == 1:
        icmp = answer[ICMP]
        return icmp.nexthopmtu if (icmp.type, icmp.code) == (3, 4) else None
    return None


def is_port_unreachable(answer: IP | IPv6) -> bool:
    if ICMPv6DestUnreach in answer:
        return answer[ICMPv6DestUnreach].code == 4
    if not isinstance(answer, IP) or answer.proto != 1:
        return False
    return (answer[ICMP].type, answer[ICMP].code) == (3, 3)


def check_fragments(original: bytes, pieces: list[bytes], most: int) -> None:
    """`pieces` are the IPv4 packet `original` in fragments of at most `most` bytes, as RFC 791 makes
    them: together they have its payload and nothing else, and each has its header but for what a
    fragment's must differ in. `original` may be a fragment itself."""
    whole = IP(original)
    end = at = whole.frag * 8
    for number, piece in enumerate(pieces):
        header = judge.checked_ipv4_header(piece)
        data = piece[header.ihl * 4:]
        require(header.len == len(piece) <= most, f"fragment of {len(piece)} bytes")
        require(header.frag * 8 == end, f"fragment at {header.frag * 8}, not {end}")
        end += len(data)
        last = number == len(pieces) - 1
        more = bool(header.flags & 1)
        require(more == (not last or bool(whole.flags & 1)), "more fragments")
        require(last or len(data) % 8 == 0, "a middle fragment's length")
        for field in ("version", "tos", "id", "ttl", "proto", "src", "dst"):
            require(getattr(header, field) == getattr(whole, field), f"{field} of a fragment")
        require(not header.flags & 2, "DF on a fragment")
        copied = [option for option in whole.options if option.copy_flag]
        if number == 0:
            require(bytes(piece[20: header.ihl * 4]) == original[20: whole.ihl * 4], "its options")
        else:
            require([bytes(o) for o in header.options if o.option not in (0, 1)]
                    == [bytes(o) for o in copied if o.option not in (0, 1)], "its copied options")
    joined = b"".join(piece[(piece[0] & 15) * 4:] for piece in pieces)
    require(joined == original[whole.ihl * 4:] and end == at + len(joined), "its payload")
