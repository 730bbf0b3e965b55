# SPDX-License-Identifier: Apache-2.0
"""What operators see: the real `holdfast` against the real control plane with made-up counters
(control_under_test), in a temporary folder, without root.
"""

import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import HOLDFAST, ROOT, Listener, WithDaemon  # noqa: E402


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
        self.daemon.say("drop unknown_port 10")
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
            self.daemon.say(f"drop unknown_port {total}")
            time.sleep(0.5)
        time.sleep(1)
        [drops] = self.daemon.json("drops")
        [row] = drops["reasons"]
        self.assertEqual((row["reason"], row["total"]), ("unknown_port", 500))
        self.assertGreater(row["per_second"], 10)
        self.assertIn("no service has this protocol and port", row["meaning"])
        self.assertIsNone(row["latest"])
        self.assertGreater(len(self.daemon.json("drops", "--all")[0]["reasons"]), 20)

    def test_drops_show_the_latest_packet_of_each_reason(self):
        self.daemon.say("drop too_big 1")
        self.daemon.say(f"sample too_big 1 1514 {bytes(range(64)).hex()}")
        time.sleep(0.3)
        [drops] = self.daemon.json("drops")
        (latest,) = (row["latest"] for row in drops["reasons"] if row["reason"] == "too_big")
        self.assertEqual((latest["worker"], latest["length"]), (1, 1514))
        self.assertEqual(bytes.fromhex(latest["head"]), bytes(range(64)))
        self.assertTrue(0 <= latest["seconds_ago"] < 60, latest)
        text = self.daemon.run("drops", check=0).stdout
        self.assertRegex(text, r"\ntoo_big: a frame of 1514 bytes, \d\.\d s ago, worker 1\n")
        self.assertIn("  0020  20 21 22 23 24 25 26 27  28 29 2a 2b 2c 2d 2e 2f  | !\"#$%&'()*+,-./|\n", text)

    def test_an_unknown_name_is_answered_with_those_that_are_there(self):
        result = self.daemon.run("pool", "show", "api", check=1)
        self.assertIn('no pool "api": there is dns, web', result.stderr)
        result = self.daemon.run("backend", "drain", "web/b9", check=1)
        self.assertIn('no backend "b9" in pool web: there is b1, b2, b3', result.stderr)
        result = self.daemon.run("backend", "enable", "b9", check=1)
        self.assertIn('no backend "b9" in any pool: there is 127.0.0.8, b1, b2, b3', result.stderr)
        [body] = self.daemon.json("backend", "enable", "api/b1", check=1)
        self.assertEqual(body["error"]["code"], "not_found")


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
        self.assertEqual(self.look_up("udp", "127.0.0.1:1", "203.0.113.10:53")["dropped"], "ipv4_source_loopback")

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


if __name__ == "__main__":
    unittest.main()
