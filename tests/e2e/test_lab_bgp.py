# SPDX-License-Identifier: Apache-2.0
"""The lab's routing, without a balancer: what gobgpd announces by hand becomes the router's route."""

import json
import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import Lab, routing  # noqa: E402
from labkit.lab import DEFAULT_BUILD_DIR, find_program  # noqa: E402

needs_root = unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
GRACEFUL_SHUTDOWN = ["community", "65535:0"]


@needs_root
class LabBgp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(f"t{os.getpid()}-bgp", bare=True, static_routes=False, lbs=2, backends=1)
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()

    def gobgp(self, lb: str, *argv: str) -> str:
        return routing.gobgp(self.lab, lb, list(argv))

    def paths(self, action: str, lb: str, *attributes: str) -> None:
        """Adds or removes the paths to the VIPs of both families."""
        host = self.lab.topology.host(lb)
        for vip, next_hop in ((self.lab.topology.vip4, host.v4), (self.lab.topology.vip6, host.v6)):
            family, length = ("ipv6", 128) if ":" in vip else ("ipv4", 32)
            argv = ["global", "rib", action, f"{vip}/{length}", "nexthop", next_hop, *attributes]
            self.gobgp(lb, *argv, "--address-family", family)

    def setUp(self):
        self.paths("add", "lb1")
        self.paths("add", "lb2")
        self.lab.wait_routes("lb1", "lb2")

    def test_a_withdrawn_vip_leaves_the_route(self):
        begin = time.time()
        monitor = routing.KernelMonitor(self.lab)
        self.addCleanup(monitor.stop)
        self.paths("del", "lb1")
        self.lab.wait_routes("lb2")
        self.assertLess(time.time() - begin, 2.0)
        self.paths("del", "lb2")
        self.lab.wait_routes()
        # What the demonstration reads out of the router's logs:
        for vip in self.lab.topology.vips:
            learnt = [one for one in routing.changes(self.lab, begin) if one.vip == vip]
            self.assertEqual(
                [(one.lb, one.what) for one in learnt], [("lb1", "removed"), ("lb2", "removed")]
            )
            routes = [one for one in monitor.changes(begin) if one.vip == vip]
            self.assertEqual([set(one.gateways) for one in routes], [{"lb2"}, set()])
            for one in (*learnt, *routes):
                self.assertLess(one.time, time.time())

    def test_who_asks_for_graceful_shutdown_is_the_last_choice(self):
        self.paths("add", "lb2", *GRACEFUL_SHUTDOWN)
        self.lab.wait_routes("lb1")
        self.paths("del", "lb1")
        self.lab.wait_routes("lb2")

    def test_the_route_goes_and_comes_with_the_speaker(self):
        self.lab.kill_service("gobgpd@lb1")
        self.lab.wait_routes("lb2", timeout=3.0)
        self.lab.start_gobgpd("lb1")  # beside what the killed one left, and with nothing to announce
        self.assertEqual(routing.rib(self.lab, "lb1"), set())
        self.paths("add", "lb1")
        self.lab.wait_routes("lb1", "lb2")

    def test_a_speaker_does_not_take_the_paths_of_the_other_balancer(self):
        for lb in ("lb1", "lb2"):
            for family in ("ipv4", "ipv6"):
                argv = ["global", "rib", "-a", family, "-j"]
                paths = [p for same in json.loads(self.gobgp(lb, *argv)).values() for p in same]
                self.assertEqual(len(paths), 1, paths)

    def test_the_router_takes_host_routes_of_the_vip_ranges_only(self):
        host = self.lab.topology.host("lb1")
        for prefix in ("203.0.113.0/25", "192.0.2.200/32"):
            self.gobgp("lb1", "global", "rib", "add", prefix, "nexthop", host.v4)
        self.paths("add", "lb1", *GRACEFUL_SHUTDOWN)  # sent later: then those before have come
        self.lab.wait_routes("lb2")
        shown = self.lab.exec("router", ["ip", "route", "show", "proto", "bird"]).stdout
        self.assertEqual([line.split()[0] for line in shown.splitlines()], ["203.0.113.10"])


@needs_root
class StaticRoutes(unittest.TestCase):
    @unittest.skipUnless(
        find_program(DEFAULT_BUILD_DIR, "holdfastd"),
        f"needs the programs in {DEFAULT_BUILD_DIR.name}/",
    )
    def test_without_bgp_the_router_has_the_way_and_nothing_is_announced(self):
        with Lab(f"t{os.getpid()}-static", static_routes=True, backends=1) as lab:
            for vip in lab.topology.vips:
                host = f"[{vip}]" if ":" in vip else vip
                answer = lab.exec("client", ["curl", "-sS", "--globoff", f"http://{host}/"])
                self.assertEqual(answer.stdout, "b1\n")
            self.assertNotIn("gobgpd@lb1", lab.services)
            bgp = json.loads(lab.holdfast(["bgp", "--json"]).stdout)
            self.assertEqual(bgp["state"], "off")


if __name__ == "__main__":
    unittest.main()
