# SPDX-License-Identifier: Apache-2.0
"""What the demonstration's figures must be, and how they read. Pure: no I/O, no clock."""

import dataclasses

STREAMS_WANTED = 60
IDLE_CPU_LIMIT_PERCENT = 5.0
# A backend's share of the requests, of what an even spread would give it. 300 requests over three
# backends: half of the share is six standard deviations off.
LEAST_OF_FAIR_SHARE = 0.5
# Acknowledgements of a download pass the balancer, its data does not.
MOST_OF_DOWNLOAD = 0.1
# From the end of the last stream to the command's word that the backend is empty.
EMPTY_WITHIN_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Claim:
    text: str
    passed: bool
    measured: str


def judge(figures: dict) -> list[Claim]:
    """`figures` as demo.run() gives them."""
    return [
        *_requests(figures),
        *_transfers(figures),
        *_streams(figures),
        *_drain(figures),
        *_whole(figures),
    ]


def _requests(figures: dict) -> list[Claim]:
    claims = []
    for tunnel, key in (("IPv4", "requests"), ("IPv6", "requests_ipv6_tunnel")):
        for family, one in figures[key].items():
            fair = one["requests"] / len(figures["backends"])
            served = [one["backends"].get(name, 0) for name in figures["backends"]]
            spread = min(served) >= LEAST_OF_FAIR_SHARE * fair
            claims.append(
                Claim(
                    f"{one['requests']} requests over {family} in {tunnel} tunnels: none fails, "
                    "all backends serve",
                    one["failed"] == 0 and one["requests"] > 0 and spread,
                    requests_text(one),
                )
            )
    return claims


def _transfers(figures: dict) -> list[Claim]:
    claims = []
    for direction in ("upload", "download"):
        for family, one in figures[direction + "s"].items():
            claims.append(
                Claim(
                    f"the {direction} of 50 MB over {family} arrives byte for byte",
                    one["failure"] is None and one["bytes"] >= 50e6,
                    transfer_text(one),
                )
            )
    for family, one in figures["downloads"].items():
        part = one["bytes_to_balancer"] / one["bytes"]
        claims.append(
            Claim(
                f"answers over {family} return directly, past the balancer",
                one["failure"] is None and part < MOST_OF_DOWNLOAD,
                f"{100 * part:.1f} % of a download's bytes passed it (acknowledgements)",
            )
        )
    return claims


def _streams(figures: dict) -> list[Claim]:
    done = figures["streams"].values()
    broken = sum(one["broken"] for one in done)
    whole = sum(one["ended_well"] for one in done)
    on_drained = sum(one["backends"].get(figures["drained"], 0) for one in done)
    silence = max(one["longest_silence_seconds"] for one in done)
    return [
        Claim(
            f"{STREAMS_WANTED} long streams run to their end, none breaks",
            broken == 0 and whole >= STREAMS_WANTED,
            f"{whole} whole, {broken} broken; longest silence {silence:.2f} s",
        ),
        Claim(
            f"streams were on {figures['drained']} when its drain began",
            on_drained > 0 and figures["drain"]["active_at_begin"] >= on_drained,
            f"{on_drained} streams, {figures['drain']['active_at_begin']} active flows",
        ),
    ]


def _drain(figures: dict) -> list[Claim]:
    drain, name = figures["drain"], figures["drained"]
    meanwhile = figures["requests_meanwhile"].values()
    sent = sum(one["requests"] for one in meanwhile)
    failed = sum(one["failed"] for one in meanwhile)
    later = drain["requests_begun_later"]
    enabled = figures["after_enable"]
    again = [one["backends"].get(name, 0) for one in enabled["requests"].values()]
    failed_again = sum(one["failed"] for one in enabled["requests"].values())
    said = drain["lines"][-1] if drain["lines"] else "nothing"
    return [
        Claim(
            "no request fails before, during or after the drain",
            sent > 0 and failed == 0 and failed_again == 0,
            f"{sent} requests while it drained, {failed} failed",
        ),
        Claim(
            f"no new flow on {name} once it drains",
            drain["new_flows"] == 0 and drain["of_these_on_drained"] == 0 and later > 0,
            f"{drain['new_flows']} by its counter; {drain['of_these_on_drained']} of the {later} "
            "requests begun since were served by it",
        ),
        Claim(
            f"the command says when {name} is empty, and not before",
            drain["exit_status"] == 0
            and drain["active_at_end"] == 0
            and "empty" in said
            and 0 <= drain["seconds_after_last_stream"] <= EMPTY_WITHIN_SECONDS,
            f"{drain['seconds_after_last_stream']:.1f} s after its last stream's end: {said!r}",
        ),
        Claim(
            f"enabled again, {name} serves again",
            enabled["state"] == "eligible" and min(again) > 0,
            " and ".join(f"{count} of {one['requests']}"
                         for count, one in zip(again, enabled["requests"].values()))
            + " requests",
        ),
    ]


def _whole(figures: dict) -> list[Claim]:
    mixes = {
        name.removeprefix("decapsulated_"): count
        for name, count in figures["tunnels"].items()
        if name.startswith("decapsulated_")
    }
    idle = figures["idle"]["cpu_percent"]
    packets = figures["packets"]["packets"]
    return [
        Claim(
            "the balancer accounts for every packet that it received or sent",
            figures["packets"]["identity"]["holds"] and packets["received"] > 0,
            f"{packets['received']} received, {packets['forwarded']} forwarded, "
            f"{packets['dropped']} dropped",
        ),
        Claim(
            "backends decapsulate every mix of inner and outer family",
            set(mixes) == {"4in4", "6in4", "4in6", "6in6"} and min(mixes.values()) > 0,
            ", ".join(f"{name} {count}" for name, count in mixes.items()),
        ),
        Claim(
            f"the idle lab needs less than {IDLE_CPU_LIMIT_PERCENT:.0f} % of a core",
            idle < IDLE_CPU_LIMIT_PERCENT,
            f"{idle:.1f} %",
        ),
    ]


def requests_text(one: dict) -> str:
    reasons = f" ({one['failures'][0]['reason']})" if one["failures"] else ""
    median = one["milliseconds"]["p50"]
    time = f"; median {median:.1f} ms" if median is not None else ""
    return f"{one['failed']} failed{reasons}; {spread_text(one['backends'])}{time}"


def transfer_text(one: dict) -> str:
    if one["failure"] is not None:
        return one["failure"]
    return f"{one['megabytes_per_second']:.0f} MB/s by way of {one['backend']}"


def streams_text(one: dict) -> str:
    reasons = f" ({one['failures'][0]['reason']})" if one["failures"] else ""
    return f"{one['ended_well']} whole, {one['broken']} broken{reasons}, {one['events']} events"


def spread_text(backends: dict) -> str:
    return ", ".join(f"{name} {count}" for name, count in backends.items()) or "no backend"
