# SPDX-License-Identifier: Apache-2.0
"""GRE and both variants of GUE at the backend, frame by frame: what comes out, and what is left
alone. (What all tunnels have in common is in test_agent_program.py, and so is random damage.)

Needs root. One test:
python3 tests/e2e/test_agent_encapsulations.py EncapsulationTest.test_gre_with_flags_is_left_alone
"""

import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from agent_frames import MIXES, FrameTest, client_packet  # noqa: E402
from agent_lab import BACKEND, LB  # noqa: E402
from agent_packets import (  # noqa: E402
    CE, ECT_0, FRAGMENT, GRE, GUE_PORT, IPIP, IPV6, UDP, ethernet, ip, ip6, tunnel, udp)

KINDS = ("gre", "gue", "gue0")


def gue(payload, outer=4, port=GUE_PORT):
    """A frame with any bytes behind the outer UDP header."""
    return ethernet(ip(LB[outer], BACKEND[outer], UDP,
                       udp(LB[outer], BACKEND[outer], 50000, port, payload)))


class EncapsulationTest(FrameTest):

    def test_all_four_mixes_come_out_as_the_client_sent_them(self):
        for kind in KINDS:
            for inner, outer in MIXES:
                for vlan in (None, 7):
                    with self.subTest(kind=kind, inner=inner, outer=outer, vlan=vlan):
                        packet = client_packet(inner)
                        outside = tunnel(LB[outer], BACKEND[outer], packet, kind)
                        self.assert_comes_to(ethernet(outside, vlan=vlan),
                                             f"decapsulated_{inner}in{outer}",
                                             ethernet(packet, vlan=vlan))

    def test_a_congestion_mark_outside_goes_inside(self):
        for kind in KINDS:
            outside = tunnel(LB[6], BACKEND[6], client_packet(4, ecn=ECT_0), kind, ecn=CE)
            self.assert_comes_to(ethernet(outside), "decapsulated_4in6",
                                 ethernet(client_packet(4, ecn=CE)))
            outside = tunnel(LB[4], BACKEND[4], client_packet(6), kind, ecn=CE)
            self.assert_comes_to(ethernet(outside), "ecn_conflict")

    def test_strangers_and_other_addresses_are_left_to_the_kernel(self):
        for kind in KINDS:
            packet = client_packet(4)
            self.assert_comes_to(ethernet(tunnel("192.0.2.77", BACKEND[4], packet, kind)),
                                 "unknown_source")
            self.assert_comes_to(ethernet(tunnel(LB[4], "192.0.2.77", packet, kind)), "not_local")

    def test_gre_with_flags_is_left_alone(self):
        for flags in (0x8000, 0x2000, 0x1000, 0x0001):  # checksum, key, sequence number, version 1
            header = struct.pack("!HH", flags, 0x0800) + bytes(4)
            self.assert_comes_to(ethernet(ip(LB[4], BACKEND[4], GRE, header + client_packet(4))),
                                 "unknown_header")

    def test_gre_with_something_else_than_ip_is_left_alone(self):
        for protocol in (0x6558, 0x0806, 0):
            header = struct.pack("!HH", 0, protocol)
            self.assert_comes_to(ethernet(ip(LB[6], BACKEND[6], GRE, header + client_packet(4))),
                                 "unknown_header")

    def test_other_udp_is_other_traffic(self):
        for port in (53, GUE_PORT - 1, 4789):
            self.assert_comes_to(gue(client_packet(4), port=port), "not_tunnel")

    def test_private_data_of_gue_is_skipped(self):
        for outer in (4, 6):
            for words in (0, 1, 2, 31):
                header = struct.pack("!BBH", words, IPV6, 0) + bytes(range(4 * words))
                self.assert_comes_to(gue(header + client_packet(6), outer),
                                     f"decapsulated_6in{outer}", ethernet(client_packet(6)))

    def test_gue_of_another_form_is_left_alone(self):
        packet = client_packet(4)
        for name, payload in {
                "control message": struct.pack("!BBH", 0x20, IPIP, 0) + packet,
                "flags": struct.pack("!BBH", 0, IPIP, 0x8000) + packet,
                "another protocol": struct.pack("!BBH", 0, 6, 0) + packet,
                "version 2": struct.pack("!BBH", 0x80, IPIP, 0) + packet,
                "IP version 5": b"\x50" + packet[1:],
                "IP version 7": b"\x70" + packet[1:],
                "more words than there are": struct.pack("!BBH", 31, IPIP, 0) + packet[:100],
                "nothing": b"",
                "half a header": b"\0\4\0",
        }.items():
            with self.subTest(name):
                self.assert_comes_to(gue(payload), "unknown_header")

    def test_lengths_that_contradict_each_other(self):
        packet = client_packet(4)
        for length in (0, 7, 8 + len(packet) + 1):
            header = struct.pack("!HHHH", 50000, GUE_PORT, length, 0)
            self.assert_comes_to(ethernet(ip(LB[4], BACKEND[4], UDP, header + packet)),
                                 "outer_malformed")
        # The outer IP packet ends in the middle of the header.
        self.assert_comes_to(ethernet(ip(LB[4], BACKEND[4], GRE, b"\0\0\x08")), "outer_malformed")
        # The inner packet is longer than the UDP datagram, though not than the IP packet.
        header = struct.pack("!HHHH", 50000, GUE_PORT, 8 + len(packet) - 1, 0)
        self.assert_comes_to(ethernet(ip(LB[4], BACKEND[4], UDP, header + packet)),
                             "inner_malformed")

    def test_the_inner_version_must_be_what_the_header_says(self):
        for header in (struct.pack("!BBH", 0, IPV6, 0), struct.pack("!BBH", 0, IPIP, 0)):
            packet = client_packet(4 if header[1] == IPV6 else 6, bytes(40))
            self.assert_comes_to(gue(header + packet), "inner_malformed")
        self.assert_comes_to(
            ethernet(ip(LB[4], BACKEND[4], GRE, struct.pack("!HH", 0, 0x86DD) +
                        client_packet(4, bytes(40)))), "inner_malformed")

    def test_fragments_of_tunnel_packets_are_left_to_the_kernel(self):
        for kind in KINDS:
            outside = tunnel(LB[4], BACKEND[4], client_packet(4), kind, fragment=0x2000)
            self.assert_comes_to(ethernet(outside), "outer_fragment")
            # Only the first fragment has a port that says that it is GUE.
            outside = tunnel(LB[4], BACKEND[4], client_packet(4), kind, fragment=0x0001)
            self.assert_comes_to(ethernet(outside),
                                 "outer_fragment" if kind == "gre" else "not_tunnel")
            whole = tunnel(LB[6], BACKEND[6], client_packet(4), kind)
            for offset_and_more, outcome in ((1, "outer_fragment"),
                                             (8, "outer_fragment" if kind == "gre" else "not_tunnel")):
                header = struct.pack("!BBHI", whole[6], 0, offset_and_more, 9)
                self.assert_comes_to(
                    ethernet(ip6(LB[6], BACKEND[6], FRAGMENT, header + whole[40:])), outcome)

    def test_options_outside_do_not_hide_a_tunnel(self):
        for kind in KINDS:
            outside = tunnel(LB[4], BACKEND[4], client_packet(4), kind, options=b"\x94\x04\0\0")
            self.assert_comes_to(ethernet(outside), "outer_options")


if __name__ == "__main__":
    unittest.main()
