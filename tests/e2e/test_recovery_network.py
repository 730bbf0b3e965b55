# SPDX-License-Identifier: Apache-2.0
"""Links and the router fail and come back while streams and requests run."""

import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recovery import RecoveryCase  # noqa: E402

from labkit import routing  # noqa: E402

OUTAGE_SECONDS = 2.0


class Network(RecoveryCase):
    def tearDown(self):
        for host in self.lab.topology.linked_hosts:
            self.lab.set_link(host.name, up=True)

    def test_the_other_balancer_takes_over_when_a_link_goes_down(self):
        traffic = self.start_traffic(seconds=13)
        time.sleep(0.5)
        fault = time.monotonic()
        self.lab.set_link("lb1", up=False)
        self.lab.wait_routes("lb2", timeout=3.0)
        moved = time.monotonic()
        time.sleep(max(0.0, fault + OUTAGE_SECONDS - time.monotonic()))
        up = time.monotonic()
        self.lab.set_link("lb1", up=True)
        self.lab.wait_routes("lb1", "lb2", timeout=30.0)
        back = time.monotonic()
        traffic.finish()
        self.tell("link of lb1 down: its route is gone after", moved - fault, traffic)
        self.tell("link of lb1 up: its route is back after", back - up, traffic)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(), 0, traffic.failures)
        self.assertLess(traffic.disturbed_until(fault), OUTAGE_SECONDS + 2.0)

    def test_streams_outlive_a_short_outage_of_their_backends_link(self):
        traffic = self.start_traffic(seconds=8)
        time.sleep(0.5)
        fault = time.monotonic()
        self.lab.set_link("b1", up=False)
        time.sleep(OUTAGE_SECONDS)
        up = time.monotonic()
        self.lab.set_link("b1", up=True)
        for lb in self.lab.topology.lbs:
            self.lab.wait_eligible(lb.name)
        eligible = time.monotonic()
        self.assertLess(eligible, traffic.ends)
        traffic.finish()
        self.tell("link of b1 up: it may have new flows after", eligible - up, traffic)
        self.assert_streams_went_on(traffic)
        self.assertLess(traffic.disturbed_until(fault), OUTAGE_SECONDS + 4.0)

    def test_streams_outlive_a_restart_of_the_router(self):
        traffic = self.start_traffic(seconds=10)
        time.sleep(0.5)
        fault = time.monotonic()
        self.lab.stop_service("bird@router", signal.SIGTERM)
        self.assertEqual(routing.gateways(self.lab, self.lab.topology.vip4), set())
        routing.start_bird(self.lab)
        self.lab.wait_routes("lb1", "lb2", timeout=30.0)
        back = time.monotonic()
        self.assertLess(back, traffic.ends)
        traffic.finish()
        self.tell("router restarted: its routes are back after", back - fault, traffic)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(begin=back), 0, traffic.failures)


if __name__ == "__main__":
    unittest.main()
