# SPDX-License-Identifier: Apache-2.0
"""`holdfast flows durations`: the real client and control plane over flow tables that the test fills
(control_under_test), without root. What workers record is in test_durations.py and the pipeline tests."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import WithDaemon  # noqa: E402
from daemon import wait_for  # noqa: E402


class Durations(WithDaemon):
    def durations(self, service):
        [told] = self.daemon.json("flows", "durations", service)
        return told

    def test_streams_of_all_tables_are_told_by_service(self):
        # Service 0 is dns, 1 web. Of the one that closes it is known when it ended.
        for flow in ("0 1 0 proven 3600 1040", "1 1 0 established 30 2", "1 1 0 closing 13 1",
                     "0 1 1 embryonic 3 3", "1 0 1 established 100 0"):
            self.daemon.say(f"flow {flow}")
        wait_for(lambda: self.durations("dns")["open"] == 1, "the flows to be there")
        told = self.durations("web")
        self.assertEqual((told["ended"], told["open"], told["reset"]), (1, 2, 0))
        self.assertEqual(told["p50"], {"seconds": 2560, "more": True})
        self.assertEqual(told["max"], {"seconds": 2560, "more": True})
        text = self.daemon.run("flows", "durations", "web", check=0).stdout
        self.assertRegex(text, r"(?m)^p50 +more than 42 min 40 s: too few have ended")
        self.assertRegex(text, r"(?m)^client resets +0\.0 % of those that ended \(0\)$")
        self.assertRegex(text, r"(?m)^streams +1 ended, 2 open, 0 lost from sight; since the start ")
        self.assertNotIn("reset", self.daemon.run("flows", "durations", "dns", check=0).stdout)

    def test_without_streams_it_says_so(self):
        told = self.durations("web")
        self.assertEqual((told["p50"], told["max"], told["reset_share"]), (None, None, None))
        text = self.daemon.run("flows", "durations", "web", check=0).stdout
        self.assertRegex(text, r"(?m)^durations +none: no stream ")

    def test_an_unknown_service_is_answered_with_those_that_are_there(self):
        result = self.daemon.run("flows", "durations", "api", check=1)
        self.assertIn('no service "api": there is dns, web', result.stderr)
        [body] = self.daemon.json("flows", "durations", "api", check=1)
        self.assertEqual(body["error"]["code"], "not_found")


if __name__ == "__main__":
    unittest.main()
