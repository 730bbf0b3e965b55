# SPDX-License-Identifier: Apache-2.0
"""The demonstration's second part: while streams and requests run, a second balancer joins and the
first one is stopped. `run` only measures; claims.py says what the figures must be.

All times but those of the traffic are seconds since 1970, as the router's logs have them."""

import contextlib
import time

from labkit import routing, takeover_claims
from labkit.claims import streams_text
from labkit.client import Client, without_log

FIRST, SECOND = "lb1", "lb2"
POOLS = ("web", "web6")
STREAMS = 30  # over each family
STREAM_SECONDS = 15
PAUSE_SECONDS = 0.02  # between the requests of one lane
BOTH_SECONDS = 1.5  # how long both balancers serve before the first is stopped
# Requests from these ports go by way of the first balancer whatever the routes say: those of a
# router that is slow to learn of a withdrawal. They show how long the balancer still forwards.
LATE_PORTS = (61000, 64999)
LATE_PAUSE_SECONDS = 0.05
LATE_LIMIT_SECONDS = 2.0
_LATE_TABLE = "100"
_TCP = "6"  # a minimal system has no /etc/protocols that knows its name


def run(lab, say) -> dict:
    """Requires: the router learns the VIPs by BGP; the first balancer runs, the second has no
    holdfastd yet. Both run at the end."""
    monitor = routing.KernelMonitor(lab)
    try:
        return _Takeover(lab, say, monitor).run()
    finally:
        monitor.stop()


