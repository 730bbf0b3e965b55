# SPDX-License-Identifier: Apache-2.0
"""What the figures of takeover.py must be, and how they read. Pure: no I/O, no clock."""

from labkit.claims import Claim
from labkit.config_files import LINGER_SECONDS

STREAMS_WANTED = 60
# From a balancer's start to the route; its backends are checked first.
ROUTE_WITHIN_SECONDS = 10.0
# RFC 8326: the routers turn away while the route is still there. holdfastd gives them 2 s.
LEAST_GRACE_SECONDS = 1.0
# The late client asks every 50 ms, but not on a machine that is busy.
TOLERANCE_SECONDS = 1.0


def judge(figures: dict) -> list[Claim]:
    """`figures` as takeover.run() gives them."""
    return [
        *(_announced(lb, figures[key]) for lb, key in (("lb2", "joined"), ("lb1", "back"))),
        _alike(figures),
        *(
            _stopped(family, times, figures["stopped"])
            for family, times in figures["stopped"]["families"].items()
        ),
        *_flows(figures),
    ]


def _announced(lb: str, families: dict) -> Claim:
    return Claim(
        f"{lb} announces the VIPs once it is ready, and the router has the routes",
        all(
            times["announced_seconds"] + times["route_seconds"] < ROUTE_WITHIN_SECONDS
            for times in families.values()
        ),
        announced_text(families),
    )


def _alike(figures: dict) -> Claim:
    first, second = figures["digests"].values()
    forwarded = figures["forwarded_by_second"]
    return Claim(
        "both balancers place flows alike, and both forward",
        first == second and forwarded > 0,
        f"base digests {', '.join(first.values())}"
        + ("" if first == second else f" against {', '.join(second.values())}")
        + f"; {forwarded} packets by lb2 before lb1 stops",
    )


def _stopped(family: str, times: dict, stopped: dict) -> Claim:
    turned, withdrawn = times["turned_away"], times["withdrawn"]
    last, ended = times["last_late_request"], stopped["ended_seconds"]
    return Claim(
        f"lb1 stops in order over {family}: last choice, withdrawn, still forwarding, ended",
        stopped["exit_status"] == 0
        and turned is not None
        and withdrawn is not None
        and 0 <= turned
        and turned + LEAST_GRACE_SECONDS <= withdrawn
        and withdrawn + LINGER_SECONDS - TOLERANCE_SECONDS <= last <= ended + TOLERANCE_SECONDS
        and times["late_failed_before"] == 0,
        stopped_text(times, stopped),
    )


def _flows(figures: dict) -> list[Claim]:
    streams, requests = figures["streams"].values(), figures["requests"].values()
    whole = sum(one["ended_well"] for one in streams)
    broken = sum(one["broken"] for one in streams)
    silence = max(one["longest_silence_seconds"] for one in streams)
    sent = sum(one["requests"] for one in requests)
    failed = sum(one["failed"] for one in requests)
    active = figures["active_flows_of_second"]
    return [
        Claim(
            f"{STREAMS_WANTED} streams of lb1 go on when lb2 joins and when lb1 is gone",
            broken == 0 and whole >= STREAMS_WANTED and active >= STREAMS_WANTED,
            f"{whole} whole, {broken} broken; longest silence {silence:.2f} s; {active} active "
            "flows on lb2 after lb1 had ended",
        ),
        Claim(
            "no request fails meanwhile",
            sent > 0 and failed == 0,
            f"{sent} requests, {failed} failed",
        ),
    ]


def announced_text(families: dict) -> str:
    return "; ".join(
        f"{family} announced after {times['announced_seconds']:.2f} s, routed "
        f"{1000 * times['route_seconds']:.1f} ms later"
        for family, times in families.items()
    )


def stopped_text(times: dict, stopped: dict) -> str:
    def at(seconds: float | None) -> str:
        return "never" if seconds is None else f"after {seconds:.2f} s"

    failed = times["late_failed_before"]
    return (
        f"SIGTERM; last choice {at(times['turned_away'])}, withdrawn {at(times['withdrawn'])}, "
        f"last of {times['late_requests']} late requests answered {at(times['last_late_request'])}"
        f"{f' ({failed} failed before)' if failed else ''}, ended {at(stopped['ended_seconds'])}"
    )
