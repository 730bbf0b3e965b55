# SPDX-License-Identifier: Apache-2.0
"""Next hops as the real control plane learns them from a real kernel: two namespaces with two links
between them, and control_under_test instead of a data plane. Needs root."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HOLDFAST_BUILD", ROOT / "build"))
HOLDFAST = BUILD / "ctrl" / "holdfast"
CONTROL = BUILD / "tests" / "control_under_test"

# Two links lb:e0 - router:e0 (10.9.0.0/24, fd09:0::/64) and lb:e1 - router:e1 (10.9.1.0/24, ...).
ROUTER_MAC = ["02:00:00:00:00:02", "02:00:00:00:01:02"]
LB_MAC = ["02:00:00:00:00:01", "02:00:00:00:01:01"]

CONFIG = """
[site]
name = "test"
[dataplane]
ports = [{{name = "p0", interface = "e0"}}, {{name = "p1", interface = "e1"}}]
hash_seed_file = "seed"
[control]
socket = "{socket}"
[[vip]]
address = "203.0.113.10"
[[service]]
name = "web"
vips = ["203.0.113.10"]
ports = "80"
pool = "web"
[[pool]]
name = "web"
table_size = 1009
backends = [
  {{name = "routed", address = "10.20.0.1"}},
  {{name = "multipath", address = "10.30.0.1"}},
  {{name = "on-link", address = "10.9.0.2"}},
  {{name = "six", address = "2001:db8:77::1"}},{more}
]
"""
# While a backend has a problem everything is read anew each second; without one only each 10 s, so
# that a change which is seen sooner came as an event.
WITH_PROBLEMS = """
  {name = "absent", address = "10.9.0.77"},
  {name = "nowhere", address = "198.51.100.1"},"""


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


@unittest.skipIf(os.geteuid() != 0, "needs root (network namespaces)")
@unittest.skipIf(shutil.which("ip") is None, "needs ip (iproute2)")
class NextHops(unittest.TestCase):
    def setUp(self):
        self.lb = f"hf-nh-{os.getpid()}-lb"
        self.router = f"hf-nh-{os.getpid()}-r"
        for name in (self.lb, self.router):
            ip("netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False)
        for i in (0, 1):
            ip("-n", self.lb, "link", "add", f"e{i}", "address", LB_MAC[i], "type", "veth", "peer",
               "name", f"e{i}", "address", ROUTER_MAC[i], "netns", self.router)
            for name, host in ((self.lb, 1), (self.router, 2)):
                ip("-n", name, "addr", "add", f"10.9.{i}.{host}/24", "dev", f"e{i}")
                ip("-n", name, "addr", "add", f"fd09:{i}::{host}/64", "dev", f"e{i}", "nodad")
                ip("-n", name, "link", "set", f"e{i}", "up")
        ip("-n", self.lb, "link", "set", "e1", "mtu", 1400)
        self.lb_ip("route", "add", "10.20.0.0/24", "via", "10.9.0.2", "mtu", "1480")
        self.lb_ip("route", "add", "10.30.0.0/24", "nexthop", "via", "10.9.0.2", "nexthop", "via",
                   "10.9.1.2")
        self.lb_ip("-6", "route", "add", "2001:db8:77::/48", "via", "fd09:0::2")

    def lb_ip(self, *words):
        ip("-n", self.lb, *words)

    def start(self, more=""):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-nh-")
        self.addCleanup(folder.cleanup)
        path = Path(folder.name)
        self.socket = path / "s"
        (path / "seed").write_text("00112233445566ff\n")
        (path / "holdfast.toml").write_text(CONFIG.format(socket=self.socket, more=more))
        log = (path / "log").open("w")
        self.addCleanup(log.close)
        self.log = path / "log"
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.lb, CONTROL, path / "holdfast.toml"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(self.stop)
        self.snapshots = []
        threading.Thread(target=self.read, daemon=True).start()
        self.until(lambda: self.snapshots, "a first snapshot")

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.snapshots.append(json.loads(line))

    def stop(self):
        self.process.terminate()
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def backend(self, address):
        return next(row for row in self.snapshots[-1]["backends"] if row["address"] == address)

    def hops(self, address):
        return [(hop["port"], hop["destination"]) for hop in self.backend(address)["next_hops"]]

    def until(self, condition, what, seconds=3):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                last = json.dumps(self.snapshots[-1:], indent=1)
                self.fail(f"{what}: not within {seconds} s\n{last}\n{self.log.read_text()}")
            time.sleep(0.02)

    def reason(self, name):
        out = subprocess.run([HOLDFAST, "--socket", self.socket, "--json", "pool", "show", "web"],
                             check=True, capture_output=True, text=True).stdout
        row = next(row for row in json.loads(out)["backends"] if row["name"] == name)
        return row["state"], row["reason"]

    def first(self, more=""):
        self.start(more)
        self.until(lambda: self.hops("10.20.0.1") and len(self.hops("10.30.0.1")) == 2
                   and self.hops("2001:db8:77::1"), "all next hops resolved without any traffic")

    def test_next_hops_are_resolved_before_traffic_needs_them(self):
        self.first(WITH_PROBLEMS)
        [hop] = self.backend("10.20.0.1")["next_hops"]
        self.assertEqual(hop, {"port": 0, "vlan": 0, "mtu": 1480, "source": LB_MAC[0],
                               "destination": ROUTER_MAC[0]})
        self.assertEqual(self.backend("10.20.0.1")["tunnel_source"], "10.9.0.1")
        self.assertEqual(self.hops("10.30.0.1"), [(0, ROUTER_MAC[0]), (1, ROUTER_MAC[1])])
        self.assertEqual([hop["mtu"] for hop in self.backend("10.30.0.1")["next_hops"]], [1500, 1400])
        self.assertEqual(self.hops("10.9.0.2"), [(0, ROUTER_MAC[0])])
        self.assertEqual(self.hops("2001:db8:77::1"), [(0, ROUTER_MAC[0])])
        self.assertEqual(self.backend("2001:db8:77::1")["tunnel_source"], "fd09::1")
        self.assertEqual(self.backend("10.9.0.77")["next_hops"], [])

    def test_what_can_not_be_reached_says_why(self):
        self.first(WITH_PROBLEMS)
        self.until(lambda: self.backend("10.9.0.77")["state"] == "neigh_unresolved",
                   "a silent backend counts as unresolved", 15)
        self.assertIn("10.9.0.77", self.reason("absent")[1])
        self.assertIn("on e0", self.reason("absent")[1])
        self.assertIn("no route", self.reason("nowhere")[1])

    def test_a_route_that_changes_is_followed_at_once(self):
        self.first()
        self.lb_ip("route", "replace", "10.20.0.0/24", "via", "10.9.1.2")
        self.until(lambda: self.hops("10.20.0.1") == [(1, ROUTER_MAC[1])], "the new way")
        self.assertEqual(self.backend("10.20.0.1")["tunnel_source"], "10.9.1.1")

    def test_a_lost_gateway_of_several_needs_nothing(self):
        self.first()
        ip("-n", self.router, "link", "set", "e1", "down")
        self.until(lambda: self.hops("10.30.0.1") == [(0, ROUTER_MAC[0])], "one way less")
        self.assertEqual(self.backend("10.30.0.1")["state"], "eligible")
        ip("-n", self.router, "link", "set", "e1", "up")
        self.until(lambda: len(self.hops("10.30.0.1")) == 2, "both ways again", 10)

    def test_a_new_mac_is_followed(self):
        self.first()
        self.lb_ip("neigh", "replace", "10.9.0.2", "lladdr", "02:00:00:00:00:99", "dev", "e0", "nud",
                   "permanent")
        self.until(lambda: self.hops("10.20.0.1") == [(0, "02:00:00:00:00:99")], "the new MAC")

    def test_a_lost_next_hop_keeps_its_last_known_mac(self):
        self.first()
        self.lb_ip("route", "del", "10.20.0.0/24")
        self.until(lambda: self.backend("10.20.0.1")["state"] == "next_hop_lost", "it is lost")
        self.assertEqual(self.hops("10.20.0.1"), [(0, ROUTER_MAC[0])])
        self.assertIn("no route", self.reason("routed")[1])
        self.lb_ip("route", "add", "10.20.0.0/24", "via", "10.9.0.2")
        self.until(lambda: self.backend("10.20.0.1")["state"] == "eligible", "it is back")

        ip("-n", self.router, "link", "set", "e0", "down")
        self.until(lambda: self.backend("10.9.0.2")["state"] == "next_hop_lost", "the link is down")
        self.assertIn("e0 is down", self.reason("on-link")[1])
        self.assertEqual(self.hops("10.9.0.2"), [(0, ROUTER_MAC[0])])

    def test_a_flood_of_kernel_events_holds_nobody(self):
        self.first()
        batch = "".join(f"route add 172.16.{i // 250}.{i % 250}/32 via 10.9.1.2\n"
                        for i in range(5_000))
        subprocess.run(["ip", "-n", self.lb, "-batch", "-"], input=batch, text=True, check=True)
        self.lb_ip("route", "replace", "10.20.0.0/24", "via", "10.9.1.2")
        self.until(lambda: self.hops("10.20.0.1") == [(1, ROUTER_MAC[1])], "the change behind the flood")
        out = subprocess.run([HOLDFAST, "--socket", self.socket, "--json", "status"], check=True,
                             capture_output=True, text=True).stdout
        # A machine that is busy itself may take the processor away for that long, now and then.
        self.assertLess(json.loads(out)["slow_callbacks"], 5, self.log.read_text())


if __name__ == "__main__":
    unittest.main()
