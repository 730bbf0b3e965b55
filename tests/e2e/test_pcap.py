# SPDX-License-Identifier: Apache-2.0
"""The real holdfastd over capture files: packets in, packets out, byte for byte. Needs no root."""

import collections
import dataclasses
import os
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import DAEMON, NOBODY, Daemon  # noqa: E402

VIP4, VIP6 = "203.0.113.10", "2001:db8:203::10"
SOURCE4, SOURCE6 = "192.0.2.1", "2001:db8:1::1"
BACKENDS4 = {"192.0.2.21": "02:00:5e:10:00:21", "192.0.2.22": "02:00:5e:10:00:22"}
BACKENDS6 = {"2001:db8:2::21": "02:00:5e:10:06:21", "2001:db8:2::22": "02:00:5e:10:06:22"}

CONFIG = """
[dataplane]
ports = [{ports}]
workers = {workers}
flow_capacity = 10000
hash_seed_file = "seed"
tunnel_source_v4 = "192.0.2.1"
tunnel_source_v6 = "2001:db8:1::1"
[control]
socket = "{folder}/holdfast.sock"
[[vip]]
address = "203.0.113.10"
[[vip]]
address = "2001:db8:203::10"
[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "tcp"
ports = "80"
pool = "four"
[[service]]
name = "web-six"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "tcp"
ports = "443"
pool = "six"
[[service]]
name = "dns"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "udp"
ports = "53"
pool = "four"
[[service]]
name = "tagged"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "7"
pool = "vlan"
[[pool]]
name = "four"
table_size = 251
backends = [
  { address = "192.0.2.21", next_hop = { port = "{out}", mac = "02:00:5e:10:00:21" } },
  { address = "192.0.2.22", next_hop = { port = "{out}", mac = "02:00:5e:10:00:22" } },
]
[[pool]]
name = "six"
table_size = 251
backends = [
  { address = "2001:db8:2::21", next_hop = { port = "{out}", mac = "02:00:5e:10:06:21" } },
  { address = "2001:db8:2::22", next_hop = { port = "{out}", mac = "02:00:5e:10:06:22" } },
]
[[pool]]
name = "vlan"
table_size = 251
backends = [
  { address = "192.0.2.31", next_hop = { port = "{out}", mac = "02:00:5e:10:00:31", vlan = 7 } },
]
"""

ONE_PORT = '{ name = "p", vdev = "net_pcap0,rx_pcap={folder}/in,tx_pcap={folder}/out" }'


def config(ports: str = ONE_PORT, workers: int = 1, out: str = "p") -> str:
    filled = CONFIG.replace("{ports}", ports).replace("{workers}", str(workers))
    return filled.replace("{out}", out)


def client(number: int, family: int = 4) -> tuple[str, int]:
    address = f"198.51.100.{number % 200 + 1}" if family == 4 else f"2001:db8:99::{number + 1:x}"
    return address, 10000 + number


def forward(packets: list[bytes], **options) -> list[bytes]:
    """Sends `packets` (IP) through one holdfastd; the frames that come out, in their order. Each
    is to be forwarded."""
    outcome = run_frames([f.frame_of(packet) for packet in packets], **options)
    if len(outcome.frames) != len(packets):
        raise AssertionError(f"{len(outcome.frames)} of {len(packets)} came out: {outcome.dropped}")
    return outcome.frames


@dataclasses.dataclass(frozen=True)
class Outcome:
    frames: list[bytes]  # that came out, in their order
    stats: dict  # as the CLI shows them
    dropped: dict[str, int]  # by reason, those that happened


def run_frames(frames: list[bytes], **options) -> Outcome:
    daemon = Daemon(config(), **options)
    try:
        f.write_pcap(daemon.folder / "in", frames)
        daemon.start()
        stats = daemon.stats_after(len(frames))
        dropped = {row["reason"]: row["total"] for row in daemon.ask("drops")["reasons"]}
        if daemon.stop() != 0:
            raise AssertionError(daemon.stderr)
        left = os.listdir(daemon.folder / "tmp")
        if left:
            raise AssertionError(f"left behind: {left}")
        return Outcome(f.read_pcap(daemon.folder / "out"), stats, dropped)
    finally:
        daemon.close()


