# SPDX-License-Identifier: Apache-2.0
"""Frames for the agent's tests, as bytes, and a second opinion on what becomes of them.

The builders compute lengths and checksums; a field that a test names is taken as it is, right or
wrong. Judge is decapsulation written a second time, slowly and from the RFCs, so that random frames
can be compared with the program.
"""

import ipaddress
import struct

IPIP, TCP, UDP, IPV6, FRAGMENT, GRE, ICMP, ICMPV6 = 4, 6, 17, 41, 44, 47, 1, 58
GUE_PORT = 6080
KINDS = ("ipip", "gre", "gue", "gue0")
BACKEND_MAC, OTHER_MAC = bytes.fromhex("020000000002"), bytes.fromhex("020000000001")
NOT_ECT, ECT_1, ECT_0, CE = 0, 1, 2, 3


def checksum(data):
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def family(address):
    return ipaddress.ip_address(address).version


def packed(address):
    return ipaddress.ip_address(address).packed


def ip4(source, destination, protocol, payload, *, ecn=0, version=4, words=None, options=b"",
        total=None, fragment=0):
    """`words`: header length in 32-bit words. `fragment`: flags and offset, 16 bits."""
    words = 5 + len(options) // 4 if words is None else words
    total = 20 + len(options) + len(payload) if total is None else total
    header = struct.pack("!BBHHHBBH4s4s", version << 4 | words, ecn, total, 0x1234, fragment, 64,
                         protocol, 0, packed(source), packed(destination)) + options
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def ip6(source, destination, next_header, payload, *, ecn=0, version=6, length=None):
    length = len(payload) if length is None else length
    first_word = version << 28 | ecn << 20 | 0xABCDE
    return struct.pack("!IHBB16s16s", first_word, length, next_header, 64, packed(source),
                       packed(destination)) + payload


def ip(source, destination, protocol, payload, **fields):
    return (ip4 if family(source) == 4 else ip6)(source, destination, protocol, payload, **fields)


def udp(source, destination, sport, dport, payload):
    """Also the outer header of GUE; a load balancer leaves the checksum out over IPv4."""
    header = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0)
    pseudo = packed(source) + packed(destination) + struct.pack("!II", 8 + len(payload), UDP)
    value = checksum(pseudo + header + payload) or 0xFFFF
    return header[:6] + struct.pack("!H", value) + payload


def udp_packet(source, destination, sport, dport, payload, **fields):
    return ip(source, destination, UDP, udp(source, destination, sport, dport, payload), **fields)


def ethernet(packet, *, vlan=None, kind=None, destination=BACKEND_MAC):
    """`kind`: EtherType; by default told from the packet's version."""
    kind = {4: 0x0800, 6: 0x86DD}[packet[0] >> 4] if kind is None else kind
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    return destination + OTHER_MAC + tag + struct.pack("!H", kind) + packet


def tunnel(lb, backend, packet, kind="ipip", **fields):
    """A tunnel packet of any mix. Fields are those of the outer header."""
    protocol = IPIP if packet[0] >> 4 == 4 else IPV6
    if kind == "gre":
        packet = struct.pack("!HH", 0, 0x0800 if protocol == IPIP else 0x86DD) + packet
        protocol = GRE
    elif kind != "ipip":
        if kind == "gue0":
            packet = struct.pack("!BBH", 0, protocol, 0) + packet
        packet = udp(lb, backend, 50000, GUE_PORT, packet)
        protocol = UDP
    return ip(lb, backend, protocol, packet, **fields)


def set_ecn(packet, ecn):
    """The packet with other ECN bits. An IPv4 checksum is corrected by the difference (RFC 1624),
    so a wrong one stays wrong."""
    if packet[0] >> 4 == 6:
        return packet[:1] + bytes([packet[1] & ~0x30 | ecn << 4]) + packet[2:]
    changed = packet[:1] + bytes([packet[1] & ~3 | ecn]) + packet[2:]
    old, new = (struct.unpack("!H", one[:2])[0] for one in (packet, changed))
    total = (~struct.unpack("!H", packet[10:12])[0] & 0xFFFF) + (~old & 0xFFFF) + new
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return changed[:10] + struct.pack("!H", ~total & 0xFFFF) + changed[12:]


def ecn_of(packet):
    return packet[1] & 3 if packet[0] >> 4 == 4 else packet[1] >> 4 & 3


# RFC 6040 figure 4: what the inner packet carries on, by (inner, outer); None: dropped.
ECN_TABLE = {
    (NOT_ECT, NOT_ECT): NOT_ECT, (NOT_ECT, ECT_0): NOT_ECT,
    (NOT_ECT, ECT_1): NOT_ECT, (NOT_ECT, CE): None,
    (ECT_0, NOT_ECT): ECT_0, (ECT_0, ECT_0): ECT_0, (ECT_0, ECT_1): ECT_1, (ECT_0, CE): CE,
    (ECT_1, NOT_ECT): ECT_1, (ECT_1, ECT_0): ECT_1, (ECT_1, ECT_1): ECT_1, (ECT_1, CE): CE,
    (CE, NOT_ECT): CE, (CE, ECT_0): CE, (CE, ECT_1): CE, (CE, CE): CE,
}


