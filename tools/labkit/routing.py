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


@dataclass(frozen=True)
class RouteChange:
    """What the router made of one message of a balancer about a VIP."""

    time: float  # seconds since 1970
    lb: str
    vip: str
    what: str  # "added" (also when it changed) or "removed"


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
    socket = gobgpd_socket(lab, lb)
    socket.unlink(missing_ok=True)  # one that a killed gobgpd left is fatal to the next
    argv = ["gobgpd", "--config-file", str(config), "--config-type", "toml"]
    argv += ["--api-hosts", f"unix://{socket}", "--pprof-disable", "--log-plain"]
    return lab.start_service("gobgpd", lb.name, argv)


def gobgpd_socket(lab, lb: topology.Host) -> Path:
    return lab.path(lb.name) / "gobgpd.sock"


def gateways(lab, vip: str) -> set[str]:
    """The balancers that the router's kernel has as next hops for `vip`, by BIRD's route."""
    family = "-6" if ":" in vip else "-4"
    shown = lab.exec("router", ["ip", "-j", family, "route", "show", vip, "proto", "bird"]).stdout
    interfaces = set()
    for route in json.loads(shown or "[]"):
        interfaces |= {hop["dev"] for hop in route.get("nexthops", [route])}
    return {lb.name for lb in lab.topology.lbs if lb.router_interface in interfaces}


def changes(lab, since: float = 0.0) -> list[RouteChange]:
    """What the router has learnt and lost from `since` (seconds since 1970) on, in order."""
    found = []
    for line in _route_log(lab).read_text().splitlines():
        if match := _LEARNT.match(line):
            time = datetime.datetime.fromisoformat(match["time"]).timestamp()
            if time >= since:
                found.append(RouteChange(time, match["lb"], match["vip"], match["what"]))
    return found
