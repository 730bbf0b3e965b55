# SPDX-License-Identifier: Apache-2.0
"""What the load balancer sends, judged by scapy: built by it, taken apart by it, every checksum
computed again. Needs no root."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judge  # noqa: E402
import replaying as r  # noqa: E402
import traffic as t  # noqa: E402
from scapy.layers.inet import ICMP, IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import ICMPv6EchoReply, IPv6  # noqa: E402

# A new encapsulation joins here, and in judge.UNWRAP.
ENCAPSULATIONS = ("ipip", "gre", "gue", "gue0")
OVERHEAD = {"ipip": 0, "gre": 4, "gue": 8, "gue0": 12}  # behind the outer IP header


def site(encapsulation: str = "ipip", **how: str) -> str:
    lines = {"pool": f'encapsulation = "{encapsulation}"', **how}
    return r.config(**lines)


class Judged(unittest.TestCase):
    def judge(self, outcome: r.Replayed, index: int, packet: bytes, encapsulation: str):
        """Packet `index` was forwarded unchanged, in one piece."""
        (frame,) = outcome.sent_for(index)
        with self.subTest(index=index, encapsulation=encapsulation):
            got = judge.take_apart(frame, encapsulation, judge.version_of(packet))
            self.assertEqual(got.inner, packet)
            self.assertEqual(got.backend, outcome.packets[index]["backend"])
            self.assertEqual(judge.outer_traffic_class(frame), judge.traffic_class(packet))
            outer_header = 20 if got.backend in (*r.BACKENDS4, *r.TAGGED) else 40
            self.assertEqual(got.overhead, outer_header + OVERHEAD[encapsulation])
            return got
        return None


class Encapsulations(Judged):
    def test_whatever_a_client_sends_arrives_unchanged(self):
        packets = [bytes(packet) for packet in t.all_kinds()]
        self.assertTrue(all(map(judge.checksums_hold, packets)), "scapy built it")
        by_version = [IP(packet) if packet[0] >> 4 == 4 else IPv6(packet) for packet in packets]
        for encapsulation in ENCAPSULATIONS:
            with r.Bench(site(encapsulation)) as bench:
                wraps = (t.frame, t.tagged, t.double_tagged, t.padded)
                for wrap in wraps if encapsulation == "ipip" else (t.frame, t.padded):
                    outcome = bench.replay([wrap(packet) for packet in by_version])
                    self.assertEqual(outcome.verdicts(), {"forward": len(packets)},
                                     outcome.counters["dropped"])
                    for index, packet in enumerate(packets):
                        self.judge(outcome, index, packet, encapsulation)

    def test_every_packet_of_a_flow_takes_the_same_way(self):
        packets = [bytes(make(number, version, port))
                   for version in (4, 6) for port in (80, 443) for number in range(25)
                   for make in (t.syn, t.segment, t.segment)]
        frames = [t.frame(IP(p) if p[0] >> 4 == 4 else IPv6(p)) for p in packets]
        for encapsulation in ENCAPSULATIONS:
            with r.Bench(site(encapsulation)) as bench:
                outcome = bench.replay(frames, "--workers", "2")
            ways: dict[tuple, set] = {}
            for index, packet in enumerate(packets):
                got = self.judge(outcome, index, packet, encapsulation)
                ways.setdefault(judge.flow_of(packet), set()).add((got.backend, got.entropy))
            self.assertEqual({flow for flow, way in ways.items() if len(way) != 1}, set())
            self.assertEqual({backend for way in ways.values() for backend, _ in way},
                             {*r.BACKENDS4, *r.BACKENDS6})


    def test_a_fixed_dscp_keeps_the_mark_of_congestion(self):
        packets = [t.segment(n, version, port, tos=tos) for version in (4, 6) for port in (80, 443)
                   for n, tos in enumerate((0, 1, 2, 3, 0xB8, 0xFF))]
        for encapsulation in ENCAPSULATIONS:
            text = r.config(pool=f'encapsulation = "{encapsulation}"\ndscp = 10')
            outcome = r.replay(map(t.frame, packets), text=text)
            self.assertEqual([judge.outer_traffic_class(frame) for frame in outcome.frames],
                             [10 << 2 | judge.traffic_class(bytes(p)) & 3 for p in packets])

    def test_a_checksum_over_ipv6_may_be_left_out(self):
        packets = [t.syn(n, version, 443) for n in range(5) for version in (4, 6)]
        for encapsulation in ("gue", "gue0"):
            text = r.config(pool=f'encapsulation = "{encapsulation}"\nudp6_checksum = false')
            outcome = r.replay(map(t.frame, packets), text=text)
            self.assertEqual([UDP(frame[54:62]).chksum for frame in outcome.frames], [0] * 10)


class IcmpErrors(Judged):
    def test_errors_go_where_their_flow_goes(self):
        flows = [(n, version, port) for n in range(6) for version in (4, 6) for port in (80, 443)]
        for workers in ("1", "3"):
            records, owner = [], {}
            for number, flow in enumerate(flows):
                records.append(t.syn(*flow))
                for error in t.errors_about(*flow):
                    owner[len(records)] = number
                    records.append(error)
            packets = list(map(bytes, records))
            outcome = r.replay(map(t.frame, records), "--workers", workers,
                               text=site(dataplane="icmp_relay_rate = 100000"))
            self.assertEqual(outcome.verdicts(), {"forward": len(records)},
                             outcome.counters["dropped"])
            placed = {}
            for index, packet in enumerate(packets):
                got = self.judge(outcome, index, packet, "ipip")
                placed.setdefault(owner.get(index, len(placed)), set()).add(got.backend)
            self.assertEqual([len(backends) for backends in placed.values()], [1] * len(flows))

    def test_a_flow_on_a_backend_without_weight_still_gets_its_errors(self):
        flows = [(n, version, 80) for n in range(20) for version in (4, 6)]
        first = [t.syn(*flow) for flow in flows]
        errors = [next(iter(t.errors_about(*flow))) for flow in flows]
        with r.Bench(site()) as bench:
            weightless = site().replace('{ name = "b1",', '{ name = "b1", weight = 0,')
            bench.write_config("weightless.toml", weightless)
            outcome = bench.replay(map(t.frame, first + errors), "--apply-at", str(len(flows)),
                                   "weightless.toml", "--workers", "3")
        placed = [packet["backend"] for packet in outcome.packets]
        self.assertIn("192.0.2.21", placed)
        self.assertEqual(placed[len(flows):], placed[: len(flows)])

    def test_what_is_no_error_about_a_flow_is_dropped(self):
        quote = bytes(IP(src=r.VIP4, dst="198.51.100.1") / TCP(sport=80, dport=2000))[:28]
        elsewhere = bytes(IP(src="203.0.113.99", dst="198.51.100.1") / TCP(sport=80, dport=2000))[:28]
        later = bytes(IP(src=r.VIP4, dst="198.51.100.1", frag=9, proto=6) / bytes(8))
        to_vip = IP(src=t.ROUTER4, dst=r.VIP4)
        table = [
            (to_vip / ICMP(type=5) / quote, "icmp_not_routed"),  # redirect
            (to_vip / ICMP(type=4) / quote, "icmp_not_routed"),  # source quench
            (to_vip / ICMP(type=0) / b"reply", "icmp_not_routed"),
            (IPv6(src=t.ROUTER6, dst=r.VIP6) / ICMPv6EchoReply(), "icmp_not_routed"),
            (to_vip / ICMP(type=3, code=4) / elsewhere, "icmp_bad_quote"),
            (to_vip / ICMP(type=3, code=4) / later, "icmp_bad_quote"),
            (to_vip / ICMP(type=3, code=4) / quote[:20], "icmp_bad_quote"),
        ]
        outcome = r.replay([t.frame(packet) for packet, _ in table])
        self.assertEqual(outcome.reasons(), [reason for _, reason in table])


if __name__ == "__main__":
    unittest.main()