class Forwarding(unittest.TestCase):
    def assert_tunnelled(self, packet: bytes, frame: bytes, six: bool) -> f.Tunnelled:
        """`frame` carries `packet` unchanged to one of the backends, as RFC 2003 and RFC 2473 and
        architecture.md want it."""
        got = f.take_apart(frame)
        backends = BACKENDS6 if six else BACKENDS4
        self.assertEqual(got.inner, packet)
        self.assertEqual(got.rest, b"")
        self.assertIn(got.destination, backends)
        self.assertEqual(got.destination_mac.hex(":"), backends[got.destination])
        self.assertEqual(got.source, SOURCE6 if six else SOURCE4)
        self.assertEqual(got.protocol, f.IPIP if packet[0] >> 4 == 4 else f.IP6IP)
        self.assertEqual(got.ttl, 64)
        self.assertTrue(got.dont_fragment)
        self.assertTrue(got.checksum_ok)
        self.assertIsNone(got.vlan)
        return got

    def test_every_mix_of_families_is_tunnelled_unchanged(self):
        for family, vip in ((4, VIP4), (6, VIP6)):
            for port, six in ((80, False), (443, True)):
                with self.subTest(inner=family, outer=6 if six else 4):
                    packets = [
                        f.tcp(client(n, family), (vip, port), f.SYN if n % 2 else f.ACK, b"x" * n)
                        for n in range(100)
                    ]
                    for packet, frame in zip(packets, forward(packets), strict=True):
                        self.assert_tunnelled(packet, frame, six)

    def test_flows_are_spread_and_each_stays_on_its_backend(self):
        flows = range(200)
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in flows]
        for size in (1, 200, 1400):
            packets += [f.tcp(client(n), (VIP4, 80), f.ACK, bytes(size)) for n in flows]
        backends = [f.take_apart(frame).destination for frame in forward(packets)]
        first = backends[: len(flows)]
        for again in range(1, 4):
            self.assertEqual(first, backends[again * len(flows) : (again + 1) * len(flows)])
        shares = collections.Counter(first)
        self.assertEqual(set(shares), set(BACKENDS4))
        self.assertGreater(min(shares.values()), 60)

    def test_datagrams_are_forwarded(self):
        packets = [f.udp(client(n), (VIP4, 53), b"question") for n in range(64)]
        packets += [f.udp(client(n, 6), (VIP6, 53), b"question") for n in range(64)]
        for packet, frame in zip(packets, forward(packets), strict=True):
            self.assert_tunnelled(packet, frame, six=False)

    def test_congestion_marks_are_copied_to_the_outer_header(self):
        for ecn in range(4):
            packets = [f.tcp(client(1), (VIP4, 80), f.ACK, b"x", traffic_class=ecn)]
            packets += [f.tcp(client(1, 6), (VIP6, 443), f.ACK, b"x", traffic_class=ecn)]
            for frame in forward(packets):
                self.assertEqual(f.take_apart(frame).traffic_class & 3, ecn)

    def test_ethernet_padding_does_not_enter_the_tunnel(self):
        packet = f.tcp(client(1), (VIP4, 80), f.ACK)
        padded = f.frame_of(packet).ljust(60, b"\xee")
        self.assertGreater(len(padded), len(f.frame_of(packet)))
        (frame,) = run_frames([padded]).frames
        self.assert_tunnelled(packet, frame, six=False)

    def test_up_to_two_vlan_tags_come_off_and_the_next_hops_tag_goes_on(self):
        packet = f.tcp(client(1), (VIP4, 80), f.SYN)
        for vlans in ((5,), (5, 6)):
            (frame,) = run_frames([f.frame_of(packet, vlans)]).frames
            self.assert_tunnelled(packet, frame, six=False)
        datagram = f.udp(client(1), (VIP4, 7), b"x")
        (frame,) = forward([datagram])
        got = f.take_apart(frame)
        self.assertEqual((got.vlan, got.inner), (7, datagram))

    def test_an_icmp_error_goes_where_its_flow_goes(self):
        flows = [(client(n), (VIP4, 80)) for n in range(30)]
        flows += [(client(n, 6), (VIP6, 80)) for n in range(30)]
        packets = [f.tcp(*flow, f.SYN) for flow in flows]
        for source, vip in flows:
            sent = f.tcp(vip, source, f.ACK, bytes(1400))  # the backend's answer, as a router saw it
            router = "198.18.0.1" if ":" not in vip[0] else "2001:db8:77::1"
            quoted = sent[:28] if ":" not in vip[0] else sent[:600]
            packets.append(f.icmp_too_big(router, vip[0], 1400, quoted))
        out = [f.take_apart(frame).destination for frame in forward(packets)]
        self.assertEqual(out[: len(flows)], out[len(flows) :])

    def test_full_size_packets_pass_when_the_next_hop_has_room(self):
        packet = f.tcp(client(1), (VIP4, 80), f.ACK, bytes(1500 - 20 - 40))
        (frame,) = forward([packet])
        self.assert_tunnelled(packet, frame, six=False)


