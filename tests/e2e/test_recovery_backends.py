# SPDX-License-Identifier: Apache-2.0
"""A backend's programs are killed and started again while streams and requests run."""

import random
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recovery import RecoveryCase  # noqa: E402

from labkit import services  # noqa: E402


class Backends(RecoveryCase):
    def test_a_killed_nginx_breaks_its_own_streams_alone_and_serves_again(self):
        traffic = self.start_traffic(seconds=7)
        b1 = self.lab.topology.host("b1")
        time.sleep(0.5)
        killed = time.monotonic()
        self.lab.kill_service("nginx@b1")
        for lb in self.lab.topology.lbs:
            self.wait_state(lb.name, "down")
        down = time.monotonic()
        time.sleep(1.0)  # requests of this time find b1 out of the way
        started = time.monotonic()
        services.start_nginx(self.lab, b1)
        for lb in self.lab.topology.lbs:
            self.lab.wait_eligible(lb.name)
        eligible = time.monotonic()
        self.assertLess(eligible, traffic.ends)
        traffic.finish()
        self.tell("nginx killed: b1 is out after", down - killed, traffic)
        self.tell("nginx started: b1 serves again after", eligible - started, traffic)
        self.assert_streams_went_on(traffic, except_on="b1")
        self.assertGreater(sum(one["broken"] for one in traffic.streams.values()), 0)
        self.assertEqual(traffic.failed(end=killed - 0.1), 0)
        self.assertEqual(traffic.failed(begin=down), 0)
        served = [backend for begun, _, backend in traffic.requests if down < begun < started]
        self.assertNotIn("b1", served)
        served = [backend for begun, _, backend in traffic.requests if begun > eligible]
        self.assertIn("b1", served)

    def test_an_agent_killed_at_its_work_disturbs_nobody(self):
        traffic = self.start_traffic(seconds=4)
        argv = services.agent_argv(self.lab, self.lab.topology.host("b1"))
        delays = random.Random(1)
        killed = 0
        for _ in range(30):
            agent = self.lab.popen(
                "b1", argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(delays.uniform(0.0, 0.06))
            agent.kill()
            killed += agent.wait() == -signal.SIGKILL
        fault = time.monotonic()
        services.attach_agent(self.lab, self.lab.topology.host("b1"))
        attached = time.monotonic()
        traffic.finish()
        self.assertGreater(killed, 5)
        self.tell(f"agent killed {killed} times: attached anew in", attached - fault, traffic)
        self.assert_streams_went_on(traffic)
        self.assertEqual(traffic.failed(), 0, traffic.failures)

    def wait_state(self, lb: str, state: str) -> None:
        """Waits until `lb` has b1 in this state in the pool of the tests' requests."""

        def reached() -> bool:
            rows = self.lab.pool("web", lb=lb)["backends"]
            return next(row for row in rows if row["name"] == "b1")["state"] == state

        services.wait_until(reached, f"b1 is {state} on {lb}")


if __name__ == "__main__":
    unittest.main()
