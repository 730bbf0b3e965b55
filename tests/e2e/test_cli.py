# SPDX-License-Identifier: Apache-2.0
"""The real `holdfast` against the real control plane with made-up counters (control_under_test), in
a temporary folder, without root: what operators see, exit codes, drains, and clients that misbehave.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import CONFIG, CONTROL, HOLDFAST, ROOT, Daemon, Listener  # noqa: E402


def assert_output_is_missed(test, command):
    """On a full disk, into a pipe that nobody reads, and into nothing: exit 1 and one line."""
    def run(stdout, before=None):
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout,
                                stderr=subprocess.PIPE, text=True, timeout=20, preexec_fn=before)
        test.assertEqual(result.returncode, 1, result)
        [line] = result.stderr.splitlines()
        test.assertIn("standard output can not be written: ", line)

    with open("/dev/full", "w") as full:
        run(full)
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as pipe:
        run(pipe)
    run(None, lambda: os.close(1))


class WithDaemon(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()
        self.daemon = Daemon(self.listener.port)
        self.daemon.wait_for("web", "b1", "eligible")
        self.daemon.wait_for("web", "b2", "eligible")

    def tearDown(self):
        self.listener.close()
        self.assertEqual(self.daemon.stop(), 0)


class WhatOperatorsSee(WithDaemon):
    def test_status_tells_how_the_daemon_is(self):
        text = self.daemon.run("status", check=0).stdout
        self.assertRegex(text, r"(?m)^site +test$")
        self.assertRegex(text, r"(?m)^workers +1, 1 alive$")
        self.assertRegex(text, r"(?m)^services +2$")
        self.assertRegex(text, r"(?m)^hash seed +fingerprint [0-9a-f]{8}$")
        self.assertRegex(text, r"(?m)^web +3 +2 +0 +1 +eligible$")
        self.assertNotIn("112233445566ff", text + self.daemon.logged())
        [status] = self.daemon.json("status")
        self.assertEqual(status["pid"], self.daemon.process.pid)

    def test_a_worker_that_stands_still_is_seen(self):
        self.daemon.say("heartbeat off")
        until = time.monotonic() + 8
        while self.daemon.json("status")[0]["workers_alive"] == 1:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.2)
        self.assertIn("worker 0: has not moved", self.daemon.logged())

    def test_services_are_listed_with_their_vips(self):
        [result] = self.daemon.json("service", "list")
        web, dns = result["services"]
        self.assertEqual(web["vips"], ["203.0.113.10", "2001:db8::10"])
        self.assertEqual((dns["protocol"], dns["ports"], dns["pool"]), ("udp", "53", "dns"))
        text = self.daemon.run("service", "list", check=0).stdout.splitlines()
        self.assertTrue(text[0].startswith("SERVICE  PROTOCOL  PORTS"))
        self.assertTrue(text[2].startswith("dns      udp       53"))

    def test_a_pool_shows_state_reason_share_and_flows(self):
        for line in ("active 0 12", "embryonic 0 3", "new 0 99"):
            self.daemon.say(line)
        time.sleep(0.1)
        [pool] = self.daemon.json("pool", "show", "web")
        rows = {row["name"]: row for row in pool["backends"]}
        self.assertEqual(rows["b3"]["state"], "weight_zero")
        self.assertEqual(rows["b3"]["slots"], 0)
        self.assertEqual(rows["b1"]["slots"] + rows["b2"]["slots"], 1009)
        self.assertLessEqual(abs(rows["b1"]["slots"] - rows["b2"]["slots"]), 4)
        self.assertEqual(pool["base_digest"], pool["effective_digest"])
        self.assertRegex(pool["base_digest"], "^[0-9a-f]{16}$")
        numbered = [row for row in self.all_backends() if row["active_flows"] == 12]
        self.assertEqual([(row["embryonic"], row["new_flows"]) for row in numbered], [(3, 99)])
        text = self.daemon.run("pool", "show", "web", check=0).stdout
        self.assertRegex(text, r"(?m)^new flows go to +the eligible backends$")
        self.assertRegex(text, r"(?m)^b3 +127\.0\.0\.3 +weight_zero ")
        columns = {line.index(word) for line, word in zip(
            text.splitlines()[-3:], ("eligible", "eligible", "weight_zero"))}
        self.assertEqual(len(columns), 1, "columns are aligned:\n" + text)

    def all_backends(self):
        rows = []
        for pool in ("web", "dns"):
            rows += self.daemon.json("pool", "show", pool)[0]["backends"]
        return rows

    def test_every_counter_of_the_model_is_shown(self):
        header = (ROOT / "lib/model/stats.h").read_text()

        def fields(struct):
            body = re.search(rf"struct {struct} {{(.*?)\n}};", header, re.DOTALL)[1]
            return re.findall(r"^  (?:std::uint64_t|std::array<.*>|std::string|unsigned|int|bool) (\w+)",
                              body, re.MULTILINE)

        [stats] = self.daemon.json("stats")
        text = self.daemon.run("stats", check=0).stdout
        worker = stats["workers"][0]
        for struct, shown in (("PacketCounters", (stats["packets"], worker["packets"])),
                              ("FlowTableCounters", (stats["flow_table"], worker["flow_table"])),
                              ("WorkerStats", (worker,)), ("PortStats", (stats["ports"][0],)),
                              ("SteeringStats", (stats["steering"][0],))):
            names = fields(struct)
            self.assertGreater(len(names), 3, struct)
            for name in names:
                for where in shown:
                    self.assertIn(name, where, struct)
                title = {"name": "port", "port": "steering"}.get(name, name).replace("_", " ")
                self.assertRegex(text, rf"(?m)^{name} |\b{title.upper()}\b", struct)

    def test_counters_add_up_and_are_shown_to(self):
        self.daemon.say("received 1000")
        self.daemon.say("forwarded 990")
        self.daemon.say("drop 16 10")
        time.sleep(0.1)
        [stats] = self.daemon.json("stats")
        self.assertTrue(stats["identity"]["holds"])
        self.assertEqual(stats["packets"]["dropped"], 10)
        self.assertEqual(
            stats["steering"],
            [{"port": "p0", "to_workers": 7, "to_kernel": 3, "no_socket": 0}])
        text = self.daemon.run("stats", check=0).stdout
        self.assertIn("every received packet is accounted for", text)
        self.daemon.say("received 1001")
        time.sleep(0.1)
        self.assertIn("received - accounted for = 1", self.daemon.run("stats", check=0).stdout)

    def test_drops_have_total_rate_and_meaning(self):
        self.assertEqual(self.daemon.run("drops", check=0).stdout, "no packet was dropped\n")
        for total in range(100, 600, 100):
            self.daemon.say(f"drop 16 {total}")
            time.sleep(0.5)
        time.sleep(1)
        [drops] = self.daemon.json("drops")
        [row] = drops["reasons"]
        self.assertEqual((row["reason"], row["total"]), ("unknown_port", 500))
        self.assertGreater(row["per_second"], 10)
        self.assertIn("no service has this protocol and port", row["meaning"])
        self.assertGreater(len(self.daemon.json("drops", "--all")[0]["reasons"]), 20)

    def test_an_unknown_name_is_answered_with_those_that_are_there(self):
        result = self.daemon.run("pool", "show", "api", check=1)
        self.assertIn('no pool "api": there is dns, web', result.stderr)
        result = self.daemon.run("backend", "drain", "web/b9", check=1)
        self.assertIn('no backend "b9" in pool web: there is b1, b2, b3', result.stderr)
        result = self.daemon.run("backend", "enable", "b9", check=1)
        self.assertIn('no backend "b9" in any pool: there is 127.0.0.8, b1, b2, b3', result.stderr)
        [body] = self.daemon.json("backend", "enable", "api/b1", check=1)
        self.assertEqual(body["error"]["code"], "not_found")


class WhereOutputGoes(WithDaemon):
    def test_output_that_can_not_be_written_is_exit_1_with_a_line(self):
        for words in (["status"], ["service", "list"], ["pool", "show", "web"], ["stats"], ["drops"],
                      ["--json", "stats"], ["backend", "drain", "web/b1", "--no-wait"],
                      ["backend", "enable", "web/b1"], ["backend", "drain", "web/b1"]):
            with self.subTest(words=words):
                assert_output_is_missed(self, [HOLDFAST, "--socket", self.daemon.socket, *words])
        self.assertEqual(self.daemon.backend("web", "b1")["state"], "draining")  # it went on

    def test_a_drain_whose_reader_leaves_ends_and_says_so(self):
        self.daemon.say("active 0 5")
        self.daemon.say("active 1 5")
        self.daemon.say("active 2 5")
        process = subprocess.Popen(
            [HOLDFAST, "--socket", self.daemon.socket, "backend", "drain", "web/b1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdout.close()
        _, said = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 1)
        self.assertIn("standard output can not be written: Broken pipe", said)
        self.assertEqual(self.daemon.backend("web", "b1")["state"], "draining")


class Checks(WithDaemon):
    def test_a_backend_that_refuses_goes_down_and_comes_back(self):
        port = self.listener.port
        self.listener.close()
        row = self.daemon.wait_for("web", "b1", "down")
        self.assertIn("connection refused", row["reason"])
        self.daemon.wait_for("web", "b2", "down")
        [pool] = self.daemon.json("pool", "show", "web")
        self.assertEqual(pool["new_flows_to"], "none")
        self.assertIn("nobody", self.daemon.run("pool", "show", "web", check=0).stdout)
        self.listener = Listener("127.0.0.2", port)
        self.daemon.wait_for("web", "b2", "eligible")
        self.assertEqual(self.daemon.backend("web", "b1")["state"], "down")
        self.assertEqual(self.daemon.backend("web", "b2")["slots"], 1009)
        log = self.daemon.logged()
        self.assertRegex(log, r"backend web/b1 \(127\.0\.0\.1\): eligible -> down: .*refused")
        self.assertRegex(log, r"backend web/b2 \(127\.0\.0\.2\): down -> eligible: ")

    def test_checks_leave_no_connection_behind(self):
        time.sleep(1)
        port = f":{self.listener.port:04X}"
        waiting = [line for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
                   if line.split()[2].endswith(port) and line.split()[3] == "06"]
        self.assertEqual(waiting, [], "TIME_WAIT")


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


class ConfigShow(WithDaemon):
    def test_what_is_shown_is_a_file_that_says_the_same(self):
        text = self.daemon.run("config", "show", check=0).stdout
        self.assertRegex(text, r"^# hash seed: fingerprint [0-9a-f]{8}\n\[site\]\nname = \"test\"\n")
        self.assertIn(f'hash_seed_file = "{self.daemon.path}/seed"', text)
        self.assertNotIn("00112233445566ff", text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "shown.toml")
            # The backends are played on loopback, which no file may name.
            path.write_text(text.replace("127.0.0.", "192.0.2."))
            checked = subprocess.run([HOLDFAST, "check", path], capture_output=True, text=True, timeout=10)
            self.assertEqual(checked.returncode, 0, checked)
            self.assertIn("good: VIPs 2, services 2, pools 2, backends 5", checked.stdout)

    def test_what_was_set_at_run_time_is_a_comment(self):
        self.daemon.run("backend", "weight", "web/b1", "5", check=0)
        text = self.daemon.run("config", "show", check=0).stdout
        self.assertIn("\n# web/b1 has weight 5 until holdfastd restarts\n", text)
        self.assertRegex(text, r'name = "b1", address = "127.0.0.1", weight = 100,')
        [shown] = self.daemon.json("config", "show")
        self.assertEqual(shown["run_time_weights"], [{"backend": "web/b1", "weight": 5}])
        self.assertTrue(text.endswith(shown["toml"]))


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


class Lookup(WithDaemon):
    """control_under_test has two workers whose flow tables are empty."""

    def look_up(self, *words):
        return self.daemon.json("lookup", *words)[0]

    def test_a_new_flow_goes_to_its_slot_s_owner(self):
        flow = ("tcp", "198.51.100.7:40001", f"203.0.113.10:{self.listener.port}")
        answer = self.look_up(*flow)
        owner = answer["base_owner"]["backend"]
        self.assertIn(owner, ("web/b1", "web/b2"))
        self.assertEqual((answer["service"], answer["pool"], answer["slots"]), ("web", "web", 1009))
        self.assertEqual([worker["next"]["backend"] for worker in answer["workers"]], [owner] * 2)
        self.assertEqual(answer["workers"][0]["syn"]["because"], "it is the slot's base owner")
        self.daemon.run("backend", "drain", owner, "--no-wait", check=0)
        answer = self.look_up(*flow)
        self.assertNotEqual(answer["effective_owner"]["backend"], owner)
        text = self.daemon.run("lookup", *flow, check=0).stdout
        self.assertRegex(text, rf"(?m)^  because +it is the slot's owner in the overlay, instead of "
                         rf"the base owner {owner}, which is draining \(drained by an operator")
        self.assertRegex(text, r"(?m)^flow table +no worker has it$")

    def test_flows_are_spread_like_slots(self):
        share = {}
        for port in range(100):
            answer = self.look_up("tcp", f"[2001:db8::7]:{port}",
                                  f"[2001:db8::10]:{self.listener.port}")
            backend = answer["workers"][0]["next"]["backend"]
            share[backend] = share.get(backend, 0) + 1
        self.assertEqual(sorted(share), ["web/b1", "web/b2"])
        self.assertGreater(min(share.values()), 20)

    def test_what_reaches_no_backend_is_said(self):
        text = self.daemon.run("lookup", "tcp", "198.51.100.7:1", "203.0.113.99:80", check=0).stdout
        self.assertRegex(text, r"goes to +the kernel: 203\.0\.113\.99 is no VIP")
        self.assertEqual(self.look_up("udp", "198.51.100.7:1", "203.0.113.10:54")["dropped"], "unknown_port")
        self.assertEqual(self.look_up("udp", "127.0.0.1:1", "203.0.113.10:53")["dropped"], "ipv4_martian")

    def test_wrong_words_are_refused(self):
        good = ["tcp", "198.51.100.7:1", "203.0.113.10:80"]
        for place, word, said in ((0, "sctp", "tcp or udp"), (1, "198.51.100.7", "SOURCE must be"),
                                  (1, "2001:db8::1:80", "SOURCE must be"),
                                  (2, "203.0.113.10:70000", "DESTINATION must be"),
                                  (1, "[2001:db8::7]:1", "both be IPv4 or both be IPv6")):
            words = [*good[:place], word, *good[place + 1:]]
            result = self.daemon.run("lookup", *words, check=2)
            self.assertIn(said, result.stderr)
        self.daemon.run("lookup", *good, "surplus", check=2)
        self.daemon.run("lookup", *good[:2], check=2)


class Events(WithDaemon):
    def events(self):
        return self.daemon.json("events")[0]["events"]

    @contextlib.contextmanager
    def follow(self):
        """Ended in any case: a follower ends by itself only with its daemon."""
        process = subprocess.Popen([HOLDFAST, "--socket", self.daemon.socket, "--json", "events",
                                    "--follow"], stdout=subprocess.PIPE, text=True, bufsize=1)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def test_what_happened_is_told_in_order(self):
        self.daemon.run("backend", "drain", "web/b1", "--no-wait", "--timeout", "200ms", check=0)
        until = time.monotonic() + 5
        while not any("flows that are left move now" in event["text"] for event in self.events()):
            self.assertLess(time.monotonic(), until, self.events())
            time.sleep(0.05)
        self.daemon.run("backend", "enable", "web/b1", check=0)
        events = self.events()
        self.assertEqual([event["number"] for event in events], list(range(1, len(events) + 1)))
        clock = [event["boot_seconds"] for event in events]
        self.assertEqual(clock, sorted(clock))
        told = [(event["kind"], event["subject"], event["text"]) for event in events]
        self.assertEqual(told[0][:2], ("daemon", "holdfastd"))
        mine = [line for line in told if line[0] != "command" and line[1].startswith("web/b1 ")]
        for line, expected in zip(mine, (
                ("backend", "unchecked: "), ("backend", "unchecked -> eligible: "),
                ("drain", "started: flows that are left after 0.2 s move"),
                ("backend", "eligible -> draining: drained by an operator"),
                ("backend", "flows that are left move now, "),
                ("drain", "ended"), ("backend", "draining -> eligible: ")), strict=True):
            self.assertEqual(line[:2], (expected[0], "web/b1 (127.0.0.1)"))
            self.assertTrue(line[2].startswith(expected[1]), line)
        [asked, _] = [line for line in told if line[0] == "command"]
        self.assertEqual(asked[1], "backend drain")
        self.assertRegex(asked[2], r"^asked by uid \d+ \(pid \d+\): .*web/b1")
        for event in events:
            self.assertIn(f'{event["kind"]} {event["subject"]}: {event["text"]}', self.daemon.logged())

    def test_in_text_an_event_is_a_line(self):
        lines = self.daemon.run("events", check=0).stdout.splitlines()
        self.assertEqual(len(lines), len(self.events()))
        self.assertRegex(lines[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info    daemon holdfastd: ")

    def test_following_goes_on_with_what_happens(self):
        with self.follow() as process:
            told = [json.loads(process.stdout.readline()) for _ in self.events()]
            self.assertEqual(told, self.events()[:len(told)])
            self.daemon.run("backend", "drain", "web/b2", "--no-wait", check=0)
            while "-> draining" not in told[-1]["text"]:
                told.append(json.loads(process.stdout.readline()))
            self.assertEqual([event["number"] for event in told], list(range(1, len(told) + 1)))
            # The first checks of other backends may come between.
            asked = next(i for i, event in enumerate(told) if event["kind"] == "command")
            ours = [event["kind"] for event in told[asked:]
                    if event["kind"] == "command" or event["subject"].startswith("web/b2 ")]
            self.assertEqual(ours, ["command", "drain", "backend"])
        self.assertEqual(self.daemon.json("status")[0]["slow_callbacks"], 0)

    def test_a_follower_that_does_not_read_is_dropped_and_stalls_nobody(self):
        with contextlib.ExitStack() as silent:
            for _ in range(3):
                client = silent.enter_context(socket.socket(socket.AF_UNIX))
                client.connect(self.daemon.socket)
                client.sendall(b'{"v":1,"id":1,"command":"events","arguments":{"follow":true}}\n')
            with socket.socket(socket.AF_UNIX) as busy:  # asks for more than a follower may leave unread
                busy.connect(self.daemon.socket)
                request = b'{"v":1,"id":1,"command":"backend enable","arguments":{"backend":"web/b1"}}\n'
                answers = busy.makefile("rb")
                until = time.monotonic() + 60
                while self.daemon.logged().count("does not read its answers and is dropped") < 3:
                    self.assertLess(time.monotonic(), until, "not dropped")
                    busy.sendall(request * 10)
                    for _ in range(10):
                        self.assertIn(b"result", answers.readline())
                answers.close()
            self.assertLess(self.daemon.json("status")[0]["slow_callbacks"], 5)


class HungDaemon(WithDaemon):
    """Stopped by SIGSTOP: the kernel still takes connections and requests for it."""

    @contextlib.contextmanager
    def stopped(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def test_a_daemon_that_hangs_is_one_clear_line(self):
        commands = (["status"], ["events", "--follow"], ["backend", "drain", "web/b1"])
        with self.stopped():
            start = time.monotonic()
            running = [subprocess.Popen([HOLDFAST, "--socket", self.daemon.socket, *words], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                       for words in commands]
            for process in running:
                output, errors = process.communicate(timeout=15)
                self.assertEqual((process.returncode, output), (3, ""))
                [line] = errors.splitlines()
                self.assertIn(f"holdfastd at {self.daemon.socket} does not answer within 5 s", line)
            self.assertGreater(time.monotonic() - start, 4.5)
        self.daemon.run("status", check=0)

    def test_a_daemon_whose_queue_is_full_is_one_clear_line_too(self):
        with self.stopped(), contextlib.ExitStack() as waiting:
            with contextlib.suppress(BlockingIOError):
                for _ in range(1000):
                    client = waiting.enter_context(socket.socket(socket.AF_UNIX))
                    client.setblocking(False)
                    client.connect(self.daemon.socket)
                self.fail("the queue has no end")
            result = self.daemon.run("status", check=3)
            self.assertIn("does not answer within 5 s", result.stderr)

    def test_after_the_first_answer_nothing_is_too_late(self):
        for number in range(8):
            self.daemon.say(f"active {number} 1")
        time.sleep(0.1)
        processes = [subprocess.Popen([HOLDFAST, "--socket", self.daemon.socket, "--json", *words],
                                      text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for words in (["events", "--follow"], ["backend", "drain", "web/b1"])]
        follower, drain = processes
        for process in processes:
            self.assertNotEqual(json.loads(process.stdout.readline()), {})
        with self.stopped():
            time.sleep(6)
        self.daemon.run("backend", "enable", "web/b1", check=0)
        self.assertEqual(drain.wait(10), 1)
        self.assertIsNone(follower.poll())
        follower.terminate()
        for process in processes:
            _, errors = process.communicate(timeout=10)
            self.assertNotIn("does not answer", errors)

    def test_a_follower_with_nothing_to_be_told_waits_on(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as idle:
            path = f"{folder}/s"
            idle.bind(path)
            idle.listen()
            process = subprocess.Popen([HOLDFAST, "--socket", path, "--json", "events", "--follow"],
                                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            client, _ = idle.accept()
            with client:
                client.recv(4096)
                client.sendall(b'{"id":1,"event":{}}\n')
                with self.assertRaises(subprocess.TimeoutExpired):
                    process.wait(6)
                client.sendall(b'{"id":1,"result":{"done":true}}\n')
                output, errors = process.communicate(timeout=5)
        self.assertEqual((process.returncode, output, errors), (0, '{"done":true}\n', ""))


class BadClients(WithDaemon):
    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.connect(self.daemon.socket)
        client.settimeout(5)
        return client

    def test_garbage_gets_an_error_and_harms_nobody(self):
        with self.connect() as client:
            client.sendall(b"\x00\xff\xfe garbage\n[]\n{}\n" + b'{"v":1,"id":3,"command":"status"}\n')
            with client.makefile("rb") as answers:
                codes = [json.loads(answers.readline()).get("error", {}).get("code")
                         for _ in range(4)]
        self.assertEqual(codes, ["bad_request"] * 3 + [None])

    def test_what_a_client_says_comes_back_escaped_and_cut(self):
        strange = "a\x1b[2J\n\x7f\x9b\u202e"
        requests = [{"v": 1, "id": 1, "command": word} for word in (strange, "x" * 60_000)]
        requests += [{"v": 1, "id": 1, "command": "status", word: 1} for word in (strange, "x" * 60_000)]
        requests += [{"v": 1, "id": 1, "command": command, "arguments": {key: word}}
                     for word in (strange, "x" * 60_000)
                     for command, key in (("pool show", "pool"), ("backend enable", "backend"))]
        with self.connect() as client, client.makefile("rb") as answers:
            for request in requests:
                client.sendall(json.dumps(request).encode() + b"\n")
                message = json.loads(answers.readline())["error"]["message"]
                self.assertTrue(message.isprintable(), message)
                self.assertLess(len(message), 300)
        log = self.daemon.logged()
        self.assertTrue(all(line.isprintable() and len(line) < 1000 for line in log.splitlines()), log)

    def test_wrong_arguments_are_refused_by_name(self):
        def ask(command, arguments):
            with self.connect() as client:
                client.sendall(json.dumps({"v": 1, "id": 1, "command": command,
                                           "arguments": arguments}).encode() + b"\n")
                return json.loads(client.makefile("rb").readline())["error"]
        self.assertIn('has no argument "pol"', ask("pool show", {"pool": "web", "pol": 1})["message"])
        self.assertIn('POOL must be a text', ask("pool show", {"pool": ["web"]})["message"])
        self.assertIn("needs POOL", ask("pool show", {})["message"])
        self.assertIn("duration", ask("backend drain", {"backend": "b1", "timeout": "1"})["message"])
        self.assertIn("duration", ask("backend drain", {"backend": "b1", "timeout": 1})["message"])
        self.assertEqual(ask("reboot", {})["code"], "unknown_command")

    def test_one_that_never_reads_stalls_nobody_and_is_dropped(self):
        with self.connect() as silent:
            silent.setblocking(False)
            request = b'{"v":1,"id":1,"command":"stats"}\n'
            sent = 0
            with contextlib.suppress(OSError):
                while sent < 4_000_000:
                    sent += silent.send(request * 100)
            worst = 0
            until = time.monotonic() + 15
            while "does not read its answers and is dropped" not in self.daemon.logged():
                self.assertLess(time.monotonic(), until, "not dropped")
                start = time.monotonic()
                self.daemon.run("status", check=0)
                worst = max(worst, time.monotonic() - start)
                with contextlib.suppress(OSError):
                    silent.send(request * 100)
            self.assertLess(worst, 2)

    def test_a_hundred_at_once(self):
        clients = [self.connect() for _ in range(100)]
        for number, client in enumerate(clients):
            client.sendall(b'{"v":1,"id":%d,"command":"pool show","arguments":{"pool":"web"}}\n' % number)
        for number, client in enumerate(clients):
            with client, client.makefile("rb") as answers:
                self.assertEqual(json.loads(answers.readline())["id"], number)

    def test_a_second_daemon_is_refused_in_one_sentence(self):
        second = subprocess.run([CONTROL, self.daemon.config], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=10)
        self.assertEqual(second.returncode, 1)
        [line] = second.stderr.splitlines()
        self.assertIn(f"another holdfastd (pid {self.daemon.process.pid}) listens there", line)
        self.daemon.run("status", check=0)

    def test_the_loop_was_never_held(self):
        for _ in range(20):
            self.daemon.run("pool", "show", "web", check=0)
            self.daemon.run("stats", check=0)
        # A machine that is busy itself may take the processor away for that long, now and then.
        self.assertLess(self.daemon.json("status")[0]["slow_callbacks"], 5, self.daemon.logged())


class WithoutDaemon(unittest.TestCase):
    def run_cli(self, *words, **options):
        return subprocess.run([HOLDFAST, *words], capture_output=True, text=True, timeout=10, **options)

    def test_no_daemon_is_one_clear_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/holdfast.sock"
            result = self.run_cli("--socket", path, "status")
            self.assertEqual(result.returncode, 3)
            [line] = result.stderr.splitlines()
            self.assertIn(f"no holdfastd is running: there is no socket {path}", line)
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(path)
            result = self.run_cli("--socket", path, "status")
            self.assertEqual(result.returncode, 3)
            [line] = result.stderr.splitlines()
            self.assertIn(f"nobody listens on {path}", line)
            result = self.run_cli("--json", "--socket", path, "drops")
            self.assertEqual(result.returncode, 3)
            self.assertEqual(json.loads(result.stdout)["error"]["code"], "no_daemon")

    @unittest.skipIf(os.geteuid() != 0, "only root can become somebody else")
    def test_no_permission_is_one_clear_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/holdfast.sock"
            os.chmod(folder, 0o755)
            with socket.socket(socket.AF_UNIX) as live:
                live.bind(path)
                live.listen()
                os.chmod(path, 0o660)
                # The build may lie where the other user can not look: hand the program over open.
                program = os.open(HOLDFAST, os.O_RDONLY)
                result = subprocess.run([f"/proc/self/fd/{program}", "--socket", path, "status"],
                                        capture_output=True, text=True, timeout=10, user=65534,
                                        group=65534, extra_groups=[], pass_fds=[program])
                os.close(program)
        self.assertEqual(result.returncode, 4, result)
        [line] = result.stderr.splitlines()
        self.assertIn("no permission", line)

    def test_a_daemon_that_vanishes_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/holdfast.sock"
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(path)
                server.listen()
                threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
                result = self.run_cli("--socket", path, "status")
        self.assertEqual(result.returncode, 3)
        self.assertIn("closed the connection before it answered", result.stderr)

    def test_a_usage_error_is_json_with_json_wherever_it_is_found(self):
        for words in (["--json", "status", "x"], ["status", "x", "--json"], ["--json"],
                      ["--json", "reboot"], ["--json", "pool", "show"],
                      ["--json", "backend", "drain", "b1", "--timeout", "1"]):  # found by our own check
            with self.subTest(words=words):
                result = self.run_cli(*words)
                self.assertEqual((result.returncode, result.stderr), (2, ""))
                [line] = result.stdout.splitlines()
                error = json.loads(line)["error"]
                self.assertEqual((error["code"], sorted(error)), ("usage", ["code", "message", "where"]))
                self.assertFalse(error["message"].startswith("holdfast:"))

    def test_wrong_use_is_exit_2(self):
        for words in ([], ["status", "surplus"], ["pool"], ["pool", "show"], ["nope"],
                      ["pool", "show", "a", "b"], ["status", "--nope"], ["events", "surplus"],
                      ["config", "show", "surplus"],
                      ["backend", "drain", "b1", "--timeout", "5"]):
            with self.subTest(words=words):
                result = self.run_cli(*words)
                self.assertEqual(result.returncode, 2, result)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_where_no_command_is_those_that_are_there_are_named(self):
        for words, said in (([], "a command is required: status, "),
                            (["nope"], 'there is no command "nope" here: status, '),
                            (["pool"], "a command is required; pool has: show ("),
                            (["pool", "show"], "POOL is required ("),
                            (["backend", "stop"], '"stop" here; backend has: drain, enable, weight (')):
            with self.subTest(words=words):
                self.assertIn(said, self.run_cli(*words).stderr)

    def test_an_empty_name_is_called_empty(self):
        for words in (["pool", "show", ""], ["backend", "drain", ""], ["backend", "enable", ""],
                      ["check", ""]):
            with self.subTest(words=words):
                result = self.run_cli(*words)
                self.assertEqual(result.returncode, 2, result)
                [line] = result.stderr.splitlines()
                self.assertRegex(line, r" (POOL|BACKEND|FILE) is an empty name \(")

    def test_words_of_the_command_line_come_back_escaped_and_cut(self):
        for word in ("a\x1b[2J\n\x9b", "x" * 70_000):
            for words in ([word], ["status", word], ["status", f"--{word}"], ["pool", word],
                          ["--socket", f"/nonexistent/{word}", "status"], ["check", f"/none/{word}"],
                          ["backend", "drain", "b1", "--timeout", word]):
                with self.subTest(words=[word[:20] for word in words]):
                    result = self.run_cli(*words)
                    self.assertNotEqual(result.returncode, 0)
                    self.assertTrue(all(line.isprintable() for line in result.stderr.splitlines()),
                                    result.stderr)
                    self.assertLessEqual(len(result.stderr.splitlines()), 2)
                    self.assertLess(len(result.stderr), 800)

    def test_a_socket_path_that_can_not_be_one_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder, "plain")
            plain.write_text("")
            other = f"{folder}/datagrams"
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
                datagrams.bind(other)
                for path, code, says in (
                    ("", 2, "--socket is empty"),
                    ("/" + 199 * "s", 2, "--socket has 200 bytes, but a socket's path has at most 107"),
                    (folder, 3, f"{folder} is a folder, not a socket"),
                    (str(plain), 3, f"{plain} is a file, not a socket"),
                    (f"{plain}/h.sock", 3, f"there is no socket {plain}/h.sock"),
                    ("/dev/null", 3, "/dev/null is a device or pipe, not a socket"),
                    (other, 3, f"{other} is a socket of another kind"),
                ):
                    with self.subTest(path=path):
                        result = self.run_cli("--socket", path, "status")
                        self.assertEqual(result.returncode, code, result)
                        [line] = result.stderr.splitlines()
                        self.assertIn(says, line)

    def test_output_that_can_not_be_written_is_exit_1_with_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "holdfast.toml")
            path.write_text(CONFIG.format(socket="/nonexistent", port=80))
            for words in (["check", str(path)], ["--json", "check", str(path)], ["--help"],
                          ["--version"], ["pool", "show", "--help"]):
                with self.subTest(words=words):
                    assert_output_is_missed(self, [HOLDFAST, *words])
            # Where JSON can not be written, the reason and its code are seen all the same.
            with open("/dev/full", "w") as full:
                result = subprocess.run([HOLDFAST, "--json", "--socket", f"{folder}/none", "status"],
                                        stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
            self.assertEqual(result.returncode, 3)
            self.assertIn("no holdfastd is running", result.stderr)

    def test_an_unwritable_standard_error_does_not_crash(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([HOLDFAST, "--socket", "/nonexistent/s", "status"], stderr=full,
                                    timeout=10)
        self.assertEqual(result.returncode, 3)

    def test_every_command_has_help_with_an_example(self):
        top = self.run_cli("--help")
        self.assertEqual(top.returncode, 0)
        for words in (["status"], ["service", "list"], ["pool", "show"], ["backend", "drain"],
                      ["backend", "enable"], ["backend", "weight"], ["lookup"], ["events"], ["stats"], ["drops"],
                      ["config", "show"], ["check"]):
            with self.subTest(words=words):
                result = self.run_cli(*words, "--help")
                self.assertEqual(result.returncode, 0)
                self.assertRegex(result.stdout, f"Example: holdfast {' '.join(words)}")
                self.assertRegex(top.stdout, f"(?m)^ +{words[0]} ")

    def test_check_needs_no_daemon(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "holdfast.toml")
            path.write_text(CONFIG.format(socket="/nonexistent", port=80))
            result = self.run_cli("check", str(path))
            self.assertEqual(result.returncode, 0, result)
            self.assertIn("note: hash_seed_file was not checked", result.stdout)
            self.assertIn("good: VIPs 2, services 2, pools 2, backends 5", result.stdout)
            Path(folder, "seed").write_text("not a seed")
            self.assertEqual(self.run_cli("check", str(path)).returncode, 1)
            Path(folder, "seed").write_text("0" * 5000)
            result = self.run_cli("check", str(path))
            self.assertEqual(result.returncode, 1)
            self.assertIn("seed: is larger than 4 KiB: not a hash seed", result.stderr)
            Path(folder, "seed").unlink()
            Path(folder, "seed").mkdir()  # it is there, but the daemon could not start with it
            result = self.run_cli("check", str(path))
            self.assertEqual(result.returncode, 1)
            self.assertIn("seed: can not be read: Is a directory", result.stderr)
            Path(folder, "seed").rmdir()
            Path(folder, "seed").write_text("0123456789abcdef\n")
            self.assertEqual(self.run_cli("check", str(path)).stdout.count("\n"), 1)

            text = path.read_text().replace("weight = 0", "weight = 5000").replace('"53"', '"x"')
            path.write_text(text)
            result = self.run_cli("check", str(path))
            self.assertEqual(result.returncode, 1)
            faults = [line for line in result.stderr.splitlines()
                      if re.match(rf"{re.escape(str(path))}:\d+:\d+: ", line)]
            self.assertEqual(len(faults), 2, result.stderr)
            body = json.loads(self.run_cli("--json", "check", str(path)).stdout)
            self.assertEqual([fault["line"] > 0 for fault in body["faults"]], [True, True])


if __name__ == "__main__":
    unittest.main()
