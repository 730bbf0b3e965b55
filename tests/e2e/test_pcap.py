# SPDX-License-Identifier: Apache-2.0
"""The real holdfastd over capture files: packets in, packets out, byte for byte. Needs no root."""

import collections
import os
import socket
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from captures import (  # noqa: E402
    BACKENDS4,
    BACKENDS6,
    SOURCE4,
    SOURCE6,
    VIP4,
    VIP6,
    client,
    config,
    forward,
    run_frames,
)
from daemon import NOBODY, Daemon  # noqa: E402


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

    def test_jumbo_frames_pass_which_the_driver_spreads_over_several_buffers(self):
        # A buffer holds 3712 bytes; the tunnel's way takes 9000.
        wide = config().replace("next_hop = {", "next_hop = { mtu = 9000,")
        packets = []
        for number, size in enumerate((3600, 3658, 3659, 3700, 7000, 7500, 8900)):
            data = bytes(n * 7 % 251 for n in range(size))
            packets += [f.tcp(client(number), (VIP4, 80), f.ACK, data),
                        f.udp(client(number), (VIP4, 53), data),
                        f.tcp(client(number, 6), (VIP6, 80), f.ACK, data)]
        frames = [f.frame_of(packet, (5,) if n % 2 else ()) for n, packet in enumerate(packets)]
        padded = f.frame_of(packets[-1]) + bytes(200)
        outcome = run_frames([*frames, padded], text=wide)
        self.assertEqual(outcome.dropped, {})
        for packet, frame in zip([*packets, packets[-1]], outcome.frames, strict=True):
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
            "l2_truncated": [f.frame_of(good)[:13]],
            "ipv4_bad_total_length": [f.frame_of(good[:2] + struct.pack("!H", 1000) + good[4:])],
            "ipv4_source_loopback": [f.frame_of(f.tcp(("127.0.0.1", 5), (VIP4, 80), f.SYN))],
        }
        forwarded = [f.frame_of(good)] * 5
        too_big = [f.frame_of(f.tcp(client(1), (VIP4, 80), f.ACK, bytes(1450)))] * 2
        dropped = [frame for frames in by_reason.values() for frame in frames]
        outcome = run_frames(dropped + too_big + forwarded)
        self.assertEqual(outcome.dropped, {name: len(those) for name, those in by_reason.items()})
        answers, tunnelled = outcome.frames[:2], outcome.frames[2:]
        for answer in answers:
            # Fragmentation needed, back to the client; the backend's next hop takes 1500.
            self.assertEqual(answer[26:34], socket.inet_aton(VIP4) + socket.inet_aton(client(1)[0]))
            self.assertEqual(struct.unpack_from("!BB4xH", answer, 34), (3, 4, 1480))
        self.assertEqual([f.take_apart(frame).inner for frame in tunnelled], [good] * 5)
        packets = outcome.stats["packets"]
        received = dropped + too_big + forwarded
        self.assertEqual(packets["received"], len(received))
        self.assertEqual(packets["dropped"], len(dropped))
        self.assertEqual(packets["answered"], 2)
        self.assertEqual(packets["forwarded"], 5)
        self.assertEqual(packets["transmitted"], 7)
        self.assertEqual(packets["received_bytes"], sum(map(len, received)))
        self.assertEqual(packets["forwarded_bytes"], sum(map(len, tunnelled)))
        (port,) = outcome.stats["ports"]
        self.assertEqual((port["name"], port["received"]), ("p", len(received)))
        self.assertEqual(port["transmitted"], 7)

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

    def test_a_device_may_have_long_arguments(self):
        deep = "{folder}/" + 30 * "./"
        ports = f'{{ name = "p", vdev = "net_pcap0,rx_pcap={deep}in,tx_pcap={deep}out" }}'
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(10)]
        out = self.run_ports(ports, {"in": packets}, ["out"], 10)
        self.assertEqual([f.take_apart(frame).inner for frame in out["out"]], packets)

    @unittest.skipIf(os.geteuid() != 0, "needs root: changes to another user")
    def test_no_privilege_is_needed(self):
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(10)]
        self.assertEqual(len(forward(packets, user=NOBODY)), 10)


if __name__ == "__main__":
    unittest.main()
