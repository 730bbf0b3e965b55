# SPDX-License-Identifier: Apache-2.0
"""The demonstration's claims must fail for the figures of a balancer that is broken. No root."""

import copy
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import claims, takeover_claims  # noqa: E402


def requests(count=300, failed=0, backends=None):
    return {
        "requests": count,
        "failed": failed,
        "failures": [{"started": 1.0, "reason": "timed out"}] * failed,
        "backends": backends or {"b1": count // 3, "b2": count // 3, "b3": count // 3},
        "milliseconds": {"p50": 1.0, "p99": 2.0, "max": 3.0},
    }


def transfer():
    return {
        "bytes": 52428800,
        "seconds": 1.0,
        "megabytes_per_second": 52.4,
        "backend": "b1",
        "failure": None,
        "bytes_to_balancer": 300000,
    }


def streams():
    return {
        "streams": 30,
        "open": 30,
        "ended_well": 30,
        "broken": 0,
        "failures": [],
        "backends": {"b1": 10, "b2": 10, "b3": 10},
        "events": 3000,
        "longest_silence_seconds": 0.21,
    }


def both(make):
    return {"IPv4": make(), "IPv6": make()}


def good_figures() -> dict:
    return {
        "backends": ["b1", "b2", "b3"],
        "drained": "b1",
        "idle": {"cpu_percent": 2.0},
        "requests": both(requests),
        "requests_ipv6_tunnel": both(requests),
        "uploads": both(transfer),
        "downloads": both(transfer),
        "streams": both(streams),
        "requests_meanwhile": both(requests),
        "drain": {
            "exit_status": 0,
            "lines": ["web/b1: 20 active flows", "web/b1 is empty"],
            "seconds": 15.0,
            "seconds_after_last_stream": 0.4,
            "new_flows": 0,
            "active_at_begin": 20,
            "active_at_end": 0,
            "state_at_end": "draining",
            "requests_begun_later": 400,
            "of_these_on_drained": 0,
        },
        "after_enable": {"state": "eligible", "seconds": 0.1, "requests": both(requests)},
        "tunnels": {
            "decapsulated_4in4": 5,
            "decapsulated_6in4": 5,
            "decapsulated_4in6": 5,
            "decapsulated_6in6": 5,
            "not_vip": 0,
        },
        "packets": {
            "packets": {"received": 9000, "forwarded": 9000, "dropped": 0},
            "identity": {"holds": True},
        },
    }


def good_takeover() -> dict:
    return {
        "joined": both(lambda: {"announced_seconds": 1.5, "route_seconds": 0.001}),
        "back": both(lambda: {"announced_seconds": 1.5, "route_seconds": 0.001}),
        "digests": {"lb1": {"web": "0123", "web6": "4567"}, "lb2": {"web": "0123", "web6": "4567"}},
        "forwarded_by_second": 500,
        "stopped": {
            "exit_status": 0,
            "ended_seconds": 5.2,
            "families": both(
                lambda: {
                    "turned_away": 0.01,
                    "withdrawn": 2.02,
                    "last_late_request": 5.1,
                    "late_requests": 80,
                    "late_failed_before": 0,
                }
            ),
        },
        "active_flows_of_second": 61,
        "requests": both(requests),
        "streams": both(streams),
    }


def failed_claims(path: tuple, value, good=good_figures, judge=claims.judge) -> list[str]:
    """The claims that fail when one figure of the good ones is another."""
    figures = copy.deepcopy(good())
    place = figures
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place, path
    place[path[-1]] = value
    return [claim.text for claim in judge(figures) if not claim.passed]


class Claims(unittest.TestCase):
    def test_good_figures_pass(self):
        judged = claims.judge(good_figures())
        self.assertEqual([claim.text for claim in judged if not claim.passed], [])
        self.assertGreater(len(judged), 10)

    def test_each_fault_fails_one_claim(self):
        uneven = requests(backends={"b1": 290, "b2": 10})
        broken = streams() | {"broken": 1, "ended_well": 29}
        few = requests(backends={"b2": 150, "b3": 150})
        for path, value, claim in (
            (("requests", "IPv4"), requests(failed=1), "requests over IPv4 in IPv4"),
            (("requests", "IPv6"), uneven, "requests over IPv6 in IPv4"),
            (("requests_ipv6_tunnel", "IPv4"), uneven, "requests over IPv4 in IPv6"),
            (("requests", "IPv4"), requests(0), "requests over IPv4 in IPv4"),
            (("uploads", "IPv4", "failure"), "timed out", "the upload of 50 MB over IPv4"),
            (("uploads", "IPv6", "bytes"), 1000, "the upload of 50 MB over IPv6"),
            (("downloads", "IPv4", "bytes_to_balancer"), 53000000, "answers over IPv4 return"),
            (("streams", "IPv6"), broken, "60 long streams"),
            (("streams", "IPv4", "ended_well"), 29, "60 long streams"),
            (("drain", "active_at_begin"), 0, "streams were on b1"),
            (("requests_meanwhile", "IPv4"), requests(failed=1), "no request fails"),
            (("drain", "new_flows"), 1, "no new flow on b1"),
            (("drain", "of_these_on_drained"), 1, "no new flow on b1"),
            (("drain", "requests_begun_later"), 0, "no new flow on b1"),
            (("drain", "exit_status"), 5, "the command says when b1 is empty"),
            (("drain", "active_at_end"), 1, "the command says when b1 is empty"),
            (("drain", "lines"), ["web/b1: 1 active flow"], "the command says when b1 is empty"),
            (("drain", "seconds_after_last_stream"), -1.0, "the command says when b1 is empty"),
            (("drain", "seconds_after_last_stream"), 60.0, "the command says when b1 is empty"),
            (("after_enable", "state"), "draining", "enabled again, b1"),
            (("after_enable", "requests", "IPv4"), few, "enabled again, b1"),
            (("tunnels", "decapsulated_6in6"), 0, "every mix"),
            (("packets", "identity", "holds"), False, "accounts for every packet"),
            (("packets", "packets", "received"), 0, "accounts for every packet"),
            (("idle", "cpu_percent"), 40.0, "the idle lab"),
        ):
            with self.subTest(figure=path, value=value):
                failed = failed_claims(path, value)
                self.assertEqual(len(failed), 1, failed)
                self.assertIn(claim, failed[0])


class Takeover(unittest.TestCase):
    def test_good_figures_pass(self):
        judged = takeover_claims.judge(good_takeover())
        self.assertEqual([claim.text for claim in judged if not claim.passed], [])
        self.assertGreater(len(judged), 5)

    def test_each_fault_fails_one_claim(self):
        v4, v6 = ("stopped", "families", "IPv4"), ("stopped", "families", "IPv6")
        for path, value, claim in (
            (("joined", "IPv6", "announced_seconds"), 20.0, "lb2 announces the VIPs"),
            (("back", "IPv4", "route_seconds"), 20.0, "lb1 announces the VIPs"),
            (("digests", "lb2", "web6"), "89ab", "place flows alike"),
            (("forwarded_by_second",), 0, "place flows alike"),
            ((*v4, "turned_away"), None, "in order over IPv4"),
            ((*v4, "withdrawn"), None, "in order over IPv4"),
            ((*v4, "withdrawn"), 0.02, "in order over IPv4"),  # no time to turn away
            ((*v4, "withdrawn"), 5.0, "in order over IPv4"),  # and then no packet forwarded
            ((*v6, "last_late_request"), 2.1, "in order over IPv6"),
            ((*v6, "last_late_request"), 9.0, "in order over IPv6"),  # it had ended by then
            ((*v6, "late_failed_before"), 1, "in order over IPv6"),
            (("streams", "IPv4"), streams() | {"broken": 1, "ended_well": 29}, "60 streams"),
            (("streams", "IPv6", "ended_well"), 29, "60 streams"),
            (("active_flows_of_second",), 30, "60 streams"),
            (("requests", "IPv6"), requests(failed=1), "no request fails"),
        ):
            with self.subTest(figure=path, value=value):
                failed = failed_claims(path, value, good_takeover, takeover_claims.judge)
                self.assertEqual(len(failed), 1, failed)
                self.assertIn(claim, failed[0])

    def test_a_daemon_that_does_not_end_well_fails_the_order_of_both_families(self):
        path = ("stopped", "exit_status")
        failed = failed_claims(path, -9, good_takeover, takeover_claims.judge)
        self.assertEqual(len(failed), 2, failed)


if __name__ == "__main__":
    unittest.main()
