# SPDX-License-Identifier: Apache-2.0
"""`holdfast replay` as a program: files of all kinds in, options, and what it refuses. Needs no root."""

import contextlib
import json
import os
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import replaying as r  # noqa: E402
from scapy.layers.inet import IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Ether  # noqa: E402


def syn(number: int, port: int = 80) -> IP:
    return IP(src=f"198.51.100.{number % 200 + 1}", dst=r.VIP4) / TCP(
        sport=20000 + number, dport=port, flags="S")


def data(number: int, port: int = 80) -> IP:
    return IP(src=f"198.51.100.{number % 200 + 1}", dst=r.VIP4) / TCP(
        sport=20000 + number, dport=port, flags="PA") / b"data"


def syn6(number: int) -> IPv6:
    return IPv6(src=f"2001:db8:99::{number + 1:x}", dst=r.VIP6) / TCP(
        sport=20000 + number, dport=80, flags="S")


def frame(packet) -> Ether:
    return Ether(src="02:00:00:00:99:01", dst=r.PORT_MAC) / packet


def inner_of(out: bytes) -> bytes:
    """Of an IPIP frame with an IPv4 outer header and no tag."""
    return out[34:]


def pcapng(blocks: list[tuple[int, bytes, bytes]]) -> bytes:
    """Little-endian; a block is type, body (padded), and nothing else."""
    file = b""
    for kind, body, _ in [(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1), b""), *blocks]:
        body += bytes(-len(body) % 4)
        file += struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    return file


def interface(link_type: int, options: bytes = b"") -> tuple[int, bytes, bytes]:
    return 1, struct.pack("<HHI", link_type, 0, 0) + options, b""


def enhanced(ticks: int, packet: bytes, number: int = 0) -> tuple[int, bytes, bytes]:
    head = struct.pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
    return 6, head + packet, b""


