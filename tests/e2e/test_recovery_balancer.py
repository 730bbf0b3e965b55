# SPDX-License-Identifier: Apache-2.0
"""A balancer's programs are killed and started again while streams and requests run."""

import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recovery import RecoveryCase  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
