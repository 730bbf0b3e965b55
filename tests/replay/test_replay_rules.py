# SPDX-License-Identifier: Apache-2.0
"""What the rules of a service change in a packet, judged by scapy: the rest is as it was. Needs no
root."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judge  # noqa: E402
import replaying as r  # noqa: E402
import traffic as t  # noqa: E402
from scapy.layers.inet import IP, TCP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402

CLAMP = 1300


def clamped(packet):
    """As RFC 9293 has it with a lower MSS: scapy makes the checksum anew."""
    changed = (IP if packet.version == 4 else IPv6)(bytes(packet))
    options = [(name, min(value, CLAMP) if name == "MSS" else value)
               for name, value in changed[TCP].options]
    changed[TCP].options = options
    del changed[TCP].chksum
    return bytes(changed)


class MssClamp(unittest.TestCase):
    def packets(self) -> list:
        found = []
        for version in (4, 6):
            for number, options in enumerate((
                    t.TCP_OPTIONS, [("MSS", 1301)], [("MSS", 1300)], [("MSS", 536)], [("MSS", 65535)],
                    [("NOP", None), ("MSS", 8960)], [("SAckOK", b""), ("NOP", None), ("MSS", 1460)])):
                for flags in ("S", "SEC", "SA"):
                    found.append(t.network(number, version) / TCP(
                        sport=t.port_of(number), dport=80, flags=flags, seq=number, options=options))
            found.append(t.network(1, version) / TCP(sport=5, dport=80, flags="S"))
        return found

    def test_it_lowers_the_mss_of_syns_and_nothing_else(self):
        packets = self.packets()
        for wrap in (t.frame, t.tagged):
            outcome = r.replay(map(wrap, packets), text=r.config(service=f"mss_clamp = {CLAMP}"))
            self.assertEqual(outcome.verdicts(), {"forward": len(packets)})
            for index, packet in enumerate(packets):
                with self.subTest(packet=packet.summary(), options=packet[TCP].options):
                    inner = judge.take_apart(outcome.sent_for(index)[0], "ipip", packet.version).inner
                    self.assertEqual(inner, clamped(packet))
                    self.assertTrue(judge.checksums_hold(inner))

    def test_not_in_other_packets_nor_behind_an_authentication_header(self):
        option = [("MSS", 1460)]
        packets = [t.network(1, 4) / TCP(sport=5, dport=80, flags="A", options=option),
                   t.with_authentication(t.network(1, 6), TCP(sport=5, dport=80, flags="S",
                                                             options=option))]
        outcome = r.replay(map(t.frame, packets), text=r.config(service=f"mss_clamp = {CLAMP}"))
        for index, packet in enumerate(packets):
            inner = judge.take_apart(outcome.sent_for(index)[0], "ipip", packet.version).inner
            self.assertEqual(inner, bytes(packet))


class Stateless(unittest.TestCase):
    def test_each_packet_goes_where_the_table_says_now(self):
        text = r.config().replace('name = "dns"\n', 'name = "dns"\nudp = "stateless"\n')
        queries = [t.frame(t.datagram(n, 4)) for n in range(40)]
        with r.Bench(text) as bench:
            bench.write_config("weightless.toml",
                               text.replace('{ name = "b1",', '{ name = "b1", weight = 0,'))
            outcome = bench.replay(queries + queries, "--apply-at", "40", "weightless.toml")
        placed = [packet["backend"] for packet in outcome.packets]
        self.assertEqual(set(placed[:40]), set(r.BACKENDS4))
        self.assertEqual(set(placed[40:]), {"192.0.2.22"})


if __name__ == "__main__":
    unittest.main()
