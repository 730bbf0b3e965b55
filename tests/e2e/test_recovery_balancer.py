# SPDX-License-Identifier: Apache-2.0
"""A balancer's programs are killed and started again while streams and requests run."""

import json
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recovery import RecoveryCase  # noqa: E402

from labkit import routing, services  # noqa: E402


class Balancer(RecoveryCase):
    def test_a_killed_holdfastd_that_is_started_again_breaks_no_stream(self):
        traffic = self.start_traffic(seconds=6)
        time.sleep(0.5)
        killed = time.monotonic()
        self.lab.kill_service("holdfastd@lb1")
        self.lab.start_holdfastd("lb1")
        self.lab.wait_eligible("lb1")
        self.lab.wait_routes("lb1", "lb2")
        whole = time.monotonic()
        self.assertLess(whole, traffic.ends)
        traffic.finish()
        self.tell("holdfastd killed: all as before after", whole - killed, traffic)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(), 0, traffic.failures)
        self.assertLess(traffic.disturbed_until(killed), 5.0)

    def test_balancers_that_are_all_killed_at_once_break_no_stream(self):
        traffic = self.start_traffic(seconds=6)
        time.sleep(0.5)
        lbs = [lb.name for lb in self.lab.topology.lbs]
        killed = time.monotonic()
        for lb in lbs:
            self.lab.kill_service(f"holdfastd@{lb}")
        for lb in lbs:
            self.lab.start_holdfastd(lb)
        for lb in lbs:
            self.lab.wait_eligible(lb)
        self.lab.wait_routes(*lbs)
        whole = time.monotonic()
        self.assertLess(whole, traffic.ends)
        traffic.finish()
        self.tell("all holdfastd killed: all as before after", whole - killed, traffic)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(begin=whole), 0, traffic.failures)

    def test_a_killed_gobgpd_that_is_started_again_learns_the_vips_anew(self):
        traffic = self.start_traffic(seconds=8)
        time.sleep(0.5)
        killed = time.monotonic()
        self.lab.kill_service("gobgpd@lb1")
        self.lab.wait_routes("lb2", timeout=3.0)
        gone = time.monotonic()
        self.lab.start_gobgpd("lb1")
        started = time.monotonic()
        vips = set(self.lab.topology.vips)
        services.wait_until(
            lambda: routing.rib(self.lab, "lb1") == vips, "the VIPs are in gobgpd's RIB again"
        )
        known = time.monotonic()
        self.lab.wait_routes("lb1", "lb2", timeout=30.0)
        routed = time.monotonic()
        self.assertLess(routed, traffic.ends)
        traffic.finish()
        self.tell("gobgpd killed: the route is gone after", gone - killed, traffic)
        self.tell("gobgpd started: the VIPs are in its RIB after", known - started, traffic)
        self.tell("gobgpd started: the router has the route after", routed - started, traffic)
        self.assertLess(known - started, 2.0)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(), 0, traffic.failures)

    def test_a_hung_gobgpd_is_noticed_and_disturbs_nobody(self):
        traffic = self.start_traffic(seconds=6)
        speaker = self.lab.services["gobgpd@lb1"].process
        stopped = time.monotonic()
        speaker.send_signal(signal.SIGSTOP)
        try:
            self.wait_speaker("hung")
            noticed = time.monotonic()
        finally:
            speaker.send_signal(signal.SIGCONT)
        self.wait_speaker("up")
        up = time.monotonic()
        self.lab.wait_routes("lb1", "lb2")  # never lost: its session's hold time is longer
        self.assertLess(up, traffic.ends)
        traffic.finish()
        self.tell("gobgpd hangs: holdfastd says so after", noticed - stopped, traffic)
        self.tell("gobgpd goes on: holdfastd has it again after", up - noticed, traffic)
        self.assertLess(up - noticed, 2.0)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(), 0, traffic.failures)

    def wait_speaker(self, state: str) -> None:
        """Waits until holdfastd on lb1 says that its speaker is in this state."""

        def reached() -> bool:
            return json.loads(self.lab.holdfast(["bgp", "--json"]).stdout)["state"] == state

        services.wait_until(reached, f"gobgpd is {state} for holdfastd on lb1")


if __name__ == "__main__":
    unittest.main()
