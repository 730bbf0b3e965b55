# SPDX-License-Identifier: Apache-2.0
"""`holdfast flows`: the real client and control plane over flow tables that the test fills
(control_under_test), without root."""

import collections
import contextlib
import json
import os
import socket
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import WithDaemon  # noqa: E402
from daemon import wait_for  # noqa: E402


class Flows(WithDaemon):
    def setUp(self):
        super().setUp()
        self.flows = 0

    def fill(self, *lines):
        """Entries as control_under_test takes them."""
        for line in lines:
            self.daemon.say(line)
            words = line.split()
            self.flows += int(words[2]) if words[0] == "flows" else 1
        wait_for(lambda: sum(self.count()["total"].values()) == self.flows, "the flows to be there")

    def count(self, *words):
        [result] = self.daemon.json("flows", "count", *words)
        return result

    def page(self, *words):
        [result] = self.daemon.json("flows", "list", *words)
        return result

    def pages(self, *words):
        """Pages of a list to its end."""
        page = self.page(*words)
        yield page
        while page["cursor"] is not None:
            page = self.page(*words, "--cursor", page["cursor"])
            yield page

    def some_flows(self):
        """Numbers are given out in the order of names: service 0 is dns, 1 web."""
        self.fill("flow 0 1 0 proven 3600 900", "flow 0 1 0 established 30 2",
                  "flow 1 1 0 closing 40 5", "flow 1 1 1 proven 7200 0", "flow 1 0 1 embryonic 3 3")

    def test_each_flow_is_listed_with_what_its_entry_holds(self):
        self.some_flows()
        flows = self.page()["flows"]
        self.assertEqual(len(flows), 5)
        self.assertEqual([row["worker"] for row in flows], [0, 0, 1, 1, 1])
        self.assertEqual(collections.Counter(row["service"] for row in flows), {"web": 4, "dns": 1})
        [old] = [row for row in flows if 900 <= row["idle_seconds"] < 960]
        self.assertEqual((old["state"], old["worker"], old["adopted"]), ("proven", 0, False))
        self.assertAlmostEqual(old["age_seconds"] - old["idle_seconds"], 2700, delta=0.3)
        for row in flows:
            self.assertRegex(row["tag"], "^[0-9a-f]{11}$")
            self.assertRegex(row["backend"], "^(web|dns)/")
        self.assertEqual(len({row["tag"] for row in flows}), 5)
        text = self.daemon.run("flows", "list", check=0).stdout.splitlines()
        self.assertEqual(text[0].split(), ["WORKER", "SERVICE", "BACKEND", "STATE", "AGE", "IDLE", "TAG"])
        self.assertEqual(len(text), 6)
        self.assertIn("holdfast lookup", self.daemon.run("flows", "list", "--help", check=0).stdout)

    def test_filters_choose_flows_and_count_agrees_with_list(self):
        self.some_flows()
        backend = next(row["backend"] for row in self.page()["flows"] if row["idle_seconds"] > 800)
        for words, expected in (([], 5), (["--service", "web"], 4), (["--service", "dns"], 1),
                                (["--backend", backend], 3), (["--state", "proven"], 2),
                                (["--state", "active"], 3), (["--state", "established"], 1),
                                (["--state", "closing"], 1), (["--state", "embryonic"], 1),
                                (["--idle-over", "10m"], 1), (["--idle-over", "24h"], 0),
                                (["--age-over", "10m"], 2), (["--age-over", "90m"], 1),
                                (["--service", "web", "--state", "active", "--idle-over", "1s",
                                  "--age-over", "20s"], 2)):
            with self.subTest(words=words):
                self.assertEqual(len(self.page(*words)["flows"]), expected)
                self.assertEqual(sum(self.count(*words)["total"].values()), expected)

    def test_count_groups_and_shows_idle_flows_apart(self):
        self.some_flows()
        self.assertEqual(self.count()["total"], {"active": 3, "embryonic": 1, "closing": 1})
        counted = self.count("--idle", "10m")
        self.assertEqual(counted["total"], {"active": 2, "idle": 1, "embryonic": 1, "closing": 1})
        self.assertEqual(sorted((row["service"], row["active"], row["idle"], row["embryonic"], row["closing"])
                                for row in counted["groups"]),
                         [("dns", 0, 0, 1, 0), ("web", 1, 0, 0, 0), ("web", 1, 1, 0, 1)])
        text = self.daemon.run("flows", "count", "--idle", "10m", check=0).stdout
        self.assertRegex(text, r"(?m)^SERVICE +BACKEND +ACTIVE +IDLE +EMBRYONIC +CLOSING$")
        self.assertRegex(text, r"(?m)^all +2 +1 +1 +1$")

    def test_pages_show_every_flow_once(self):
        self.fill("flows 0 2000", "flows 1 500")
        for limit, pages in ((1000, 3), (333, 8)):
            seen = collections.Counter()
            count = 0
            for page in self.pages("--limit", str(limit)):
                count += 1
                self.assertLessEqual(len(page["flows"]), limit)
                seen.update((row["worker"], row["tag"]) for row in page["flows"])
            self.assertEqual(count, pages)
            self.assertEqual((len(seen), set(seen.values())), (2500, {1}))
        self.assertEqual(len(self.page()["flows"]), 100)
        text = self.daemon.run("flows", "list", "--limit", "2", check=0).stdout
        cursor = text.split()[-1]
        self.assertRegex(text, r"(?m)^the next page: the same command with --cursor [0-9a-f]{24}$")
        self.assertEqual(len(self.page("--limit", "7", "--cursor", cursor)["flows"]), 7)

    def test_wrong_words_are_refused(self):
        self.fill("flows 0 50")
        cursor = self.page("--limit", "10")["cursor"]
        other = cursor[:-1] + ("0" if cursor[-1] != "0" else "1")
        for words, code, said in (
            (["--cursor", "x"], 2, "--cursor is none that this run of holdfastd gave"),
            (["--cursor", other], 2, "--cursor is none"),
            (["--cursor", cursor, "--state", "proven"], 2, "for these filters"),
            (["--cursor", ""], 2, "empty"),
            (["--limit", "0"], 2, "--limit is a whole number from 1 to 1000"),
            (["--limit", "1001"], 2, "1 to 1000"), (["--limit", "-1"], 2, "1 to 1000"),
            (["--limit", "ten"], 2, "1 to 1000"),
            (["--state", "open"], 2, "--state is embryonic, established"),
            (["--idle-over", "15"], 2, "--idle-over must be a duration"),
            (["--age-over", "-1s"], 2, "--age-over must be a duration"),
            (["--service", "wob"], 1, 'no service "wob": there is dns, web'),
            (["--backend", "web/b9"], 1, 'no backend "b9" in pool web'),
            (["surplus"], 2, "surplus"),
        ):
            with self.subTest(words=words):
                result = self.daemon.run("flows", "list", *words, check=code)
                self.assertIn(said, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.daemon.run("flows", "count", "--limit", "5", check=2)
        self.daemon.run("flows", "count", "--service", "wob", check=1)
        result = self.daemon.run("flows", check=2)
        self.assertIn("list, count", result.stderr)

    def ask(self, number):
        """A client that has asked for so many counts, all of which have begun."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(self.daemon.socket)
        for one in range(number):
            request = {"v": 1, "id": one, "command": "flows count", "arguments": {"idle": "24h"}}
            client.sendall(json.dumps(request).encode() + b"\n")
        begun = b""
        while begun.count(b'"event"') < number:
            begun += client.recv(65536)
        return client, begun

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_scans_hold_nobody_up(self):
        self.fill("flows 0 700000", "flows 1 700000")
        [before] = self.daemon.json("status")
        client, lines = self.ask(16)
        asked = 0
        while lines.count(b'"result"') < 16:
            [now] = self.daemon.json("status")  # is answered meanwhile
            asked += 1
            with contextlib.suppress(BlockingIOError):
                lines += client.recv(65536, socket.MSG_DONTWAIT)
        client.close()
        self.assertGreater(asked, 1)
        self.assertEqual(lines.count(b'"total":{"active":1400000,"idle":0'), 16)
        self.assertEqual(now["slow_callbacks"], before["slow_callbacks"], self.daemon.logged())
        self.assertEqual(len(self.page("--limit", "5")["flows"]), 5)

    def test_a_scan_ends_when_its_client_leaves(self):
        self.fill("flows 0 700000", "flows 1 700000")
        idle = self.cpu_seconds()
        for _ in range(8):
            self.count()
        one = (self.cpu_seconds() - idle) / 8
        before = self.cpu_seconds()
        for _ in range(4):
            self.ask(16)[0].close()
        self.count()  # comes to its end behind all that may still go on
        self.assertLess(self.cpu_seconds() - before, 32 * one)


if __name__ == "__main__":
    unittest.main()