class Judge:
    """What must become of a frame, given what the agent was told (addresses as text)."""

    def __init__(self, vips, lbs, locals_):
        self.vips = {ipaddress.ip_address(vip) for vip in vips}
        self.lbs = [ipaddress.ip_network(lb) for lb in lbs]
        self.locals = {ipaddress.ip_address(local) for local in locals_}

    def __call__(self, frame):
        """(outcome, the frame that the kernel gets, or None if it is dropped)."""
        outcome, stripped = self._judge(frame)
        if outcome in ("inner_malformed", "not_vip", "ecn_conflict"):
            return outcome, None
        return outcome, frame if stripped is None else stripped

    def _judge(self, frame):
        kind, start = frame[12:14], 14
        if kind in (b"\x81\x00", b"\x88\xa8"):
            kind, start = frame[16:18], 18
        packet = frame[start:]
        if kind == b"\x08\x00" and len(packet) >= 20:
            outer, protocol, size = 4, packet[9], 20
            source, destination = (ipaddress.IPv4Address(packet[at:at + 4]) for at in (12, 16))
            length = struct.unpack("!H", packet[2:4])[0]
            words = packet[0] & 15
            sound = packet[0] >> 4 == 4 and words >= 5 and 4 * words <= length <= len(packet)
            fragment = struct.unpack("!H", packet[6:8])[0]
            fragmented, later = fragment & 0x3FFF != 0, fragment & 0x1FFF != 0
        elif kind == b"\x86\xdd" and len(packet) >= 40:
            outer, protocol, size, words = 6, packet[6], 40, 5
            source, destination = (ipaddress.IPv6Address(packet[at:at + 16]) for at in (8, 24))
            length = 40 + struct.unpack("!H", packet[4:6])[0]
            sound = packet[0] >> 4 == 6 and length <= len(packet)
            fragmented = protocol == FRAGMENT and len(packet) >= 48
            later = fragmented and struct.unpack("!H", packet[42:44])[0] & 0xFFF8 != 0
            if fragmented:
                protocol = packet[40]
        else:
            return "not_tunnel", None
        if protocol == UDP:
            header = packet[48 if outer == 6 and fragmented else 4 * words if outer == 4 else 40:]
            if later or len(header) < 8 or header[2:4] != struct.pack("!H", GUE_PORT):
                return "not_tunnel", None
        elif protocol not in (IPIP, IPV6, GRE):
            return "not_tunnel", None
        if destination not in self.locals:
            return "not_local", None
        if not any(source in lb for lb in self.lbs if lb.version == source.version):
            return "unknown_source", None
        if not sound:
            return "outer_malformed", None
        if fragmented:
            return "outer_fragment", None
        if words != 5:
            return "outer_options", None
        wanted, skipped, end = self._read_header(protocol, packet[size:length])
        if wanted not in (4, 6):
            return wanted, None
        return self._judge_inner(frame[:start], outer, ecn_of(packet), wanted,
                                 packet[size + skipped:size + end], packet[size + skipped:])

    @staticmethod
    def _read_header(protocol, payload):
        """(inner version, where the inner packet starts, where it ends at the latest), or (the
        outcome, None, None)."""
        if protocol in (IPIP, IPV6):
            return 4 if protocol == IPIP else 6, 0, len(payload)
        if len(payload) < (4 if protocol == GRE else 8):
            return "outer_malformed", None, None
        if protocol == GRE:
            inner = {b"\0\0\x08\0": 4, b"\0\0\x86\xdd": 6}.get(payload[:4], "unknown_header")
            return inner, 4, len(payload)
        end = struct.unpack("!H", payload[4:6])[0]
        if not 8 <= end <= len(payload):
            return "outer_malformed", None, None
        header = payload[8:end]
        if len(header) < 4:
            return "unknown_header", None, None
        if header[0] >> 4 in (4, 6):
            return header[0] >> 4, 8, end
        words = header[0] & 0x1F
        if header[0] >> 5 or header[2:4] != b"\0\0" or len(header) < 4 + 4 * words:
            return "unknown_header", None, None
        return {IPIP: 4, IPV6: 6}.get(header[1], "unknown_header"), 12 + 4 * words, end

    def _judge_inner(self, link, outer, outer_ecn, wanted, inner, rest):
        """`rest`: the inner packet with the padding that may follow it in the frame."""
        size = 20 if wanted == 4 else 40
        if len(inner) < size or inner[0] >> 4 != wanted:
            return "inner_malformed", None
        if wanted == 4:
            length, words = struct.unpack("!H", inner[2:4])[0], inner[0] & 15
            if words < 5 or not 4 * words <= length <= len(inner):
                return "inner_malformed", None
            destination = ipaddress.IPv4Address(inner[16:20])
        else:
            if 40 + struct.unpack("!H", inner[4:6])[0] > len(inner):
                return "inner_malformed", None
            destination = ipaddress.IPv6Address(inner[24:40])
        if destination not in self.vips:
            return "not_vip", None
        ecn = ECN_TABLE[ecn_of(inner), outer_ecn]
        if ecn is None:
            return "ecn_conflict", None
        if ecn != ecn_of(inner):
            rest = set_ecn(rest, ecn)
        kind = b"\x08\x00" if wanted == 4 else b"\x86\xdd"
        return f"decapsulated_{wanted}in{outer}", link[:-2] + kind + rest
