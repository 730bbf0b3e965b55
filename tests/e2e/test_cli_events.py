# SPDX-License-Identifier: Apache-2.0
"""`holdfast events`, and those who follow them."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import HOLDFAST, WithDaemon  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