class Counting(unittest.TestCase):
    def test_each_packet_is_counted_under_its_reason(self):
        good = f.tcp(client(1), (VIP4, 80), f.SYN)
        by_reason = {
            "unknown_port": [f.frame_of(f.tcp(client(1), (VIP4, 81), f.SYN))],
            "unknown_protocol": [f.frame_of(f.ip("198.51.100.1", VIP4, 47, bytes(20)))],
            # The port has no kernel beside it.
            "no_kernel_path": [
                f.frame_of(f.tcp(client(1), ("203.0.113.11", 80), f.SYN)),
                f.ethernet(bytes(46), f.ARP),
                f.frame_of(good, (1, 2, 3)),
            ],
            "ipv4_fragment": [
                f.frame_of(f.tcp(client(1), (VIP4, 80), f.ACK, bytes(64), fragment=0x2000))
            ],
            "l2_truncated": [f.frame_of(good)[:13]],
            "ipv4_bad_total_length": [f.frame_of(good[:2] + struct.pack("!H", 1000) + good[4:])],
            "ipv4_martian": [f.frame_of(f.tcp(("127.0.0.1", 5), (VIP4, 80), f.SYN))],
            "too_big": [f.frame_of(f.tcp(client(1), (VIP4, 80), f.ACK, bytes(1450)))] * 2,
            # Longer than a buffer, so the driver spreads it over several.
            "multi_segment": [f.frame_of(f.tcp(client(1), (VIP4, 80), f.ACK, bytes(8000)))],
        }
        forwarded = [f.frame_of(good)] * 5
        dropped = [frame for frames in by_reason.values() for frame in frames]
        outcome = run_frames(dropped + forwarded)
        self.assertEqual(outcome.dropped, {name: len(those) for name, those in by_reason.items()})
        self.assertEqual([f.take_apart(frame).inner for frame in outcome.frames], [good] * 5)
        packets = outcome.stats["packets"]
        self.assertEqual(packets["received"], len(dropped) + 5)
        self.assertEqual(packets["dropped"], len(dropped))
        self.assertEqual(packets["forwarded"], 5)
        self.assertEqual(packets["transmitted"], 5)
        self.assertEqual(packets["received_bytes"], sum(map(len, dropped + forwarded)))
        self.assertEqual(packets["forwarded_bytes"], sum(map(len, outcome.frames)))
        (port,) = outcome.stats["ports"]
        self.assertEqual((port["name"], port["received"]), ("p", len(dropped) + 5))
        self.assertEqual(port["transmitted"], 5)

    def test_flows_are_counted_where_they_are(self):
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(40)]
        packets += [f.tcp(client(n), (VIP4, 80), f.ACK, b"data") for n in range(25)]
        table = run_frames([f.frame_of(packet) for packet in packets]).stats["flow_table"]
        self.assertEqual((table["embryonic"], table["established"]), (15, 25))
        self.assertEqual((table["new_flows"], table["hits"]), (40, 25))


