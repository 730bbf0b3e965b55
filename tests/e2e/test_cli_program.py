# SPDX-License-Identifier: Apache-2.0
"""The `holdfast` program itself: wrong words, no daemon, output that goes nowhere, `check`."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import CONFIG, HOLDFAST, WithDaemon  # noqa: E402


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
