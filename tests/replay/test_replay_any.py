# SPDX-License-Identifier: Apache-2.0
"""Any packet: forwarded with its bytes as they were, or exactly one counted reason. Packets damaged
at random, and the captures in HOLDFAST_CAPTURES. Needs no root."""

import contextlib
import os
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judge  # noqa: E402
import judge_answers as ja  # noqa: E402
import replaying as r  # noqa: E402
import traffic as t  # noqa: E402
from scapy.layers.inet import UDP  # noqa: E402

VIPS = {judge.address_bytes(vip) for vip in (r.VIP4, r.VIP6, r.OPEN4, r.OPEN6)}
RATES = "icmp_relay_rate = 1000000\nicmp_answer_rate = 1000000"
REJECT = 'unknown_port = "reject"'
MTU = 1500


class Any(unittest.TestCase):
    def assert_sane(self, outcome: r.Replayed, frames: list[bytes]) -> None:
        """`frames`: Ethernet, as they went in. check_outcome() has looked at the sums."""
        for index, frame in enumerate(frames):
            packet = judge.ip_packet_of(frame)
            verdict = outcome.packets[index]["verdict"]
            with self.subTest(index=index, frame=frame[:80].hex(), verdict=verdict):
                if verdict == "kernel" and packet is not None:
                    for_vip = judge.destination_of(packet) in VIPS
                    self.assertFalse(for_vip and judge.tag_count(frame) <= 2)
                if verdict == "forward":
                    self.assertIsNotNone(packet)
                    got = [judge.take_apart(sent, "ipip", judge.version_of(packet))
                           for sent in outcome.sent_for(index)]
                    if len(got) == 1:
                        self.assertEqual(got[0].inner, packet)
                    else:
                        ja.check_fragments(packet, [piece.inner for piece in got],
                                           MTU - got[0].overhead)
                if verdict == "answer":
                    ja.check_answer(frame, outcome.sent_for(index)[0])


class Damaged(Any):
    def setUp(self):
        self.random = random.Random(5)

    def damage(self, frame: bytes) -> bytes:
        """One to four changes of the kinds that break parsers, mostly in the headers."""
        changed = bytearray(frame)
        for _ in range(self.random.randint(1, 4)):
            limit = len(changed) if self.random.random() < 0.2 else min(len(changed), 80)
            if limit == 0:
                break
            at = self.random.randrange(limit)
            match self.random.randrange(7):
                case 0:
                    changed[at] = self.random.randrange(256)
                case 1:
                    changed[at] ^= 1 << self.random.randrange(8)
                case 2:
                    changed[at] = self.random.choice((0, 0xFF))
                case 3:
                    changed[at] = (changed[at] + self.random.choice((1, 255))) % 256
                case 4:
                    del changed[at:]
                case 5:
                    changed.insert(at, self.random.randrange(256))
                case 6:
                    changed += bytes(self.random.randrange(64))
        return bytes(changed)

    def samples(self) -> list[bytes]:
        packets = [*t.all_kinds()]
        for version in (4, 6):
            packets += [*t.errors_about(1, version), *t.errors_about(2, version, 53, UDP)]
            for number in range(20, 26):
                packets += map(t.packet_of, t.pieces_of(
                    t.datagram(number, version, 443, 2500), 800, number))
            packets += [t.segment(3, version, 80, 1500), t.datagram(4, version, 443, 3000),
                        t.datagram(5, version, 9999, 900), t.syn(6, version, 9999),
                        t.ping(7, version), t.ping(8, version, 1700)]
        wraps = (t.frame, t.frame, t.tagged, t.double_tagged, t.padded)
        return [bytes(self.random.choice(wraps)(packet)) for packet in packets]

    def test_damaged_packets_are_forwarded_as_they_are_or_counted(self):
        samples = self.samples()
        frames = [self.damage(self.random.choice(samples)) for _ in range(4000)]
        for workers in ("1", "3"):
            outcome = r.replay(frames, "--workers", workers,
                               text=r.config(mtu=MTU, dataplane=RATES, vip=REJECT))
            verdicts = outcome.verdicts()
            # Else the damage is too large or too small to say much.
            self.assertGreater(verdicts["forward"], 400)
            self.assertGreater(verdicts["drop"], 400)
            self.assertGreater(len(outcome.counters["dropped"]), 10)
            self.assert_sane(outcome, frames)


LINK_HEADERS = {0: 4, 101: 0, 228: 0, 229: 0, 113: 16, 276: 20}


def packet_offset(record: bytes, link_type: int) -> int:
    """Where the IP packet begins."""
    if link_type == 1:
        return 14 + 4 * judge.tag_count(record)
    if link_type == 9:
        return 4 if record[:2] == b"\xff\x03" else 2
    return LINK_HEADERS[link_type]


def toward_vip(record: bytes, link_type: int) -> bytes:
    """The same packet, but to a VIP of which each port is a service; what an ICMP error quotes then
    came from there. No checksum is mended: the load balancer looks at none of them."""
    at = packet_offset(record, link_type)
    changed = bytearray(record)
    four, six = judge.address_bytes(r.OPEN4), judge.address_bytes(r.OPEN6)
    version = record[at] >> 4 if len(record) > at else 0
    if version == 4 and len(record) >= at + 20:
        changed[at + 16: at + 20] = four
        quote = at + (record[at] & 15) * 4 + 8
        if record[at + 9] == 1 and record[quote: quote + 1] == b"\x45":
            changed[quote + 12: quote + 16] = four
    if version == 6 and len(record) >= at + 40:
        changed[at + 24: at + 40] = six
        quote = at + 48
        if record[at + 6] == 58 and len(record) > quote and record[quote] >> 4 == 6:
            changed[quote + 8: quote + 24] = six
    return bytes(changed)


@unittest.skipUnless(os.environ.get("HOLDFAST_CAPTURES"),
                     "HOLDFAST_CAPTURES names no folder of captures")
class Captures(Any):
    def test_each_packet_toward_a_vip(self):
        verdicts: dict[str, int] = {}
        with r.Bench(r.config(mtu=MTU, dataplane=RATES, vip=REJECT)) as bench:
            for path in sorted(Path(os.environ["HOLDFAST_CAPTURES"]).glob("*.pcap")):
                with contextlib.closing(r.RawPcapReader(str(path))) as reader:
                    link_type = reader.linktype & 0xFFFF
                    records = [bytes(data) for data, _ in reader]
                records = [toward_vip(record, link_type) for record in records]
                outcome = bench.replay(records, "--workers", "2", link_type=link_type)
                with self.subTest(capture=path.name):
                    self.assert_sane(outcome, [
                        record if link_type == 1 else
                        judge.in_ethernet(record[packet_offset(record, link_type):])
                        for record in records])
                for verdict, count in outcome.verdicts().items():
                    verdicts[verdict] = verdicts.get(verdict, 0) + count
        self.assertGreater(verdicts["forward"], 50)
        self.assertGreater(verdicts["drop"], 5)


if __name__ == "__main__":
    unittest.main()