class Lookup(unittest.TestCase):
    def test_lookup_says_where_the_packets_of_each_flow_went(self):
        flows = [(client(n), (VIP4, 80)) for n in range(20)]
        flows += [(client(n, 6), (VIP6, 443)) for n in range(20)]
        packets = [f.tcp(*flow, flags, b"") for flow in flows for flags in (f.SYN, f.ACK)]
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        f.write_pcap(daemon.folder / "in", [f.frame_of(packet) for packet in packets])
        daemon.start()
        daemon.stats_after(len(packets))

        def look_up(flow):
            ends = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in flow]
            return daemon.ask("lookup", "tcp", *ends)

        told = [look_up(flow) for flow in flows]
        (fresh, vip) = (client(50), (VIP4, 80))
        unknown = look_up((fresh, vip))
        self.assertEqual(daemon.stop(), 0, daemon.stderr)
        went = [f.take_apart(frame).destination for frame in f.read_pcap(daemon.folder / "out")]
        self.assertEqual(went[::2], went[1::2])
        for answer, backend in zip(told, went[::2], strict=True):
            pool = "six" if answer["destination"].startswith("[") else "four"
            self.assertEqual(answer["pool"], pool)
            (table,) = answer["flow_tables"]
            self.assertEqual((table["worker"], table["state"], table["backend"]),
                             (0, "established", f"{pool}/{backend}"))
            self.assertEqual(answer["workers"][0]["next"]["rule"], "flow_table")
            self.assertEqual(answer["base_owner"]["backend"], f"{pool}/{backend}")
        self.assertEqual(unknown["flow_tables"], [])
        self.assertEqual(unknown["workers"][0]["next"]["rule"], "slot")


class Ports(unittest.TestCase):
    def run_ports(self, ports: str, inputs: dict, outputs: list[str], total: int, **options):
        with self.subTest(ports=ports):
            daemon = Daemon(config(ports, **options))
            self.addCleanup(daemon.close)
            for name, packets in inputs.items():
                f.write_pcap(daemon.folder / name, [f.frame_of(packet) for packet in packets])
            daemon.start()

            daemon.stats_after(total)
            self.assertEqual(daemon.stop(), 0, daemon.stderr)
            return {name: f.read_pcap(daemon.folder / name) for name in outputs}

    def test_a_packet_leaves_on_the_port_of_its_next_hop(self):
        ports = (
            '{ name = "in", vdev = "net_pcap0,rx_pcap={folder}/in,tx_pcap={folder}/back" }, '
            '{ name = "other", vdev = "net_pcap1,rx_pcap={folder}/none,tx_pcap={folder}/out" }'
        )
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(100)]
        out = self.run_ports(
            ports, {"in": packets, "none": []}, ["back", "out"], 100, out="other"
        )
        self.assertEqual(out["back"], [])
        self.assertEqual([f.take_apart(frame).inner for frame in out["out"]], packets)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two CPUs")
    def test_two_workers_share_the_queues_and_agree_on_backends(self):
        ports = (
            '{ name = "p", queues = 2, vdev = "net_pcap0,rx_pcap={folder}/in0,rx_pcap={folder}/in1,'
            'tx_pcap={folder}/out0,tx_pcap={folder}/out1" }'
        )
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(300)]
        again = [f.tcp(client(n), (VIP4, 80), f.ACK, b"data") for n in range(300)]
        out = self.run_ports(
            ports, {"in0": packets, "in1": again}, ["out0", "out1"], 600, workers=2
        )
        first, second = ([f.take_apart(frame) for frame in out[name]] for name in ("out0", "out1"))
        self.assertEqual([got.inner for got in first], packets)
        self.assertEqual([got.inner for got in second], again)
        self.assertEqual([g.destination for g in first], [g.destination for g in second])

    @unittest.skipIf(os.geteuid() != 0, "needs root: changes to another user")
    def test_no_privilege_is_needed(self):
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(10)]
        self.assertEqual(len(forward(packets, user=NOBODY)), 10)


