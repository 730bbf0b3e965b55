# SPDX-License-Identifier: Apache-2.0
"""Two holdfastd joined by a shared-memory link (net_memif), each tunnelling to the other. Needs no
root. What arrives is a tunnel, which no service takes: it is counted as unknown_protocol, and that
is how a test sees that it came."""

import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import Daemon, wait_for  # noqa: E402

CONFIG = """
[dataplane]
ports = [
  {{ name = "in", vdev = "net_pcap0,rx_pcap={{folder}}/in,infinite_rx=1,tx_pcap={{folder}}/out" }},
  {{ name = "link", vdev = "net_memif0,role={role},id=0,socket={link},socket-abstract=no" }},
]
flow_capacity = 10000
hash_seed_file = "seed"
tunnel_source_v4 = "192.0.2.1"
[control]
socket = "{{folder}}/holdfast.sock"
[[vip]]
address = "{own}"
[[service]]
name = "web"
vips = ["{own}"]
ports = "80"
pool = "other"
[[pool]]
name = "other"
table_size = 251
backends = [{{ address = "{other}", next_hop = {{ port = "link", mac = "02:00:5e:10:00:01" }} }}]
"""


class TwoDaemons(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.addCleanup(folder.cleanup)
        self.link = Path(folder.name) / "link"

    def daemon(self, role: str, own: str, other: str) -> Daemon:
        daemon = Daemon(CONFIG.format(role=role, own=own, other=other, link=self.link))
        self.addCleanup(daemon.close)
        packets = [f.tcp(("198.51.100.7", 1000 + n), (own, 80), f.ACK, b"data") for n in range(64)]
        f.write_pcap(daemon.folder / "in", [f.frame_of(packet) for packet in packets])
        return daemon.start()

    def client(self) -> Daemon:
        return self.daemon("client", "203.0.113.2", "203.0.113.1")

    @staticmethod
    def arrived(daemon: Daemon) -> int:
        reasons = daemon.ask("drops")["reasons"]
        return sum(row["total"] for row in reasons if row["reason"] == "unknown_protocol")

    def assert_flows_to(self, *daemons: Daemon) -> None:
        before = [self.arrived(daemon) for daemon in daemons]
        for daemon, then in zip(daemons, before, strict=True):
            wait_for(lambda d=daemon, t=then: self.arrived(d) > t + 1000, "packets over the link")

    def outlives(self, server: Daemon, end: str) -> bool:
        """Whether the server still runs when its peer has ended in that way. DPDK's driver takes the
        shared memory away while a worker may be reading it (docs/ports.md)."""
        client = self.client()
        self.assert_flows_to(server, client)
        getattr(client, end)()
        time.sleep(0.1)
        status = server.process.poll()
        self.assertIn(status, (None, -signal.SIGSEGV), server.stderr)
        return status is None

    def test_packets_cross_in_both_directions_and_the_server_outlives_its_peers(self):
        server = self.daemon("server", "203.0.113.1", "203.0.113.2")
        crashes = 0
        for end in ("stop", "kill", "stop"):
            with self.subTest(end):
                while not self.outlives(server, end):
                    crashes += 1
                    self.assertLess(crashes, 3, "the server dies with its peers")
                    server = self.daemon("server", "203.0.113.1", "203.0.113.2")
        # Without a peer the port takes nothing, and each packet is still accounted for.
        wait_for(lambda: server.ask("stats")["workers"][0]["packets"]["dropped"] > 0, "drops")
        self.assertEqual(server.stop(), 0, server.stderr)


if __name__ == "__main__":
    unittest.main()
