# SPDX-License-Identifier: Apache-2.0
"""What operators change with the CLI: drains and their followers, and weights."""

import json
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import HOLDFAST, WithDaemon  # noqa: E402


class Drains(WithDaemon):
    def follow(self, *words):
        return subprocess.Popen(
            [HOLDFAST, "--socket", self.daemon.socket, "--json", "backend", "drain", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)

    def number_of(self, pool, name):
        """The backend's number, found by giving each number a count of its own."""
        for number in range(8):
            self.daemon.say(f"active {number} {100 + number}")
        time.sleep(0.1)
        active = self.daemon.backend(pool, name)["active_flows"]
        for number in range(8):
            self.daemon.say(f"active {number} 0")
        return active - 100

    def test_a_drain_tells_what_is_left_and_when_it_is_empty(self):
        number = self.number_of("web", "b1")
        self.daemon.say(f"active {number} 5")
        time.sleep(0.1)
        process = self.follow("web/b1")
        first = json.loads(process.stdout.readline())
        self.assertEqual(first["active_flows"], 5)
        row = self.daemon.backend("web", "b1")
        self.assertEqual((row["state"], row["slots"]), ("draining", 0))
        self.assertEqual(self.daemon.backend("dns", "b1")["state"], "eligible")
        second = json.loads(process.stdout.readline())
        self.assertAlmostEqual(second["draining_seconds"], 1, delta=0.9)
        self.daemon.say(f"active {number} 0")
        rest = [json.loads(line) for line in process.stdout]
        self.assertEqual(process.wait(5), 0)
        process.stderr.close()
        process.stdout.close()
        self.assertTrue(rest[-1]["empty"])
        self.assertGreater(rest[-1]["after_seconds"], 0.9)
        self.assertGreaterEqual(rest[-1]["confirmed_after_seconds"], rest[-1]["after_seconds"] + 1)

        text = self.daemon.run("backend", "enable", "web/b1", check=0).stdout
        self.assertRegex(text, r"^web/b1: enabled, now eligible \(")
        self.assertEqual(self.daemon.backend("web", "b1")["state"], "eligible")
        self.assertRegex(self.daemon.logged(), r'command backend drain: asked by uid \d+ \(pid \d+\): .*web/b1')

    def test_a_drain_in_text(self):
        text = self.daemon.run("backend", "drain", "web/b1", check=0).stdout.splitlines()
        self.assertRegex(
            text[0], r"^web/b1: draining for \d\.\d s, 0 active flows left; waiting 1 s to be sure$")
        self.assertRegex(
            text[-1], r"^web/b1: empty: it had no active flow, confirmed after 1\.\d s$")

    def test_the_last_lines_of_a_drain_name_one_end_of_the_last_flow(self):
        number = self.number_of("web", "b1")
        self.daemon.say(f"active {number} 3")
        time.sleep(0.1)
        threading.Timer(1.5, lambda: self.daemon.say(f"active {number} 0")).start()
        text = self.daemon.run("backend", "drain", "web/b1", check=0).stdout.splitlines()
        self.assertRegex(text[0], r"^web/b1: draining for \d\.\d s, 3 active flows left$")
        found = re.fullmatch(r"web/b1: draining for \d\.\d s, 0 active flows left, "
                             r"the last ended after (\d\.\d s); waiting 1 s to be sure", text[-2])
        self.assertTrue(found, text)
        last = re.fullmatch(r"web/b1: empty: the last active flow ended after (\d\.\d) s, "
                            r"confirmed after (\d\.\d) s", text[-1])
        self.assertTrue(last, text)
        self.assertEqual(found[1], last[1] + " s")
        self.assertGreaterEqual(float(last[2]) - float(last[1]), 0.9)

    def test_waiting_ends_with_its_own_exit_code_and_the_drain_goes_on(self):
        self.daemon.say(f"active {self.number_of('web', 'b1')} 3")
        result = self.daemon.run("backend", "drain", "web/b1", "--wait-for", "300ms", check=5)
        self.assertRegex(result.stderr, r"not empty after \d\.\d s: 3 active flows are left")
        self.assertEqual(self.daemon.backend("web", "b1")["state"], "draining")

    def test_no_wait_returns_at_once(self):
        self.daemon.say(f"active {self.number_of('web', 'b1')} 3")
        text = self.daemon.run("backend", "drain", "web/b1", "--no-wait", check=0).stdout
        self.assertEqual(text, "web/b1: draining, 3 active flows left\n")
        self.daemon.run("backend", "drain", "b1", "--no-wait", "--wait-for", "1s", check=2)

    def test_a_client_that_leaves_cancels_nothing(self):
        self.daemon.say(f"active {self.number_of('web', 'b1')} 3")
        process = self.follow("web/b1")
        process.stdout.readline()
        process.kill()
        process.communicate()
        time.sleep(0.3)
        self.assertEqual(self.daemon.backend("web", "b1")["state"], "draining")

    def test_enabling_ends_the_wait_of_others(self):
        self.daemon.say(f"active {self.number_of('web', 'b1')} 3")
        process = self.follow("web/b1")
        process.stdout.readline()
        self.daemon.run("backend", "enable", "web/b1", check=0)
        out, _ = process.communicate(timeout=5)
        self.assertEqual(process.returncode, 1)
        self.assertIn("ended by an enable", out)

    def test_after_the_deadline_flows_that_are_left_do_not_stay(self):
        self.daemon.say(f"active {self.number_of('web', 'b1')} 3")
        text = self.daemon.run("backend", "drain", "web/b1", "--timeout", "700ms", check=0).stdout
        self.assertRegex(text.splitlines()[-1], r"deadline passed after \d\.\d s with 3 active")

    def test_a_backend_alone_is_drained_in_all_its_pools(self):
        self.daemon.run("backend", "drain", "127.0.0.1", "--no-wait", check=0)
        for pool in ("web", "dns"):
            self.assertEqual(self.daemon.backend(pool, "b1")["state"], "draining")
        self.assertEqual(self.daemon.run("backend", "enable", "b1", check=0).stdout.count("enabled"), 2)

    def test_draining_the_last_one_warns(self):
        self.daemon.run("backend", "drain", "web/b1", "--no-wait", check=0)
        text = self.daemon.run("backend", "drain", "web/b2", "--no-wait", check=0).stdout
        self.assertIn("warning: pool web has no eligible backend left", text)
        self.assertEqual(self.daemon.json("pool", "show", "web")[0]["new_flows_to"], "draining")

    def test_no_slot_of_another_backend_moves(self):
        self.daemon.wait_for("web", "b1", "eligible")
        before = self.daemon.json("pool", "show", "web")[0]
        self.daemon.run("backend", "drain", "web/b1", "--no-wait", check=0)
        during = self.daemon.json("pool", "show", "web")[0]
        self.daemon.run("backend", "enable", "web/b1", check=0)
        after = self.daemon.json("pool", "show", "web")[0]
        self.assertEqual(before["base_digest"], during["base_digest"])
        self.assertNotEqual(before["effective_digest"], during["effective_digest"])
        self.assertEqual(before["effective_digest"], after["effective_digest"])


class Weights(WithDaemon):
    def pool(self):
        return self.daemon.json("pool", "show", "web")[0]

    def test_a_weight_is_changed_and_put_back(self):
        before = self.pool()
        text = self.daemon.run("backend", "weight", "web/b1", "25", check=0).stdout
        self.assertRegex(text, r"(?m)^web/b1: weight 25 \(was 100, the file has 100\), eligible "
                         r"\(.*\), (19|20)\.\d % of the pool's new flows$")
        self.assertIn("forgotten when holdfastd restarts", text)
        now = self.pool()
        self.assertNotEqual(now["base_digest"], before["base_digest"])
        self.assertIn(f'base digest {now["base_digest"]}; every load balancer must', text)
        row = self.daemon.backend("web", "b1")
        self.assertEqual((row["weight"], row["configured_weight"]), (25, 100))
        self.assertLessEqual(abs(row["slots"] - 1009 / 5), 2)
        self.assertEqual(self.daemon.backend("dns", "b1")["weight"], 100)
        self.assertRegex(self.daemon.run("pool", "show", "web").stdout, r"(?m)^b1 .* 25 \(file: 100\) ")
        events = self.daemon.json("events")[0]["events"]
        self.assertEqual([(event["subject"], event["text"]) for event in events if event["kind"] == "weight"],
                         [("web/b1 (127.0.0.1)", "100 -> 25 (100 in the configuration)")])

        [result] = self.daemon.json("backend", "weight", "web/b1", "100")
        self.assertEqual(result["backends"][0]["weight_before"], 25)
        self.assertEqual(self.pool()["base_digest"], before["base_digest"])
        text = self.daemon.run("backend", "weight", "web/b1", "100", check=0).stdout
        self.assertNotIn("forgotten", text)

    def test_weight_0_ends_new_flows_and_any_other_begins_them(self):
        self.daemon.run("backend", "weight", "web/b3", "100", check=0)  # the file has 0
        self.daemon.wait_for("web", "b3", "eligible")
        self.daemon.run("backend", "weight", "web/b1", "0", check=0)
        row = self.daemon.backend("web", "b1")
        self.assertEqual((row["state"], row["reason"], row["slots"]),
                         ("weight_zero", "weight 0, set by an operator", 0))
        self.daemon.run("backend", "weight", "web/b2", "0", check=0)
        text = self.daemon.run("backend", "weight", "web/b3", "0", check=0).stdout
        self.assertIn("warning: no backend of pool web may take new flows", text)
        self.assertEqual(self.pool()["new_flows_to"], "none")

    def test_a_backend_alone_is_weighted_in_all_its_pools(self):
        [result] = self.daemon.json("backend", "weight", "b1", "7")
        self.assertEqual([row["backend"] for row in result["backends"]], ["web/b1", "dns/b1"])
        self.assertEqual([pool["pool"] for pool in result["pools"]], ["web", "dns"])

    def test_wrong_words_are_refused(self):
        for weight in ("1001", "-1", "+5", "1.5", "x", " 5", "4294967297"):
            self.assertIn("0 to 1000", self.daemon.run("backend", "weight", "web/b1", "--", weight,
                                                       check=2).stderr)
        self.daemon.run("backend", "weight", "web/b9", "5", check=1)
        self.daemon.run("backend", "weight", "web/b1", "5", "6", check=2)
        self.assertEqual(self.daemon.backend("web", "b1")["weight"], 100)


if __name__ == "__main__":
    unittest.main()
