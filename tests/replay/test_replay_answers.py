# SPDX-License-Identifier: Apache-2.0
"""What a VIP says itself, and what becomes of packets that do not fit their tunnel, judged by scapy.
Needs no root."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judge  # noqa: E402
import judge_answers as ja  # noqa: E402
import replaying as r  # noqa: E402
import traffic as t  # noqa: E402
from scapy.layers.inet import TCP, IPOption_NOP, IPOption_Router_Alert  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402

MANY = "icmp_answer_rate = 100000"


class Answers(unittest.TestCase):
    def answers(self, frames: list, outcome: r.Replayed) -> list:
        """Of frames that all are answered."""
        self.assertEqual(outcome.verdicts(), {"answer": len(frames)}, outcome.counters["dropped"])
        return [ja.check_answer(bytes(frame), outcome.sent_for(index)[0])
                for index, frame in enumerate(frames)]

    def test_pings_of_every_size_come_back(self):
        frames = [wrap(t.ping(n, version, size)) for version in (4, 6) for n, size in
                  enumerate((0, 1, 2, 56, 1400, 1471)) for wrap in (t.frame, t.tagged, t.double_tagged)]
        outcome = r.replay(frames, text=r.config(dataplane=MANY))
        for frame, answer in zip(frames, self.answers(frames, outcome), strict=True):
            asked = judge.ip_packet_of(bytes(frame))
            header = 20 if judge.version_of(asked) == 4 else 40
            self.assertEqual(bytes(answer)[header + 4:], asked[header + 4:])  # id, seq, data

    def test_a_vip_may_be_silent(self):
        outcome = r.replay([t.frame(t.ping(1, 4))], text=r.config(vip="echo = false"))
        self.assertEqual(outcome.reasons(), ["echo_off"])

    def test_what_does_not_fit_is_told_the_mtu(self):
        cases = [(version, port, 1500 - overhead) for version in (4, 6)
                 for port, overhead in ((80, 20), (443, 40))]
        frames, told = [], []
        for number, (version, port, mtu) in enumerate(cases):
            room = mtu - (40 if version == 4 else 60)
            fields = {"flags": "DF"} if version == 4 else {}
            for size in (room + 1, room + 2, 1400 + 60, 4000):
                if size <= room:
                    continue
                frames.append(t.tagged(t.segment(number, version, port, size, **fields)))
                told.append(mtu)
            fits = t.frame(t.segment(number, version, port, room, **fields))
            self.assertEqual(r.replay([fits], text=r.config(mtu=1500)).verdicts(), {"forward": 1})
        outcome = r.replay(frames, text=r.config(mtu=1500, dataplane=MANY))
        self.assertEqual([ja.mtu_told(a) for a in self.answers(frames, outcome)], told)
        self.assertNotIn(None, [packet["backend"] for packet in outcome.packets])

    def test_what_may_be_fragmented_is(self):
        packets = [t.segment(n, 4, port, size, flags="", id=n + 1) for n, (port, size) in enumerate(
            (port, size) for port in (80, 443) for size in (1441, 1460, 2000, 4000, 8960))]
        packets += [t.datagram(n, 4, port, 3000, flags="", id=n) for n, port in enumerate((53, 443, 7))]
        copied = [IPOption_Router_Alert(), IPOption_NOP(), IPOption_NOP(), IPOption_NOP(), IPOption_NOP()]
        packets.append(t.network(9, 4, id=77, options=copied) / TCP(
            sport=9000, dport=80, flags="A") / bytes(2500))
        outcome = r.replay(map(t.frame, packets), "--workers", "2", text=r.config(mtu=1500))
        self.assertEqual(outcome.verdicts(), {"forward": len(packets)}, outcome.counters["dropped"])
        for index, packet in enumerate(map(bytes, packets)):
            with self.subTest(index=index):
                got = [judge.take_apart(frame, "ipip", 4) for frame in outcome.sent_for(index)]
                self.assertGreater(len(got), 1)
                self.assertEqual({piece.backend for piece in got}, {outcome.packets[index]["backend"]})
                ja.check_fragments(packet, [piece.inner for piece in got], 1500 - got[0].overhead)
        sent = len(outcome.frames)
        self.assertEqual(outcome.counters["extra_fragments"], sent - len(packets))

    def test_unknown_ports_are_rejected_where_that_is_asked_for(self):
        text = r.config(vip='unknown_port = "reject"', dataplane=MANY)
        udp = [t.frame(t.datagram(n, version, 9999, size)) for version in (4, 6)
               for n, size in enumerate((0, 5, 700, 1400))]
        for answer in self.answers(udp, r.replay(udp, text=text)):
            self.assertTrue(ja.is_port_unreachable(answer))
        tcp = [t.frame(t.network(n, version) / TCP(sport=4000, dport=9999, flags=flags, seq=seq,
                                                  ack=777 if "A" in flags else 0) / bytes(size))
               for version in (4, 6) for n, (flags, seq, size) in enumerate(
                   (("S", 100, 0), ("S", 2**32 - 1, 10), ("A", 5, 3), ("PA", 9, 11), ("F", 50, 4)))]
        for frame, answer in zip(tcp, self.answers(tcp, r.replay(tcp, text=text)), strict=True):
            asked, reset = frame[TCP], answer[TCP]
            self.assertEqual((reset.sport, reset.dport), (9999, 4000))
            if "A" in asked.flags:  # RFC 9293 3.10.7.1
                self.assertEqual((str(reset.flags), reset.seq), ("R", 777))
            else:
                length = len(asked.payload) + ("S" in asked.flags) + ("F" in asked.flags)
                self.assertEqual((str(reset.flags), reset.seq, reset.ack),
                                 ("RA", 0, (asked.seq + length) % 2**32))
        outcome = r.replay(tcp, text=r.config())
        self.assertEqual(outcome.counters["dropped"], {"unknown_port": len(tcp)})

    def test_some_are_never_answered(self):
        text = r.config(mtu=1500, vip='unknown_port = "reject"')
        big = t.segment(1, 4, 80, 1470, flags="DF")
        reset = t.network(1, 4) / TCP(sport=4000, dport=9999, flags="R")
        frames = [
            Ether(src="02:00:00:00:99:01", dst="ff:ff:ff:ff:ff:ff") / big,
            Ether(src="02:00:00:00:99:01", dst="01:00:5e:00:00:01") / t.ping(1, 4),
            t.frame(reset),
            # How much of the sequence it takes is known of a whole segment only.
            t.frame(t.network(1, 4, id=3, flags="MF") / TCP(sport=1, dport=9999) / bytes(60)),
        ]
        outcome = r.replay(frames, text=text)
        self.assertEqual(outcome.frames, [])
        self.assertEqual(outcome.reasons(), ["answer_forbidden"] * 4)

    def test_answers_keep_to_their_rate_in_the_time_of_the_capture(self):
        text = r.config(dataplane="icmp_answer_rate = 10")
        times = [0.0] * 30 + [0.5] * 30 + [60.0] * 30
        outcome = r.replay([t.frame(t.ping(n, 4)) for n in range(90)], text=text, times=times)
        verdicts = [packet["verdict"] for packet in outcome.packets]
        self.assertEqual([verdicts[a:a + 30].count("answer") for a in (0, 30, 60)], [10, 5, 10])
        self.assertEqual(outcome.counters["dropped"], {"answer_rate_limited": 65})


if __name__ == "__main__":
    unittest.main()
