# SPDX-License-Identifier: Apache-2.0
"""Fragments through `holdfast replay`: in any order, over any number of workers. Needs no root."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judge  # noqa: E402
import replaying as r  # noqa: E402
import traffic as t  # noqa: E402
from scapy.layers.inet import IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop  # noqa: E402

WIDE = r.config(mtu=1600)


class Fragments(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(11)

    def datagrams(self, count: int) -> list:
        """Of both families, for both pools."""
        return [t.datagram(n, 4 if n % 2 else 6, (53, 443)[n % 4 // 2], 1000 + 97 * n % 3000)
                for n in range(count)]

    def replayed(self, pieces: list[tuple[int, bytes]], *options: str, times=None) -> r.Replayed:
        frames = [t.frame(t.packet_of(piece)) for _, piece in pieces]
        return r.replay(frames, *options, text=WIDE, times=times)

    def assert_all_together(self, pieces: list[tuple[int, bytes]], outcome: r.Replayed,
                            whole: dict[int, str]) -> None:
        """Each piece was forwarded as it is, to the backend of its flow's whole packets."""
        self.assertEqual(outcome.verdicts(), {"forward": len(pieces)}, outcome.counters["dropped"])
        for index, (number, piece) in enumerate(pieces):
            (sent,) = outcome.sent_for(index)
            got = judge.take_apart(sent, "ipip", judge.version_of(piece))
            self.assertEqual(got.inner, piece)
            self.assertEqual(got.backend, whole[number])

    def test_in_any_order_and_interleaved_they_reach_the_backend_of_whole_packets(self):
        datagrams = self.datagrams(40)
        placed = r.replay(map(t.frame, datagrams), text=r.config(mtu=9000))
        whole = {n: packet["backend"] for n, packet in enumerate(placed.packets)}
        pieces = [(n, piece) for n, packet in enumerate(datagrams)
                  for piece in t.pieces_of(packet, 1000 - n % 7 * 8, n + 1)]
        orders = {"in order": pieces, "last first": pieces[::-1],
                  "shuffled": self.random.sample(pieces, len(pieces))}
        for name, ordered in orders.items():
            for workers in ("1", "2", "5"):
                with self.subTest(order=name, workers=workers):
                    outcome = self.replayed(ordered, "--workers", workers)
                    self.assert_all_together(ordered, outcome, whole)

    def test_a_first_one_that_comes_at_once_is_found_though_no_packet_follows(self):
        pieces = [(0, piece) for piece in t.pieces_of(t.datagram(1, 4, 53, 1800), 800, 9)]
        for ordered in (pieces[::-1], [pieces[1], pieces[0], pieces[2]]):
            outcome = self.replayed(ordered, "--workers", "3", times=[0.0] * len(pieces))
            self.assertEqual(outcome.verdicts(), {"forward": 3}, outcome.counters["dropped"])

    def test_without_a_first_one_they_are_dropped(self):
        for version in (4, 6):
            later = t.pieces_of(t.datagram(1, version, 53, 3000), 800, 9)[1:]
            with self.subTest(version=version):
                outcome = self.replayed([(0, piece) for piece in later], "--workers", "2")
                self.assertEqual(outcome.reasons(), [f"ipv{version}_fragment_no_first"] * len(later))

    def test_a_first_one_after_more_than_a_second_is_too_late(self):
        for version in (4, 6):
            first, *later = t.pieces_of(t.datagram(1, version, 53, 1500), 800, 9)
            outcome = self.replayed([(0, later[0]), (0, first)], "--workers", "1", times=[0.0, 1.5])
            self.assertEqual(outcome.reasons(), [f"ipv{version}_fragment_no_first", None])
            in_time = self.replayed([(0, later[0]), (0, first)], "--workers", "2", times=[0.0, 0.5])
            self.assertEqual(in_time.verdicts(), {"forward": 2})
            # What was held leaves behind the one that it waited for.
            self.assertEqual([packet["outputs"] for packet in in_time.packets], [[1], [0]])

    def test_overlaps_and_tiny_first_ones_reach_no_backend(self):
        packet = t.datagram(1, 4, 53, 1600)
        first, second, last = t.pieces_of(packet, 800, 9)
        header = IP(second[:20])
        overlap = bytes(IP(src=header.src, dst=header.dst, id=9, proto=17, flags="MF", frag=50)
                        / bytes(800))
        outcome = self.replayed([(0, first), (0, overlap), (0, last)], "--workers", "1")
        self.assertEqual(outcome.packets[0]["verdict"], "forward")
        self.assertEqual(outcome.packets[1]["reason"], "ipv4_fragment_overlap")
        self.assertEqual(outcome.packets[2]["verdict"], "drop")
        tiny = bytes(IP(src="198.51.100.1", dst=r.VIP4, id=5, flags="MF", proto=6)
                     / bytes(TCP(sport=4000, dport=80, flags="S"))[:8])
        outcome = self.replayed([(0, tiny)])
        self.assertEqual(outcome.reasons(), ["ipv4_fragment_tiny"])

    def test_extension_headers_before_the_fragment_header_are_walked(self):
        plain = bytes(t.datagram(1, 6, 53, 1500))
        packets = []
        for at in (0, 800):
            data = plain[40 + at: 40 + at + 800]
            packets.append(IPv6(src=t.client(1, 6), dst=r.VIP6) / IPv6ExtHdrHopByHop() /
                           IPv6ExtHdrFragment(nh=17, offset=at // 8, m=int(at == 0), id=77) / data)
        for ordered in (packets, packets[::-1]):
            outcome = r.replay(map(t.frame, ordered), "--workers", "2", text=WIDE)
            self.assertEqual(outcome.verdicts(), {"forward": 2}, outcome.counters["dropped"])
            self.assertEqual(len({packet["backend"] for packet in outcome.packets}), 1)

    def test_a_flood_of_them_disturbs_no_flow(self):
        flood = [IP(src=f"198.18.{n % 256}.{n // 256 + 1}", dst=r.VIP4, id=n, proto=17,
                    flags="MF", frag=100) / bytes(200) for n in range(3000)]
        flows = [make(n, 4) for n in range(300) for make in (t.syn, t.segment)]
        mixed = [packet for n, packet in enumerate(flood)
                 for packet in ((packet, flows[n // 5]) if n % 5 == 0 else (packet,))]
        outcome = r.replay(map(t.frame, mixed), "--workers", "2", text=WIDE,
                           times=[n / 1e6 for n in range(len(mixed))])
        self.assertEqual(outcome.counters["forwarded"], len(flows))
        self.assertLessEqual(set(outcome.counters["dropped"]),
                             {"ipv4_fragment_no_first", "ipv4_fragment_no_room"})


class Whole(unittest.TestCase):
    def test_a_datagram_of_eight_kilobytes(self):
        packet = t.datagram(3, 4, 443, 8000)
        pieces = t.pieces_of(packet, 1480, 4)
        frames = [t.frame(t.packet_of(piece)) for piece in pieces[::-1]]
        outcome = r.replay(frames, "--workers", "2", text=WIDE)
        got = [judge.take_apart(sent, "ipip", 4).inner for sent in outcome.frames]
        parts = sorted(got, key=lambda piece: IP(piece).frag)
        joined = b"".join(piece[20:] for piece in parts)
        self.assertEqual(joined, bytes(packet)[20:])
        self.assertEqual(UDP(joined).len, len(joined))


if __name__ == "__main__":
    unittest.main()
