# SPDX-License-Identifier: Apache-2.0
"""The decapsulation program, frame by frame: BPF_PROG_TEST_RUN over good, odd and hostile ones.

Needs root. One test:
python3 tests/e2e/test_agent_program.py ProgramTest.test_the_ecn_table_of_rfc_6040
"""

import collections
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from agent_bpf import XDP_DROP, XDP_PASS  # noqa: E402
from agent_frames import MIXES, FrameTest, client_packet  # noqa: E402
from agent_lab import BACKEND, CLIENT, LB, VIP  # noqa: E402
from agent_packets import (  # noqa: E402
    CE, ECN_TABLE, FRAGMENT, ICMP, IPIP, IPV6, KINDS, TCP, ethernet, ip, ip4, ip6, packed, set_ecn,
    tunnel, udp_packet)

SEED = 20  # of the random frames; any number must do


class ProgramTest(FrameTest):

    def test_all_four_mixes_come_out_as_the_client_sent_them(self):
        for inner, outer in MIXES:
            for vlan in (None, 7):
                with self.subTest(inner=inner, outer=outer, vlan=vlan):
                    packet = client_packet(inner)
                    self.assert_comes_to(
                        ethernet(tunnel(LB[outer], BACKEND[outer], packet), vlan=vlan),
                        f"decapsulated_{inner}in{outer}", ethernet(packet, vlan=vlan))

    def test_padding_of_a_short_frame_is_no_part_of_the_packet_and_does_no_harm(self):
        packet = client_packet(4, b"")
        frame = ethernet(tunnel(LB[4], BACKEND[4], packet))
        self.assert_comes_to(frame + bytes(60 - len(frame) + 20), "decapsulated_4in4",
                             ethernet(packet) + bytes(60 - len(frame) + 20))

    def test_other_traffic_is_left_alone(self):
        for name, frame in {
                "plain": ethernet(client_packet(4)),
                "plain v6": ethernet(client_packet(6)),
                "ARP": ethernet(bytes(28), kind=0x0806),
                "two tags": ethernet(b"\0\5\x08\0" + tunnel(LB[4], BACKEND[4], client_packet(4)),
                                     vlan=7, kind=0x8100),
                "nothing behind the Ethernet header": ethernet(b"", kind=0x0800),
                "one byte behind it": ethernet(b"\x45"),
                "IPv6 with IPv4's EtherType":
                    ethernet(tunnel(LB[6], BACKEND[6], client_packet(4)), kind=0x0800),
        }.items():
            with self.subTest(name):
                self.assert_comes_to(frame, "not_tunnel")

    def test_a_tunnel_to_another_address_or_from_a_stranger_goes_to_the_kernel(self):
        other = {4: "192.0.2.77", 6: "2001:db8:f::77"}
        for inner, outer in MIXES:
            with self.subTest(inner=inner, outer=outer):
                packet = client_packet(inner)
                self.assert_comes_to(ethernet(tunnel(LB[outer], other[outer], packet)), "not_local")
                self.assert_comes_to(ethernet(tunnel(other[outer], BACKEND[outer], packet)),
                                     "unknown_source")

    def test_a_load_balancer_s_packet_that_is_not_for_a_vip_is_dropped(self):
        for inner, outer in MIXES:
            with self.subTest(inner=inner, outer=outer):
                packet = udp_packet(CLIENT[inner], BACKEND[inner], 1, 2, b"x")
                self.assert_comes_to(ethernet(tunnel(LB[outer], BACKEND[outer], packet)), "not_vip")

    def test_an_ipv6_address_that_holds_the_vip_s_ipv4_address_is_no_vip(self):
        packet = ip6(CLIENT[6], "::ffff:" + VIP[4], 17, bytes(8))
        self.assert_comes_to(ethernet(tunnel(LB[4], BACKEND[4], packet)), "not_vip")
        packet = ip6(CLIENT[6], "cb00:710a::", 17, bytes(8))  # 203.0.113.10, then zeros
        self.assert_comes_to(ethernet(tunnel(LB[4], BACKEND[4], packet)), "not_vip")

    def test_any_protocol_to_a_vip_is_taken(self):
        for protocol in (ICMP, TCP, IPIP, 132):
            packet = ip4(CLIENT[4], VIP[4], protocol, b"anything")
            self.assert_comes_to(ethernet(tunnel(LB[4], BACKEND[4], packet)), "decapsulated_4in4",
                                 ethernet(packet))

    def test_inner_options_and_inner_fragments_are_taken(self):
        for packet in (client_packet(4, options=b"\x94\x04\0\0"), client_packet(4, fragment=0x2000),
                       ip4(CLIENT[4], VIP[4], 17, bytes(16), fragment=0x00B9)):
            self.assert_comes_to(ethernet(tunnel(LB[4], BACKEND[4], packet)), "decapsulated_4in4",
                                 ethernet(packet))

    def test_the_ecn_table_of_rfc_6040(self):
        for (inner_ecn, outer_ecn), result in ECN_TABLE.items():
            for inner, outer in MIXES:
                with self.subTest(mix=(inner, outer), inner_ecn=inner_ecn, outer_ecn=outer_ecn):
                    frame = ethernet(tunnel(LB[outer], BACKEND[outer],
                                            client_packet(inner, ecn=inner_ecn), ecn=outer_ecn))
                    if result is None:
                        self.assert_comes_to(frame, "ecn_conflict")
                    else:  # built anew, so the IPv4 checksum is a full one
                        self.assert_comes_to(frame, f"decapsulated_{inner}in{outer}",
                                             ethernet(client_packet(inner, ecn=result)))

    def test_a_congestion_mark_never_repairs_a_wrong_checksum(self):
        packet = bytearray(client_packet(4, ecn=1))
        packet[10] ^= 0x40
        frame = ethernet(tunnel(LB[4], BACKEND[4], bytes(packet), ecn=CE))
        self.assert_comes_to(frame, "decapsulated_4in4", ethernet(set_ecn(bytes(packet), CE)))

    def test_fragments_of_tunnel_packets_go_to_the_kernel_and_are_counted(self):
        packet = client_packet(4)
        for fragment in (0x2000, 0x2001, 0x0001):
            self.assert_comes_to(
                ethernet(tunnel(LB[4], BACKEND[4], packet, fragment=fragment)), "outer_fragment")
        header = bytes([IPIP, 0, 0, 1, 0, 0, 0, 9])
        self.assert_comes_to(ethernet(ip6(LB[6], BACKEND[6], FRAGMENT, header + packet)),
                             "outer_fragment")
        self.assert_comes_to(ethernet(ip6("2001:db8::bad", BACKEND[6], FRAGMENT, header + packet)),
                             "unknown_source")
        self.assert_comes_to(ethernet(ip6(LB[6], BACKEND[6], FRAGMENT, b"\x11" + header[1:])),
                             "not_tunnel")

    def test_dont_fragment_outside_is_not_a_fragment(self):
        packet = client_packet(4)
        self.assert_comes_to(ethernet(tunnel(LB[4], BACKEND[4], packet, fragment=0x4000)),
                             "decapsulated_4in4", ethernet(packet))

    def test_odd_outer_headers_go_to_the_kernel(self):
        packet = client_packet(4)
        for name, fields, outcome in (
            ("options", {"options": b"\x94\x04\0\0"}, "outer_options"),
            ("header longer than it says", {"words": 4}, "outer_malformed"),
            ("longer than the frame", {"total": 2000}, "outer_malformed"),
            ("shorter than its header", {"total": 19}, "outer_malformed"),
            ("version", {"version": 5}, "outer_malformed"),
        ):
            with self.subTest(name):
                outer = tunnel(LB[4], BACKEND[4], packet, **fields)
                self.assert_comes_to(ethernet(outer, kind=0x0800), outcome)
        for fields in ({"length": 2000}, {"version": 5}):
            outer = tunnel(LB[6], BACKEND[6], packet, **fields)
            self.assert_comes_to(ethernet(outer, kind=0x86DD), "outer_malformed")

    def test_inner_headers_that_contradict_themselves_or_the_outer_one_are_dropped(self):
        for fields in ({"version": 6}, {"version": 0}, {"words": 4}, {"words": 0}, {"words": 15},
                       {"total": 19}, {"total": 29}, {"total": 0}, {"total": 65535}):
            packet = ip4(CLIENT[4], VIP[4], 17, bytes(8), **fields)
            for version in (4, 6):
                frame = ethernet(ip(LB[version], BACKEND[version], IPIP, packet))
                self.assert_comes_to(frame, "inner_malformed")
        for fields in ({"version": 4}, {"version": 0}, {"length": 9}, {"length": 65535}):
            packet = ip6(CLIENT[6], VIP[6], 17, bytes(8), **fields)
            for version in (4, 6):
                frame = ethernet(ip(LB[version], BACKEND[version], IPV6, packet))
                self.assert_comes_to(frame, "inner_malformed")

    def test_an_inner_packet_may_not_reach_into_the_padding(self):
        packet = client_packet(4)
        outer = tunnel(LB[4], BACKEND[4], packet, total=20 + len(packet) - 1)
        self.assert_comes_to(ethernet(outer), "inner_malformed")

    def test_a_packet_that_is_cut_off_anywhere_never_reaches_the_kernel_as_a_shorter_one(self):
        for inner, outer in MIXES:
            for vlan in (None, 7):
                whole = ethernet(tunnel(LB[outer], BACKEND[outer], client_packet(inner)), vlan=vlan)
                for length in range(14, len(whole)):
                    verdict, after, _ = self.program.run(whole[:length])
                    self.assertEqual((verdict, after), (XDP_PASS, whole[:length]), length)
                # Cut off inside, with an outer header that says so.
                for length in range(len(client_packet(inner))):
                    frame = ethernet(ip(LB[outer], BACKEND[outer], IPIP if inner == 4 else IPV6,
                                        client_packet(inner)[:length]), vlan=vlan)
                    self.assertEqual(self.judge(frame)[0], "inner_malformed")
                    self.assertEqual(self.program.run(frame)[0], XDP_DROP, length)

    def test_a_header_that_the_nic_splits_off_is_left_to_the_kernel(self):
        frame = ethernet(tunnel(LB[4], BACKEND[4], client_packet(4, bytes(200))))
        for linear in (14 + 20, 14 + 20 + 19):
            try:
                verdict, _, _ = self.program.run(frame, linear=linear)
            except OSError:
                self.skipTest("this kernel can not make a test frame of two buffers")
            self.assertEqual(verdict, XDP_PASS)
        self.assertEqual(self.counted(), {"header_split": 2})
        self.assertEqual(self.program.run(frame, linear=14 + 20 + 20)[0], XDP_PASS)
        self.assertEqual(self.counted(), {"header_split": 2, "decapsulated_4in4": 1})

    def test_random_damage_ends_as_the_rfcs_say(self):
        """Differential: the program against the judge, verdict, bytes and counters."""
        random.seed(SEED)
        expected = collections.Counter()
        for number in range(30000):
            frame = random_frame()
            outcome, output = self.judge(frame)
            expected[outcome] += 1
            verdict, after, _ = self.program.run(frame)
            with self.subTest(number=number, frame=frame.hex(" "), outcome=outcome):
                self.assertEqual(verdict, XDP_DROP if output is None else XDP_PASS)
                if output is not None:
                    self.assertEqual(after.hex(" "), output.hex(" "))
        del expected["not_tunnel"]
        self.assertEqual(self.counted(), dict(expected))
        # The damage must have met every branch that random damage can meet.
        self.assertEqual(set(expected), set(self.before) - {"not_tunnel", "header_split",
                                                            "no_headroom"})


def random_frame():
    """A good tunnel frame with zero to four faults, most of them in the headers."""
    inner, outer = random.choice(MIXES)
    packet = client_packet(inner, random.randbytes(random.randrange(40)), ecn=random.randrange(4))
    outside = tunnel(LB[outer], BACKEND[outer], packet, random.choice(KINDS),
                     ecn=random.randrange(4))
    frame = bytearray(ethernet(outside, vlan=random.choice((None, None, 7))))
    for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
        fault = random.randrange(5)
        if fault == 0 and len(frame) > 14:
            del frame[random.randrange(14, len(frame)):]
        elif fault == 1:
            frame += random.randbytes(random.randrange(1, 40))
        elif fault == 2 and len(frame) > 14:
            frame[random.randrange(12, len(frame))] = random.randrange(256)
        elif fault == 3 and len(frame) > 14:
            frame[random.randrange(12, min(len(frame), 74))] ^= 1 << random.randrange(8)
        elif fault == 4:
            # An address of ours in a place where it may mean something else.
            address = packed(random.choice([*VIP.values(), *LB.values(), *BACKEND.values()]))
            at = random.randrange(14, 60)
            frame[at:at + len(address)] = address
    return bytes(frame)


if __name__ == "__main__":
    unittest.main()