class _Takeover:
    def __init__(self, lab, say, monitor: routing.KernelMonitor):
        self._lab = lab
        self._say = say
        self._monitor = monitor
        self._client = Client(lab)
        self._vips = {"IPv4": lab.topology.vip4, "IPv6": lab.topology.vip6}

    def run(self) -> dict:
        path = f"/events?seconds={STREAM_SECONDS}"
        streams = {
            family: self._client.start_streams(self._client.url(vip, path), STREAMS)
            for family, vip in self._vips.items()
        }
        opened = {family: running.wait_open() for family, running in streams.items()}
        requests = {
            family: self._client.start_gets(self._client.url(vip), PAUSE_SECONDS)
            for family, vip in self._vips.items()
        }
        joined = self._start(SECOND, {FIRST, SECOND}, "joins")
        time.sleep(BOTH_SECONDS)
        digests = {lb: self._digests(lb) for lb in (FIRST, SECOND)}
        forwarded = self._forwarded(SECOND)
        stopped = self._stop_first()
        active = self._active_flows(SECOND)
        done_requests = {
            family: without_log(running.stop()) for family, running in requests.items()
        }
        done_streams = {family: running.result() for family, running in streams.items()}
        for family, figures in done_streams.items():
            sent = done_requests[family]
            self._say(
                f"meanwhile over {family}: streams {streams_text(figures)}; requests "
                f"{sent['requests']}, {sent['failed']} failed"
            )
        return {
            "streams_opened": opened,
            "joined": joined,
            "digests": digests,
            "forwarded_by_second": forwarded,
            "stopped": stopped,
            "active_flows_of_second": active,
            "requests": done_requests,
            "streams": done_streams,
            "back": self._start(FIRST, {FIRST, SECOND}, "is back"),
        }

    def _start(self, lb: str, expected: set[str], verb: str) -> dict:
        """Starts `lb`'s holdfastd and waits for its routes. For each family: seconds from the start
        to BIRD's having the announcement, and from there to the kernel's having the route."""
        begin = time.time()
        self._lab.start_holdfastd(lb)
        self._lab.wait_routes(*expected)
        figures = {}
        for family, vip in self._vips.items():
            learnt = next(
                change.time
                for change in routing.changes(self._lab, begin)
                if (change.lb, change.vip, change.what) == (lb, vip, "added")
            )
            routed = next(
                route.time
                for route in self._monitor.changes(begin)
                if route.vip == vip and lb in route.gateways
            )
            figures[family] = {
                "announced_seconds": round(learnt - begin, 4),
                "route_seconds": round(routed - learnt, 4),
            }
        self._say(f"{lb} {verb}: {takeover_claims.announced_text(figures)}")
        return figures

    def _stop_first(self) -> dict:
        """SIGTERM, and what the router and a late client see of it; seconds from the signal."""
        with self._late_routes():
            offset = time.time() - time.monotonic()
            late = {
                family: self._client.start_gets(
                    self._client.url(vip),
                    LATE_PAUSE_SECONDS,
                    limit=LATE_LIMIT_SECONDS,
                    local_ports=f"{LATE_PORTS[0]}-{LATE_PORTS[1]}",
                )
                for family, vip in self._vips.items()
            }
            time.sleep(0.5)
            before = self._forwarded(FIRST)
            begin = time.time()
            status = self._lab.stop_service(f"holdfastd@{FIRST}")
            ended = time.time()
            late_figures = {family: running.stop() for family, running in late.items()}
        figures = {"exit_status": status, "forwarded_before": before, "families": {}}
        figures["ended_seconds"] = round(ended - begin, 3)
        for family, vip in self._vips.items():
            times = self._route_times(vip, begin)
            log = late_figures[family]["log"]
            good = [t + seconds + offset - begin for t, seconds, backend in log if backend]
            bad = [t + offset - begin for t, _, backend in log if not backend]
            times["last_late_request"] = round(max(good, default=0.0), 3)
            times["late_requests"] = len(good)
            times["late_failed_before"] = sum(1 for t in bad if t < times["last_late_request"])
            figures["families"][family] = times
            self._say(f"{FIRST} stops, {family}: {takeover_claims.stopped_text(times, figures)}")
        return figures

    def _route_times(self, vip: str, begin: float) -> dict:
        """Seconds from `begin` until the router prefers the others, and until it has lost the
        route; None: it did not."""
        turned = next(
            (r.time - begin for r in self._monitor.changes(begin)
             if r.vip == vip and FIRST not in r.gateways),
            None,
        )
        lost = next(
            (c.time - begin for c in routing.changes(self._lab, begin)
             if (c.lb, c.vip, c.what) == (FIRST, vip, "removed")),
            None,
        )
        return {
            "turned_away": None if turned is None else round(turned, 3),
            "withdrawn": None if lost is None else round(lost, 3),
        }

    @contextlib.contextmanager
    def _late_routes(self):
        """Packets from LATE_PORTS go to the first balancer."""
        first = self._lab.topology.host(FIRST)
        ports = f"{LATE_PORTS[0]}-{LATE_PORTS[1]}"
        rule = ["pref", "100", "ipproto", _TCP, "sport", ports, "lookup", _LATE_TABLE]
        ways = (("-4", self._lab.topology.vip4, first.v4), ("-6", self._lab.topology.vip6, first.v6))
        for family, vip, gateway in ways:
            route = [vip, "via", gateway, "table", _LATE_TABLE]
            self._lab.exec("router", ["ip", family, "route", "replace", *route])
            self._lab.exec("router", ["ip", family, "rule", "add", *rule])
        try:
            yield
        finally:
            for family, vip, _ in ways:
                self._lab.exec("router", ["ip", family, "rule", "delete", *rule])
                route = [vip, "table", _LATE_TABLE]
                self._lab.exec("router", ["ip", family, "route", "delete", *route])

    def _digests(self, lb: str) -> dict:
        return {pool: self._lab.pool(pool, lb=lb)["base_digest"] for pool in POOLS}

    def _active_flows(self, lb: str) -> int:
        return sum(
            row["active_flows"] for pool in POOLS for row in self._lab.pool(pool, lb=lb)["backends"]
        )

    def _forwarded(self, lb: str) -> int:
        return self._lab.stats(lb=lb)["packets"]["forwarded"]
