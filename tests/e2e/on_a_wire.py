# SPDX-License-Identifier: Apache-2.0
"""holdfastd on a kernel interface of a Wire, for tests: its configuration, what it tunnels, and how
it refuses to start."""

import os
import re
import shlex
import socket
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import Daemon  # noqa: E402
from wire import Wire  # noqa: E402

VIP4, VIP6 = "203.0.113.10", "2001:db8:203::10"

_CONFIG = """
[dataplane]
ports = [{ name = "uplink", interface = "INTERFACE", queues = QUEUES }]
workers = WORKERS
busy_poll = BUSY
flow_capacity = 1000000
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
pool = "web"
[[pool]]
name = "web"
table_size = 251
backends = [{ address = "192.0.2.21", next_hop = { port = "uplink", mac = "PEER", mtu = 1600 } }]
"""
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+ (debug|info|warning|error): ")


def needs_root() -> None:
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root: makes network namespaces")


def without_log(said: str) -> list[str]:
    """The lines of standard error that are not the log's."""
    return [line for line in said.splitlines() if not _LOG_LINE.match(line)]


def advice_in(sentence: str) -> list[list[str]]:
    """The commands that a sentence tells an operator to type, as argument lists."""
    return [shlex.split(command) for command in re.findall(r"`([^`]+)`", sentence)]


class WithDaemon(unittest.TestCase):
    """Tests that start daemons and see them refuse."""

    def run_daemon(self, text: str, **options) -> Daemon:
        daemon = Daemon(text, **options)
        self.addCleanup(daemon.close)
        return daemon

    def assert_refused(self, daemon: Daemon, *words: str, status: int = 1) -> str:
        """It ends with one sentence that has these words; returns that."""
        got, said = daemon.run_to_end()
        self.assertEqual(got, status, said)
        lines = without_log(said)
        self.assertEqual(len(lines), 1, said)
        for word in words:
            self.assertIn(word, lines[0])
        return lines[0]


class OnAWire(WithDaemon):
    queues = 1
    workers = 1

    @classmethod
    def setUpClass(cls):
        cls.wire = Wire(queues=cls.queues, vips=(VIP4, VIP6))
        cls.addClassCleanup(cls.wire.close)

    def config(self, interface="eth0", queues=None, workers=None, busy=False) -> str:
        text = _CONFIG.replace("INTERFACE", interface).replace("PEER", self.wire.mac_peer.hex(":"))
        text = text.replace("QUEUES", str(queues or self.queues))
        text = text.replace("WORKERS", str(workers or self.workers))
        return text.replace("BUSY", "true" if busy else "false")

    def daemon(self, text: str | None = None, **options) -> Daemon:
        prefix = ["ip", "netns", "exec", self.wire.lb, *options.pop("prefix", [])]
        daemon = self.run_daemon(text or self.config(), prefix=prefix, **options)
        self.wire.drain()
        return daemon

    def tunnelled(self, packets: list[bytes], seconds: float = 5.0) -> list[bytes]:
        """Sends `packets`; the insides of the tunnelled ones that come back."""
        self.wire.send(*(f.frame_of(packet) for packet in packets))
        return self.tunnels(len(packets), seconds)

    def tunnels(self, count: int, seconds: float = 5.0) -> list[bytes]:
        def to_backend(frame: bytes) -> bool:
            return frame[12:14] == b"\x08\x00" and frame[30:34] == socket.inet_aton("192.0.2.21")

        return [f.take_apart(frame).inner for frame in self.wire.receive(to_backend, count, seconds)]

    def answers(self, *frames: bytes, seconds: float = 0.5) -> list[bytes]:
        """What lb's kernel says to `frames`: everything from a VIP that is no tunnel."""
        vips = (socket.inet_aton(VIP4), socket.inet_pton(socket.AF_INET6, VIP6))

        def from_vip(frame: bytes) -> bool:
            return frame[26:30] == vips[0] or frame[22:38] == vips[1]

        self.wire.drain()
        self.wire.send(*frames)
        return self.wire.receive(from_vip, len(frames), seconds)

    def assert_forwards(self, daemon: Daemon) -> None:
        """Starts it, sees it work, and stops it."""
        daemon.start()
        packets = [syn(n) for n in range(20)]
        self.assertEqual(self.tunnelled(packets), packets)
        self.assertEqual(daemon.stop(), 0, daemon.stderr)


def syn(number: int, port: int = 80, six: bool = False) -> bytes:
    if six:
        return f.tcp((f"2001:db8:99::{number + 1:x}", 9000), (VIP6, port), f.SYN)
    return f.tcp(("198.51.100.7", 10000 + number), (VIP4, port), f.SYN)
