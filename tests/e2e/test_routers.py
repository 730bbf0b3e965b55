# SPDX-License-Identifier: Apache-2.0
"""The configurations of docs/routers.md, run as they stand there: a lab's router with that of BIRD,
or of FRR, and beside two balancers gobgpd with that of the lab, which is the page's."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import Lab, bgp_files, routing, services  # noqa: E402
from labkit.topology import Topology  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "routers.md"
FRR_PROGRAMS = Path("/usr/lib/frr")  # not in PATH: Debian's service starts them
BGP_ROUTES = {"bird": "12", "frr": "186"}  # the kernel's number of who made a route

# What is said once for all balancers begins with this line.
GROUPS = {"bird": "template bgp balancer {", "frr": "neighbor balancers remote-as"}

needs_root = unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
needs_bird = unittest.skipUnless(shutil.which("bird"), "needs BIRD (package bird2)")
needs_frr = unittest.skipUnless((FRR_PROGRAMS / "bgpd").exists(), "needs FRR (package frr)")


def blocks(language: str) -> list[str]:
    """The page's blocks of this language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def statements(config: str) -> set[str]:
    """The lines that mean something."""
    lines = (line.strip() for line in config.splitlines())
    return {line for line in lines if line and not line.startswith("#")}


class Page(unittest.TestCase):
    """What the page says is what the lab has, where both have it."""

    def test_gobgpd_is_configured_as_in_the_lab(self):
        lab = Topology(lb_count=2)
        self.assertEqual(statements(blocks("toml")[0]), statements(bgp_files.gobgpd(lab.lbs[0])))

    def test_bird_is_configured_as_in_the_lab(self):
        page = statements(blocks("bird")[0])
        lab = statements(bgp_files.bird(Topology(lb_count=2), False, Path("/log")))
        # The lab's router sends all back, to show that speakers refuse it.
        self.assertEqual(page - lab, {"export none;"})
        logs = ("log ", "timeformat ", "debug ")
        self.assertEqual([line for line in lab - page if not line.startswith(logs)], [])

    @needs_bird
    def test_bird_accepts_its_configuration(self):
        argv = ["bird", "-p", "-c", "/dev/stdin"]
        done = subprocess.run(argv, input=blocks("bird")[0], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @needs_frr
    def test_frr_accepts_its_configuration(self):
        self.assertEqual(self.faults_for_frr(blocks("frr")[0]), [])
        self.assertEqual(len(self.faults_for_frr("bogus\n" + blocks("frr")[0])), 1)

    def faults_for_frr(self, config: str) -> list[str]:
        """bgpd names the lines that it does not know, and ends with 0 all the same."""
        argv = [str(FRR_PROGRAMS / "bgpd"), "--dryrun", "--skip_runas", "-f", "/dev/stdin"]
        done = subprocess.run(argv, input=config, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "config line" in line]


class RouterOfThePage:
    """Two gobgpd and a router that runs the page's configuration. Tests announce by hand what
    Holdfast would announce."""

    kind = ""  # "bird" or "frr"

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(
            f"t{os.getpid()}-{cls.kind}",
            bare=True,
            static_routes=False,
            lbs=2,
            backends=1,
            purpose="tests/e2e/test_routers.py",
        )
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()
        cls.start(blocks(cls.kind)[0])

    @classmethod
    def start(cls, router: str, more_of_gobgpd: str = "") -> None:
        """A router with this configuration, and new speakers: one whose session ended waits."""
        for name in ("bird", "bgpd", "zebra"):
            if f"{name}@router" in cls.lab.services:
                cls.lab.stop_service(f"{name}@router")
        for lb in cls.lab.topology.lbs:
            cls.lab.kill_service(f"gobgpd@{lb.name}")
        cls.start_router(router)
        usual = bgp_files.gobgpd
        with mock.patch.object(bgp_files, "gobgpd", lambda lb: usual(lb) + more_of_gobgpd):
            for lb in cls.lab.topology.lbs:
                cls.lab.start_gobgpd(lb.name)

    def setUp(self):
        self.announce("lb1")
        self.announce("lb2")
        self.wait_routes("lb1", "lb2")

    def path(self, action: str, lb: str, prefix: str, *attributes: str) -> None:
        host = self.lab.topology.host(lb)
        family, next_hop = ("ipv6", host.v6) if ":" in prefix else ("ipv4", host.v4)
        argv = ["global", "rib", action, prefix, "nexthop", next_hop, *attributes]
        routing.gobgp(self.lab, lb, [*argv, "--address-family", family])

    def announce(self, lb: str, *attributes: str) -> None:
        """The VIPs of both families."""
        self.path("add", lb, f"{self.lab.topology.vip4}/32", *attributes)
        self.path("add", lb, f"{self.lab.topology.vip6}/128", *attributes)

    def withdraw(self, lb: str) -> None:
        self.path("del", lb, f"{self.lab.topology.vip4}/32")
        self.path("del", lb, f"{self.lab.topology.vip6}/128")

    def routes(self, family: str) -> dict[str, set[str]]:
        """By BGP: destination -> the router's interfaces that it goes by."""
        argv = ["ip", "-j", "-N", family, "route", "show", "proto", BGP_ROUTES[self.kind]]
        shown = json.loads(self.lab.exec("router", argv).stdout or "[]")
        return {
            route["dst"]: {hop["dev"] for hop in route.get("nexthops", [route])} for route in shown
        }

    def wait_routes(self, *lbs: str, timeout: float = 10.0) -> None:
        """Waits until the kernel has exactly the VIPs, by way of exactly these balancers."""
        ways = {self.lab.topology.host(lb).router_interface for lb in lbs}
        vip4, vip6 = self.lab.topology.vips
        expected = [{vip4: ways}, {vip6: ways}] if lbs else [{}, {}]
        services.wait_until(
            lambda: [self.routes("-4"), self.routes("-6")] == expected,
            f"the VIPs, and nothing else, are routed by way of {', '.join(lbs) or 'nobody'}",
            list(self.lab.services.values()),
            timeout,
        )

    def test_who_asks_for_graceful_shutdown_is_the_last_choice(self):
        self.announce("lb2", "community", "65535:0")
        self.wait_routes("lb1")
        self.withdraw("lb1")
        self.wait_routes("lb2")
        self.withdraw("lb2")
        self.wait_routes()

    def test_the_route_goes_with_a_killed_speaker_and_comes_back(self):
        self.lab.kill_service("gobgpd@lb1")
        self.wait_routes("lb2", timeout=3.0)
        self.lab.start_gobgpd("lb1")
        self.announce("lb1")
        self.wait_routes("lb1", "lb2", timeout=20.0)

    def test_what_is_no_vip_is_refused(self):
        outside = ("192.0.2.200/32", "203.0.113.0/25", "2001:db8:a:1::99/128", "2001:db8:f::/80")
        for prefix in outside:
            self.path("add", "lb1", prefix)
            self.addCleanup(self.path, "del", "lb1", prefix)
        # Sent later: when that has had its effect, those before have come, too.
        self.announce("lb1", "community", "65535:0")
        self.wait_routes("lb2")

    def test_sessions_may_be_guarded_by_gtsm(self):
        plain, line = blocks(self.kind)
        group = re.compile(f"^.*{GROUPS[self.kind]}.*\n", re.MULTILINE)
        guarded = group.sub(lambda match: match[0] + line, plain)
        self.assertEqual(len(guarded), len(plain) + len(line))
        self.addCleanup(self.start, plain)
        self.start(guarded, blocks("toml")[-1])
        self.announce("lb1")
        self.announce("lb2")
        self.wait_routes("lb1", "lb2")

    def test_nothing_is_sent_back(self):
        for lb in self.lab.topology.lbs:
            for family in ("ipv4", "ipv6"):
                argv = ["neighbor", lb.router4, "adj-in", "-a", family, "-j"]
                self.assertEqual(json.loads(routing.gobgp(self.lab, lb.name, argv)), {})


@needs_root
@needs_bird
class Bird(RouterOfThePage, unittest.TestCase):
    kind = "bird"

    @classmethod
    def start_router(cls, config: str) -> None:
        folder = cls.lab.path("router")
        (folder / "page.conf").write_text(config)
        argv = ["bird", "-f", "-c", str(folder / "page.conf"), "-s", str(folder / "bird.ctl")]
        cls.lab.start_service("bird", "router", argv)


@needs_root
@needs_frr
class Frr(RouterOfThePage, unittest.TestCase):
    kind = "frr"

    @classmethod
    def start_router(cls, config: str) -> None:
        folder = cls.lab.path("router", "frr")
        folder.mkdir(exist_ok=True)
        shutil.chown(folder, "frr", "frr")  # FRR's programs run as this user
        (folder / "frr.conf").write_text(config)
        (folder / "empty.conf").touch()
        for name, file in (("zebra", "empty.conf"), ("bgpd", "frr.conf")):
            argv = [str(FRR_PROGRAMS / name), "-f", str(folder / file)]
            argv += ["-z", str(folder / "zserv.api"), "--vty_socket", str(folder)]
            argv += ["-i", str(folder / f"{name}.pid"), "-P", "0"]
            cls.lab.start_service(name, "router", [*argv, "--log", "stdout"])
            socket = folder / f"{name}.vty"
            services.wait_until(socket.exists, f"{name} runs", [cls.lab.services[f"{name}@router"]])


if __name__ == "__main__":
    unittest.main()
