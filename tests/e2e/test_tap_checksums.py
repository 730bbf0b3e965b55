# SPDX-License-Identifier: Apache-2.0
"""The outer UDP checksum left to a port: DPDK's TAP device sums in software what a NIC would sum, so
that what the stage asks of a port meets a driver that is not ours. Needs root.

One test: python3 tests/e2e/test_tap_checksums.py Tap.test_the_port_sums_what_is_tunnelled_over_ipv6
"""

import os
import socket
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from agent_lab import inside  # noqa: E402
from daemon import DAEMON, Daemon, wait_for  # noqa: E402

VIP = "203.0.113.10"
BACKEND = "2001:db8:100::21"
GUE_PORT = 6080
CONFIG = """
[dataplane]
ports = [{ name = "tap", vdev = "net_tap0,iface=hftap0" }]
flow_capacity = 10000
hash_seed_file = "seed"
tunnel_source_v6 = "2001:db8:100::1"
[control]
socket = "{folder}/holdfast.sock"
[[vip]]
address = "203.0.113.10"
[[service]]
name = "web"
vips = ["203.0.113.10"]
ports = "80"
pool = "web"
[[service]]
name = "dns"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "53"
pool = "web"
[[pool]]
name = "web"
table_size = 251
encapsulation = "ENCAPSULATION"
backends = [{ address = "2001:db8:100::21", next_hop = { port = "tap", mac = "02:00:5e:10:00:01", vlan = VLAN } }]
"""


def without_checksum(packet: bytes) -> bytes:
    """An IPv4 UDP packet."""
    return packet[:26] + b"\0\0" + packet[28:]


@unittest.skipIf(os.geteuid() != 0, "needs root: makes a network namespace")
@unittest.skipUnless(DAEMON.is_file(), f"{DAEMON} is not built")
class Tap(unittest.TestCase):
    def setUp(self):
        self.namespace = f"hftap{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.namespace], check=True)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.namespace])

    def start(self, encapsulation: str, vlan: int) -> tuple[Daemon, socket.socket]:
        text = CONFIG.replace("ENCAPSULATION", encapsulation).replace("VLAN", str(vlan))
        daemon = Daemon(text, prefix=["ip", "netns", "exec", self.namespace])
        self.addCleanup(daemon.close)
        daemon.start()
        with inside(self.namespace):
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.addCleanup(wire.close)
        wire.bind(("hftap0", 3))
        wire.settimeout(5)
        return daemon, wire

    def tunnelled(self, wire: socket.socket, packet: bytes) -> bytes:
        """What comes out for `packet`: the outer IPv6 packet."""
        wire.send(f.frame_of(packet))
        while True:
            frame, (_, _, kind, *_) = wire.recvfrom(65536)
            start = 18 if frame[12:14] == b"\x81\0" else 14
            outer = frame[start:]
            if kind != socket.PACKET_OUTGOING and outer[24:40] == socket.inet_pton(
                    socket.AF_INET6, BACKEND):
                return outer

    def test_the_port_sums_what_is_tunnelled_over_ipv6(self):
        for encapsulation, shim, vlan in (("gue", 0, 0), ("gue0", 4, 7)):
            with self.subTest(encapsulation):
                daemon, wire = self.start(encapsulation, vlan)
                wait_for(lambda d=daemon: "fills in UDP checksums" in d.stderr, "the port's offer")
                client = ("198.51.100.7", 40000)
                packets = [f.tcp(client, (VIP, 80), f.ACK, bytes(size)) for size in (0, 33, 1200)]
                for size in (0, 33, 1200):
                    datagram = f.udp(client, (VIP, 53), bytes(range(256))[:size] * (1 + size // 256))
                    packets += [datagram, without_checksum(datagram)]
                for packet in packets:
                    outer = self.tunnelled(wire, packet)
                    udp = outer[40:]
                    self.assertEqual(udp[8 + shim:], packet)
                    self.assertEqual(struct.unpack("!H", udp[2:4])[0], GUE_PORT)
                    self.assertNotEqual(udp[6:8], b"\0\0")
                    pseudo = outer[8:40] + struct.pack("!II", len(udp), f.UDP)
                    self.assertEqual(f.checksum(pseudo + udp), 0)
                self.assertEqual(daemon.stop(), 0, daemon.stderr)


if __name__ == "__main__":
    unittest.main()
