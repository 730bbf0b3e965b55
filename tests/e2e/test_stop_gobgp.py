# SPDX-License-Identifier: Apache-2.0
"""Stopping holdfastd beside a real gobgpd that does not answer just then: no route outlives the daemon.
Without root, without packets and without a router."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from daemon import Daemon, wait_for  # noqa: E402

CONFIG = """
[dataplane]
ports = [{ name = "p0", vdev = "net_null0,no-rx=1" }]
workers = 1
hash_seed_file = "seed"
tunnel_source_v4 = "192.0.2.9"
[control]
socket = "{folder}/holdfast.sock"
linger = "300ms"
[bgp]
gobgp = "GOBGP"
next_hop = "192.0.2.5"
next_hop_v6 = "2001:db8:1::5"
[[vip]]
address = "203.0.113.10"
[[vip]]
address = "2001:db8::10"
[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8::10"]
ports = "80"
pool = "web"
[[pool]]
name = "web"
table_size = 1009
backends = [
  { name = "b1", address = "192.0.2.1", next_hop = { port = "p0", mac = "02:00:00:00:01:01", mtu = 1600 } },
]
"""
GLOBAL = """
[global.config]
  as = 64512
  router-id = "192.0.2.5"
  port = -1
"""


class Gobgpd:
    """Its API is a TCP port of the loopback interface; no BGP port."""

    def __init__(self, config: str | None):
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-gobgp-")
        path = Path(self._folder.name) / "gobgpd.toml"
        path.write_text(config or "")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            ["gobgpd", *(["-f", str(path)] if config else []), "--pprof-disable", "--api-hosts",
             f"127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def rib(self) -> set[str]:
        prefixes = set()
        for family in ("ipv4", "ipv6"):
            done = subprocess.run(
                ["gobgp", "-p", str(self.port), "global", "rib", "-a", family, "-j"],
                capture_output=True, text=True, timeout=10, check=True)
            prefixes |= set(json.loads(done.stdout or "{}"))
        return prefixes


@unittest.skipUnless(shutil.which("gobgpd"), "needs gobgpd")
class StopBesideGobgpd(unittest.TestCase):
    def begin(self, config: str | None = GLOBAL) -> None:
        self.gobgpd = Gobgpd(config)
        self.addCleanup(self.gobgpd.close)
        wait_for(self.gobgpd.listens, "gobgpd to listen")
        self.daemon = Daemon(CONFIG.replace("GOBGP", f"127.0.0.1:{self.gobgpd.port}"))
        self.addCleanup(self.daemon.close)
        self.daemon.start()

    def announced(self) -> None:
        wait_for(lambda: len(self.gobgpd.rib()) == 2, "both routes")

    def state(self) -> str:
        return self.daemon.ask("bgp")["state"]

    def ended(self) -> float:
        """Seconds that a stop took."""
        begin = time.monotonic()
        self.assertEqual(self.daemon.process.wait(10), 0, self.daemon.stderr)
        return time.monotonic() - begin

    def test_a_gobgpd_that_hangs_at_the_stop_removes_the_routes_when_it_goes_on(self):
        self.begin()
        self.announced()
        self.gobgpd.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: self.state() == "hung", "the daemon to see it")
        time.sleep(2.5)  # until holdfastd has begun a new connection, which nobody takes
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertLess(self.ended(), 4)
        self.assertIn("the withdrawal is not confirmed", self.daemon.stderr)
        self.gobgpd.process.send_signal(signal.SIGCONT)
        wait_for(lambda: not self.gobgpd.rib(), "the removals to be done", 2)

    def test_a_stop_after_a_crash_withdraws_what_the_earlier_run_left(self):
        self.begin()
        self.announced()
        self.daemon.kill()
        self.gobgpd.process.send_signal(signal.SIGSTOP)  # so that no answer comes before the stop
        self.daemon.start()
        self.daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.gobgpd.process.send_signal(signal.SIGCONT)
        self.assertLess(self.ended(), 3)
        self.assertEqual(self.gobgpd.rib(), set())
        self.assertIn("stopping: withdrawn", self.daemon.stderr)

    def test_without_bgp_in_gobgpd_or_without_gobgpd_a_stop_is_quick(self):
        self.begin(None)
        wait_for(lambda: self.state() == "not started", "the daemon to see it")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertLess(self.ended(), 1)
        self.gobgpd.close()
        self.daemon.start()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertLess(self.ended(), 1)
        self.assertNotIn("not confirmed", self.daemon.stderr)


if __name__ == "__main__":
    unittest.main()
