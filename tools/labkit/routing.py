# SPDX-License-Identifier: Apache-2.0
"""The router's BIRD, the gobgpd beside each balancer, and what the router knows of the VIPs."""

import datetime
import json
import re
from dataclasses import dataclass
from pathlib import Path

from labkit import bgp_files, services, topology

# 2026-11-30 01:43:04.123456 <TRACE> lb1.ipv4 > added [best] 203.0.113.10/32 ...
_LEARNT = re.compile(
    r"(?P<time>\S+ \S+) <TRACE> (?P<lb>\w+)\.ipv[46] > (?P<what>\w+)[^/]* (?P<vip>[0-9a-f.:]+)/"
)
# [2026-11-30T02:17:32.472360] 203.0.113.10 proto bird ... nexthop via 192.0.2.2 dev to-lb1 ...
_KERNEL_ROUTE = re.compile(r"\[(?P<time>\S+)\] (?P<gone>Deleted )?(?P<vip>[0-9a-f.:]+) (?P<rest>.*)")


@dataclass(frozen=True)
class RouteChange:
    """What the router made of one message of a balancer about a VIP."""

    time: float  # seconds since 1970
    lb: str
    vip: str
    what: str  # "added" (also when it changed) or "removed"


@dataclass(frozen=True)
class KernelRoute:
    """The router's route to a VIP, after it changed."""

    time: float  # seconds since 1970
    vip: str
    gateways: frozenset[str]  # the balancers that it goes by way of; empty: there is none


class KernelMonitor:
    """Notes each change of the router's routes to the VIPs, until `stop`."""

    def __init__(self, lab):
        self._lab = lab
        self._file = lab.path("router", "kernel-routes.log")
        with open(self._file, "w") as output:
            self._process = lab.popen(
                "router", ["ip", "-o", "-ts", "monitor", "route"], stdout=output
            )
        services.wait_until(self._listens, "the monitor of the router's routes listens")

    def _listens(self) -> bool:
        """It has joined a multicast group of rtnetlink, whose number is 0."""
        pid = self._process.pid
        table = Path(f"/proc/{pid}/net/netlink").read_text().splitlines()[1:]
        rows = [line.split() for line in table]
        return any((row[1], row[2]) == ("0", str(pid)) and int(row[3], 16) != 0 for row in rows)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def changes(self, since: float = 0.0) -> list[KernelRoute]:
        found = []
        for line in self._file.read_text().splitlines():
            match = _KERNEL_ROUTE.match(line)
            if match and match["vip"] in self._lab.topology.vips and "proto bird" in match["rest"]:
                time = _seconds(match["time"])
                interfaces = set() if match["gone"] else set(re.findall(r"dev (\S+)", match["rest"]))
                if time >= since:
                    lbs = _names(self._lab, interfaces)
                    found.append(KernelRoute(time, match["vip"], frozenset(lbs)))
        return found


def _seconds(text: str) -> float:
    """The router's local time as seconds since 1970."""
    return datetime.datetime.fromisoformat(text).timestamp()


def _names(lab, interfaces: set[str]) -> set[str]:
    """The balancers at the other end of the router's interfaces."""
    return {lb.name for lb in lab.topology.lbs if lb.router_interface in interfaces}


def start_bird(lab) -> services.Service:
    folder = lab.path("router")
    config = folder / "bird.conf"
    config.write_text(bgp_files.bird(lab.topology, lab.state.static_routes, _route_log(lab)))
    argv = ["bird", "-f", "-c", str(config), "-s", str(folder / "bird.ctl")]
    return lab.start_service("bird", "router", argv)


def _route_log(lab) -> Path:
    return lab.path("router", "routes.log")


def start_gobgpd(lab, lb: topology.Host) -> services.Service:
    config = lab.path(lb.name) / "gobgpd.toml"
    config.write_text(bgp_files.gobgpd(lb))
    socket = lab.gobgp_socket(lb.name)
    socket.unlink(missing_ok=True)  # one that a killed gobgpd left is fatal to the next
    argv = ["gobgpd", "--config-file", str(config), "--config-type", "toml"]
    argv += ["--api-hosts", f"unix://{socket}", "--pprof-disable", "--log-plain"]
    return lab.start_service("gobgpd", lb.name, argv)


def gobgp(lab, lb: str, argv: list[str]) -> str:
    """Runs gobgpd's command line against the one beside `lb`."""
    return lab.exec(lb, gobgp_argv(lab, lb, argv)).stdout


def gobgp_argv(lab, lb: str, argv: list[str]) -> list[str]:
    return ["gobgp", "--target", f"unix:{lab.gobgp_socket(lb)}", *argv]


def rib(lab, lb: str) -> set[str]:
    """The addresses of the host routes that the gobgpd of `lb` has, of both families."""
    prefixes = set()
    for family in ("ipv4", "ipv6"):
        prefixes |= set(json.loads(gobgp(lab, lb, ["global", "rib", "-a", family, "-j"])))
    return {prefix.partition("/")[0] for prefix in prefixes}


def gateways(lab, vip: str) -> set[str]:
    """The balancers that the router's kernel has as next hops for `vip`, by BIRD's route."""
    family = "-6" if ":" in vip else "-4"
    shown = lab.exec("router", ["ip", "-j", family, "route", "show", vip, "proto", "bird"]).stdout
    interfaces = set()
    for route in json.loads(shown or "[]"):
        interfaces |= {hop["dev"] for hop in route.get("nexthops", [route])}
    return _names(lab, interfaces)


def changes(lab, since: float = 0.0) -> list[RouteChange]:
    """What the router has learnt and lost from `since` (seconds since 1970) on, in order."""
    found = []
    for line in _route_log(lab).read_text().splitlines():
        if match := _LEARNT.match(line):
            time = _seconds(match["time"])
            if time >= since:
                found.append(RouteChange(time, match["lb"], match["vip"], match["what"]))
    return found