class Files(unittest.TestCase):
    def setUp(self):
        self.bench = r.Bench(r.config())
        self.addCleanup(self.bench.__exit__)
        self.packets = [bytes(syn(n)) for n in range(5)] + [bytes(syn6(n)) for n in range(5)]

    def assert_all_forwarded(self, outcome: r.Replayed) -> None:
        self.assertEqual(outcome.verdicts(), {"forward": 10})
        self.assertEqual([inner_of(out) for out in outcome.frames], self.packets)

    def test_every_link_type_becomes_ethernet(self):
        six = [packet[0] >> 4 == 6 for packet in self.packets]
        types = [0x86DD if is_six else 0x0800 for is_six in six]
        records = {
            r.ETHERNET: [frame((IPv6 if v6 else IP)(p)) for p, v6 in zip(self.packets, six)],
            r.RAW_IP: self.packets,
            r.COOKED: [CookedLinux(pkttype=0, lladdrlen=6, src=b"\2\0\0\0\x99\1\0\0", proto=t) / p
                       for p, t in zip(self.packets, types)],
            r.COOKED2: [CookedLinuxV2(proto=t, ifindex=2, pkttype=0, lladdrlen=6,
                                      src=b"\2\0\0\0\x99\1\0\0") / p
                        for p, t in zip(self.packets, types)],
            0: [struct.pack("<I", 2) + p for p in self.packets],  # loopback of BSD
            9: [b"\xff\x03" + (b"\0\x57" if v6 else b"\0\x21") + p
                for p, v6 in zip(self.packets, six)],  # PPP
        }
        for link_type, captured in records.items():
            with self.subTest(link_type=link_type):
                self.assert_all_forwarded(self.bench.replay(captured, link_type=link_type))

    def test_pcapng_in_nanoseconds_and_microseconds(self):
        nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # if_tsresol
        for unit, options in ((1e9, nanoseconds), (1e6, b"")):
            with self.subTest(unit=unit):
                blocks = [interface(r.RAW_IP, options)]
                blocks += [enhanced(int((1_700_000_000 + n) * unit), packet)
                           for n, packet in enumerate(self.packets)]
                (self.bench.folder / "in").write_bytes(pcapng(blocks))
                outcome = self.bench.run()
                r.check_outcome(outcome, 10)
                self.assert_all_forwarded(outcome)

    def test_big_endian_pcap(self):
        file = struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, r.RAW_IP)
        for number, packet in enumerate(self.packets):
            file += struct.pack(">IIII", number, 0, len(packet), len(packet)) + packet
        (self.bench.folder / "in").write_bytes(file)
        self.assert_all_forwarded(self.bench.run())

    def test_an_empty_capture_is_no_fault(self):
        outcome = self.bench.replay([])
        self.assertEqual((outcome.packets, outcome.frames), ([], []))
        self.assertEqual(outcome.counters["dropped"], {})

    def test_what_a_snap_length_cut_is_dropped_with_its_reason(self):
        whole = bytes(frame(data(1)))
        cuts = [(10, "l2_truncated"), (20, "ipv4_truncated"), (40, "ipv4_bad_total_length"),
                (len(whole) - 1, "ipv4_bad_total_length")]
        file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, r.ETHERNET)
        for length, _ in cuts:
            file += struct.pack("<IIII", 0, 0, length, len(whole)) + whole[:length]
        (self.bench.folder / "in").write_bytes(file)
        outcome = self.bench.run()
        r.check_outcome(outcome, len(cuts))
        told = [(packet["verdict"], packet["reason"]) for packet in outcome.packets]
        # Before its destination is known a packet can not be told to be for a VIP.
        self.assertEqual(told[2:], [("drop", reason) for _, reason in cuts[2:]])
        for (verdict, reason), (_, expected) in zip(told[:2], cuts[:2], strict=True):
            self.assertIn((verdict, reason), (("drop", expected), ("kernel", None)))

    def test_a_time_that_goes_back_stands_still(self):
        times = [10.0, 5.0, 4.0, 11.0, 0.0, 12.0, 12.0, 12.0, 12.0, 12.0]
        self.bench.write_capture(self.packets, link_type=r.RAW_IP, times=times)
        self.bench.run()
        with contextlib.closing(r.RawPcapReader(str(self.bench.folder / "out"))) as reader:
            out = [meta.sec - 1_700_000_000 for _, meta in reader]
        self.assertEqual(out, [10, 10, 10, 11, 11, 12, 12, 12, 12, 12])

    def test_any_time_is_taken(self):
        file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, r.RAW_IP)
        for second, fraction in ((0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (5, 999_999), (0x7FFFFFFF, 1)):
            packet = self.packets[0]
            file += struct.pack("<IIII", second, fraction, len(packet), len(packet)) + packet
        (self.bench.folder / "in").write_bytes(file)
        self.assertEqual(self.bench.run().verdicts(), {"forward": 4})

    def test_jumbo_and_longer_frames(self):
        long = [IP(src="198.51.100.1", dst=r.VIP4, flags="DF") / TCP(dport=80, flags="A") / bytes(n)
                for n in (1460, 8960, 65495)]
        junk = bytes(frame(syn(1))) + bytes(200_000)  # padding without end
        outcome = self.bench.replay([*map(frame, long), junk])
        self.assertEqual(outcome.packets[0]["verdict"], "forward")
        self.assertNotIn("forward", [packet["verdict"] for packet in outcome.packets[1:3]])


class Options(unittest.TestCase):
    def replay(self, records, *options: str, **how) -> r.Replayed:
        return r.replay(map(frame, records), *options, **how)

    def backends(self, outcome: r.Replayed) -> list[str]:
        return [packet["backend"] for packet in outcome.packets]

    def test_json_names_service_and_backend(self):
        outcome = self.replay([syn(1), syn(1, port=81), syn6(2)])
        first = outcome.packets[0]
        self.assertEqual(first["service"], "web")
        self.assertIn(first["backend"], r.BACKENDS4)
        self.assertEqual(outcome.packets[1], {"index": 1, "verdict": "drop", "reason": "unknown_port",
                                              "service": None, "backend": None, "outputs": []})
        self.assertEqual(outcome.packets[2]["outputs"], [1])

    def test_what_is_not_ours_goes_to_the_kernel(self):
        other = IP(src="198.51.100.1", dst="192.0.2.99") / TCP(dport=80, flags="S")
        outcome = self.replay([other, ARP(pdst="192.0.2.1")])
        self.assertEqual(outcome.verdicts(), {"kernel": 2})
        self.assertEqual(outcome.frames, [])

    def test_workers_in_turn_agree_on_every_flow(self):
        records = [packet for n in range(40) for packet in (syn(n), data(n), data(n), data(n))]
        alone = self.backends(self.replay(records, "--workers", "1"))
        for workers in (2, 3, 5):
            with self.subTest(workers=workers):
                shared = self.replay(records, "--workers", str(workers))
                self.assertEqual(self.backends(shared), alone)

    def test_a_draining_backend_gets_no_new_flow_but_keeps_those_it_has(self):
        drained = self.replay([syn(n) for n in range(50)], "--drain", "four/b1")
        self.assertEqual(set(self.backends(drained)), {"192.0.2.22"})
        both = self.replay([syn(n) for n in range(50)], "--drain", "four/b1", "--drain",
                           "four/192.0.2.22")
        self.assertEqual(set(self.backends(both)), set(r.BACKENDS4))  # none else is left

    def test_a_backend_that_is_down_gets_nothing(self):
        down = self.replay([syn(n) for n in range(50)], "--down", "four/b2")
        self.assertEqual(set(self.backends(down)), {"192.0.2.21"})
        none = self.replay([syn(n) for n in range(9)], "--down", "four/b1", "--down", "four/b2")
        self.assertEqual(none.reasons(), ["no_backend"] * 9)

    def test_another_configuration_takes_effect_before_its_packet(self):
        flows = range(60)
        first = [syn(n) for n in flows]
        second = [data(n) for n in flows]
        third = [syn(100 + n) for n in flows]
        with r.Bench(r.config()) as bench:
            drain = "[[pool.backends]]"
            self.assertNotIn(drain, r.config())
            weightless = r.config().replace('{ name = "b1",', '{ name = "b1", weight = 0,')
            bench.write_config("weightless.toml", weightless)
            gone = "\n".join(line for line in r.config().splitlines() if '"b1"' not in line)
            bench.write_config("gone.toml", gone)
            outcome = bench.replay(map(frame, first + second + third + second),
                                   "--apply-at", "180", "gone.toml",
                                   "--apply-at", "60", "weightless.toml", "--workers", "3")
            untouched = bench.replay(map(frame, first + second + third + second), "--workers", "3")
        placed = self.backends(outcome)
        self.assertEqual(placed[:60], self.backends(untouched)[:60])
        self.assertIn("192.0.2.21", placed[:60])
        self.assertEqual(placed[60:120], placed[:60])  # flows stay where they are
        self.assertEqual(set(placed[120:180]), {"192.0.2.22"})
        self.assertEqual(set(placed[180:]), {"192.0.2.22"})

    def test_a_drain_outlives_an_apply(self):
        with r.Bench(r.config()) as bench:
            bench.write_config("again.toml", r.config())
            outcome = bench.replay([frame(syn(n)) for n in range(60)], "--drain", "four/b1",
                                   "--apply-at", "30", "again.toml", "--down", "six/2001:db8:2::21")
            self.assertEqual(set(self.backends(outcome)), {"192.0.2.22"})

    def test_flows_end_with_the_time_of_the_capture(self):
        """A UDP flow on a draining backend stays 15 minutes at most, and a silent one 2 minutes."""
        query = [IP(src="198.51.100.9", dst=r.VIP4) / UDP(sport=4000 + n, dport=53) / b"?"
                 for n in range(40)]
        with r.Bench(r.config()) as bench:
            weightless = r.config().replace('{ name = "b1",', '{ name = "b1", weight = 0,')
            bench.write_config("weightless.toml", weightless)

            def run(pause: float) -> list[str]:
                times = [0.0] * 40 + [pause] * 40
                outcome = bench.replay(map(frame, query + query), "--apply-at", "40",
                                       "weightless.toml", times=times)
                return self.backends(outcome)

            soon, late = run(60), run(300)
        self.assertEqual(soon[40:], soon[:40])
        self.assertEqual(late[:40], soon[:40])
        self.assertEqual(set(late[40:]), {"192.0.2.22"})

    def test_without_next_hop_everything_has_defaults(self):
        text = "\n".join(line for line in r.config().splitlines() if "tunnel_source" not in line)
        while ", next_hop" in text:
            start = text.index(", next_hop")
            text = text[:start] + text[text.index("}", start) + 1:]
        big = IP(src="198.51.100.1", dst=r.VIP4, flags="DF") / TCP(dport=80, flags="A") / bytes(1460)
        outcome = self.replay([syn(1), big], text=text)
        out = Ether(outcome.frames[0])
        self.assertEqual((out.src, out.dst), (r.PORT_MAC, "02:00:00:00:01:01"))
        self.assertEqual(out[IP].src, "198.18.0.1")
        self.assertEqual(outcome.verdicts(), {"forward": 2})

    def test_text_is_for_people(self):
        with r.Bench(r.config()) as bench:
            bench.write_capture([frame(syn(1)), frame(syn(1, port=81))])
            done = bench.start("holdfast.toml", "in", "out")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("forward", done.stdout)
        self.assertIn("unknown_port: to a VIP, but no service", done.stdout)
        self.assertIn("sent       1, to out", done.stdout)

    def test_options_may_stand_before_the_files(self):
        with r.Bench(r.config()) as bench:
            bench.write_capture([frame(syn(n)) for n in range(30)])
            done = bench.start("--drain", "four/b1", "--apply-at", "5", "holdfast.toml", "--json",
                               "holdfast.toml", "in", "out")
        told = json.loads(done.stdout)
        self.assertEqual({packet["backend"] for packet in told["packets"]}, {"192.0.2.22"})

    def test_json_may_stand_before_the_command(self):
        with r.Bench(r.config()) as bench:
            bench.write_capture([frame(syn(1))])
            done = r.subprocess.run([str(r.CLI), "--json", "replay", "holdfast.toml", "in", "out"],
                                    cwd=bench.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(list(json.loads(done.stdout)), ["packets", "counters"])


class Refusals(unittest.TestCase):
    def setUp(self):
        self.bench = r.Bench(r.config())
        self.addCleanup(self.bench.__exit__)
        self.bench.write_capture([frame(syn(n)) for n in range(3)])

    def refused(self, *words: str, status: int = 1, output: str = "") -> str:
        done = self.bench.start(*words)
        self.assertEqual(done.returncode, status, done)
        self.assertEqual(done.stdout, output)
        self.assertTrue(done.stderr.startswith("holdfast replay: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_files_that_are_not_there(self):
        self.assertIn("nowhere.toml", self.refused("nowhere.toml", "in", "out"))
        self.assertIn("nowhere: cannot be opened", self.refused("holdfast.toml", "nowhere", "out"))
        self.assertIn("no/out: cannot be written", self.refused("holdfast.toml", "in", "no/out"))
        (self.bench.folder / "seed").unlink()
        self.assertIn("hash_seed_file", self.refused("holdfast.toml", "in", "out"))

    def test_a_configuration_with_faults(self):
        self.bench.write_config("bad.toml", r.config() + "\nsurplus = 1\n")
        self.assertIn("bad.toml:", self.refused("bad.toml", "in", "out"))
        self.assertIn("bad.toml:", self.refused("holdfast.toml", "in", "out", "--apply-at", "1",
                                                "bad.toml"))

    def test_no_capture_at_all(self):
        for content in (b"", b"\n", b"holdfast", bytes(100), os.urandom(3000)):
            (self.bench.folder / "in").write_bytes(content)
            self.assertIn("in: is no pcap or pcapng file", self.refused("holdfast.toml", "in", "out"))
        self.assertIn(".: is no pcap", self.refused("holdfast.toml", ".", "out"))

    def test_a_link_type_that_is_not_known(self):
        self.bench.write_capture([b"x"], link_type=105)
        self.assertIn("link type", self.refused("holdfast.toml", "in", "out"))

    def test_interfaces_of_different_link_types(self):
        packet = bytes(syn(1))
        blocks = [interface(r.RAW_IP), interface(r.ETHERNET), enhanced(1, packet, 0),
                  enhanced(2, bytes(frame(syn(2))), 1)]
        (self.bench.folder / "in").write_bytes(pcapng(blocks))
        done = self.bench.start("holdfast.toml", "in", "out")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))

    def test_a_capture_that_ends_inside_a_packet_is_shown_as_far_as_it_goes(self):
        whole = (self.bench.folder / "in").read_bytes()
        for cut in (1, 40, 60):
            (self.bench.folder / "in").write_bytes(whole[:-cut])
            done = self.bench.start("holdfast.toml", "in", "out", "--json")
            self.assertEqual(done.returncode, 1)
            self.assertIn("in: packet 2 cannot be read: truncated", done.stderr)
            told = json.loads(done.stdout)
            self.assertEqual([packet["verdict"] for packet in told["packets"]], ["forward"] * 2)
            self.assertEqual(len(r.read_pcap(self.bench.folder / "out")), 2)

    def test_absurd_lengths(self):
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, r.ETHERNET)
        for length in (0xFFFFFFFF, 0x7FFFFFFF, 300_000):
            (self.bench.folder / "in").write_bytes(head + struct.pack("<IIII", 0, 0, length, length))
            done = self.bench.start("holdfast.toml", "in", "out")
            self.assertEqual(done.returncode, 1)
            self.assertIn("packet 0 cannot be read", done.stderr)

    def test_the_capture_is_not_overwritten(self):
        before = (self.bench.folder / "in").read_bytes()
        os.link(self.bench.folder / "in", self.bench.folder / "link")
        for out in ("in", "./in", "link"):
            self.assertIn("is the capture that is to be replayed",
                          self.refused("holdfast.toml", "in", out))
        self.assertEqual((self.bench.folder / "in").read_bytes(), before)

    def test_backends_that_are_not_there(self):
        for option in ("--drain", "--down"):
            said = self.refused("holdfast.toml", "in", "out", option, "four/b9")
            self.assertIn('no backend "b9" in pool four: there is b1, b2', said)

    def test_another_seed_is_a_restart(self):
        (self.bench.folder / "other").write_text("ffeeddccbbaa9988\n")
        self.bench.write_config("other.toml", r.config().replace('"seed"', '"other"'))
        self.assertIn("hash seed", self.refused("holdfast.toml", "in", "out", "--apply-at", "1",
                                                "other.toml"))

    def test_an_index_behind_the_capture_is_noted(self):
        self.bench.write_config("next.toml", r.config())
        done = self.bench.start("holdfast.toml", "in", "out", "--json", "--apply-at", "3", "next.toml")
        self.assertEqual(done.returncode, 0)
        self.assertIn("note: the capture has 3 packets, so --apply-at 3 did nothing", done.stderr)

    def test_wrong_use(self):
        for words in ([], ["holdfast.toml"], ["holdfast.toml", "in"],
                      ["holdfast.toml", "in", "out", "more"],
                      ["holdfast.toml", "in", "out", "--nope"],
                      ["holdfast.toml", "in", "out", "--workers", "0"],
                      ["holdfast.toml", "in", "out", "--workers", "129"],
                      ["holdfast.toml", "in", "out", "--workers", "two"],
                      ["holdfast.toml", "in", "out", "--apply-at", "1"],
                      ["holdfast.toml", "in", "out", "--apply-at", "-1", "holdfast.toml"],
                      ["holdfast.toml", "in", "out", "--apply-at", "x", "holdfast.toml"],
                      ["holdfast.toml", "in", "out", "--drain"]):
            with self.subTest(words=words):
                self.refused(*words, status=2)

    def test_a_full_disk_is_told(self):
        said = self.refused("holdfast.toml", "in", "/dev/full")
        self.assertIn("/dev/full: cannot be written", said)

    def test_help(self):
        done = self.bench.start("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("--apply-at INDEX FILE", "--drain POOL/BACKEND", "--json", "Exit codes"):
            self.assertIn(word, done.stdout)
        listed = r.subprocess.run([str(r.CLI), "--help"], capture_output=True, text=True, timeout=10)
        self.assertIn("replay", listed.stdout)


if __name__ == "__main__":
    unittest.main()
