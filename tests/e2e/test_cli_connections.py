# SPDX-License-Identifier: Apache-2.0
"""Both ends of the control socket when the other misbehaves: clients that the daemon must bear, and a
daemon that hangs.
"""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import CONTROL, HOLDFAST, WithDaemon  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