class Faults(unittest.TestCase):
    """Each ends the start with one sentence that says what to do."""

    def assert_refused(self, text: str, *words: str, status: int = 1, prepare=None) -> str:
        daemon = Daemon(text)
        self.addCleanup(daemon.close)
        if prepare:
            prepare(daemon.folder)
        got, said = daemon.run_to_end()
        self.assertEqual(got, status, said)
        self.assertEqual(said.count("\n"), 1, said)
        for word in words:
            self.assertIn(word, said)
        return said

    def test_a_broken_config(self):
        said = self.assert_refused(config().replace("[[vip]]", "[[vip"), "holdfast.toml:")
        self.assertRegex(said, r"holdfast\.toml:\d+:\d+: ")

    def test_a_missing_capture(self):
        self.assert_refused(config(), "port p", "net_pcap0")

    def test_an_unknown_driver(self):
        self.assert_refused(config('{ name = "p", vdev = "net_nosuch0" }'), "port p", "net_nosuch0")

    def test_not_a_network_driver(self):
        self.assert_refused(config('{ name = "p", vdev = "crypto_null0" }'), "crypto_null0", "net_pcap0")

    def test_more_workers_than_queues(self):
        self.assert_refused(config(workers=2), 'port "p"', "queues = 2")

    def test_more_queues_than_the_device_has(self):
        ports = ONE_PORT.replace('name = "p"', 'name = "p", queues = 3')
        self.assert_refused(
            config(ports),
            "port p",
            "1 queue",
            "queues = 3",
            prepare=lambda folder: f.write_pcap(folder / "in", []),
        )

    def test_more_workers_than_cpus(self):
        cpus = len(os.sched_getaffinity(0))
        ports = f'{{ name = "p", queues = {cpus + 1}, vdev = "net_null0" }}'
        self.assert_refused(config(ports, workers=cpus + 1), f"{cpus} CPU", "workers")

    def test_an_empty_config_is_told_what_it_needs(self):
        daemon = Daemon("")
        self.addCleanup(daemon.close)
        got, said = daemon.run_to_end()
        self.assertEqual(got, 1, said)
        self.assertIn('[dataplane] needs "ports"', said)

    def test_files_that_are_too_large(self):
        self.assert_refused(config(), "seed: is larger than 4 KiB: not a hash seed",
                            prepare=lambda folder: (folder / "seed").write_text("0" * 5000))
        self.assert_refused("#" * (16 << 20) + "\n", "is larger than 16 MiB: not a configuration")

    def test_a_seed_that_is_a_folder(self):
        self.assert_refused(config().replace('"seed"', '"tmp"'),
                            "tmp: can not be read: Is a directory")

    def test_a_missing_seed(self):
        self.assert_refused(config().replace('"seed"', '"noseed"'), "noseed: can not be read",
                            "[dataplane] hash_seed_file of ", "holdfast.toml",
                            "make it with `openssl rand -hex 8`")

    def test_a_seed_that_is_none(self):
        self.assert_refused(config(), "16 hexadecimal digits", "[dataplane] hash_seed_file of ",
                            "openssl rand -hex 8",
                            prepare=lambda folder: (folder / "seed").write_text("seed\n"))

    @unittest.skipIf(os.geteuid() != 0, "needs root: becomes another user")
    def test_files_that_may_not_be_read_are_said_what_to_do_about(self):
        for name, words in (("seed", ["[dataplane] hash_seed_file of "]), ("holdfast.toml", [])):
            with self.subTest(name):
                daemon = Daemon(config(), user=NOBODY)
                self.addCleanup(daemon.close)
                (daemon.folder / name).chmod(0)
                got, said = daemon.run_to_end()
                self.assertEqual(got, 4, said)
                self.assertEqual(said.count("\n"), 1, said)
                for word in (f"{name}: can not be read: Permission denied", "run this as root", *words):
                    self.assertIn(word, said)

    def test_a_missing_config(self):
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        daemon.config_path.unlink()
        got, said = daemon.run_to_end()
        self.assertEqual(got, 1, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("holdfast.toml: can not be read: No such file or directory: name the", said)

    def test_a_pci_device_without_huge_pages(self):
        # No machine that runs this has a NIC there; with huge pages the device is what is missing.
        self.assert_refused(config('{ name = "p", pci = "0000:ff:1f.7" }'), "0000:ff:1f.7")

    def test_usage(self):
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        got, said = daemon.run_to_end("sur\nplus\x1b" + "s" * 70_000)
        self.assertEqual(got, 2, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.strip().isprintable(), said)
        self.assertLess(len(said), 700)

    def test_an_answer_that_can_not_be_written_is_exit_1_with_a_line(self):
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        for words in (["--version"], ["--help"], ["--config", str(daemon.config_path), "--check"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                result = subprocess.run([DAEMON, *words], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=20)
                self.assertEqual(result.returncode, 1, result)
                self.assertIn("standard output can not be written: No space", result.stderr)


if __name__ == "__main__":
    unittest.main()
