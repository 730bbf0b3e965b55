# SPDX-License-Identifier: Apache-2.0
"""What keeps holdfastd from starting in its files, its arguments and virtual devices, each in one
sentence. (test_start_faults.py has the machine.) Needs no root and no devices."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from captures import ONE_PORT, config  # noqa: E402
from daemon import DAEMON, NOBODY, Daemon  # noqa: E402


class Faults(unittest.TestCase):
    """Each ends the start with one sentence that says what to do."""

    def assert_refused(self, text: str, *words: str, status: int = 1, prepare=None) -> str:
        daemon = Daemon(text)
        self.addCleanup(daemon.close)
        if prepare:
            prepare(daemon.folder)
        got, said = daemon.run_to_end()
        self.assertEqual(got, status, said)
        self.assertEqual(said.count("\n"), 1, said)
        for word in words:
            self.assertIn(word, said)
        return said

    def test_a_broken_config(self):
        said = self.assert_refused(config().replace("[[vip]]", "[[vip"), "holdfast.toml:")
        self.assertRegex(said, r"holdfast\.toml:\d+:\d+: ")

    def test_a_missing_capture(self):
        self.assert_refused(config(), "port p", "net_pcap0")

    def test_an_unknown_driver(self):
        self.assert_refused(config('{ name = "p", vdev = "net_nosuch0" }'), "port p", "net_nosuch0")

    def test_not_a_network_driver(self):
        self.assert_refused(config('{ name = "p", vdev = "crypto_null0" }'), "crypto_null0", "net_pcap0")

    def test_more_workers_than_queues(self):
        self.assert_refused(config(workers=2), 'port "p"', "queues = 2")

    def test_more_queues_than_the_device_has(self):
        ports = ONE_PORT.replace('name = "p"', 'name = "p", queues = 3')
        self.assert_refused(
            config(ports),
            "port p",
            "1 queue",
            "queues = 3",
            prepare=lambda folder: f.write_pcap(folder / "in", []),
        )

    def test_more_workers_than_cpus(self):
        cpus = len(os.sched_getaffinity(0))
        ports = f'{{ name = "p", queues = {cpus + 1}, vdev = "net_null0" }}'
        self.assert_refused(config(ports, workers=cpus + 1), f"{cpus} CPU", "workers")

    def test_an_empty_config_is_told_what_it_needs(self):
        daemon = Daemon("")
        self.addCleanup(daemon.close)
        got, said = daemon.run_to_end()
        self.assertEqual(got, 1, said)
        self.assertIn('[dataplane] needs "ports"', said)

    def test_files_that_are_too_large(self):
        self.assert_refused(config(), "seed: is larger than 4 KiB: not a hash seed",
                            prepare=lambda folder: (folder / "seed").write_text("0" * 5000))
        self.assert_refused("#" * (16 << 20) + "\n", "is larger than 16 MiB: not a configuration")

    def test_a_seed_that_is_a_folder(self):
        self.assert_refused(config().replace('"seed"', '"tmp"'),
                            "tmp: can not be read: Is a directory")

    def test_a_missing_seed(self):
        self.assert_refused(config().replace('"seed"', '"noseed"'), "noseed: can not be read",
                            "[dataplane] hash_seed_file of ", "holdfast.toml",
                            "make it with `openssl rand -hex 8`")

    def test_a_seed_that_is_none(self):
        self.assert_refused(config(), "16 hexadecimal digits", "[dataplane] hash_seed_file of ",
                            "openssl rand -hex 8",
                            prepare=lambda folder: (folder / "seed").write_text("seed\n"))

    @unittest.skipIf(os.geteuid() != 0, "needs root: becomes another user")
    def test_files_that_may_not_be_read_are_said_what_to_do_about(self):
        for name, words in (("seed", ["[dataplane] hash_seed_file of "]), ("holdfast.toml", [])):
            with self.subTest(name):
                daemon = Daemon(config(), user=NOBODY)
                self.addCleanup(daemon.close)
                (daemon.folder / name).chmod(0)
                got, said = daemon.run_to_end()
                self.assertEqual(got, 4, said)
                self.assertEqual(said.count("\n"), 1, said)
                for word in (f"{name}: can not be read: Permission denied", "run this as root", *words):
                    self.assertIn(word, said)

    def test_a_missing_config(self):
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        daemon.config_path.unlink()
        got, said = daemon.run_to_end()
        self.assertEqual(got, 1, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("holdfast.toml: can not be read: No such file or directory: name the", said)

    def test_usage(self):
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        got, said = daemon.run_to_end("sur\nplus\x1b" + "s" * 70_000)
        self.assertEqual(got, 2, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.strip().isprintable(), said)
        self.assertLess(len(said), 700)

    def test_an_answer_that_can_not_be_written_is_exit_1_with_a_line(self):
        daemon = Daemon(config())
        self.addCleanup(daemon.close)
        for words in (["--version"], ["--help"], ["--config", str(daemon.config_path), "--check"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                result = subprocess.run([DAEMON, *words], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=20)
                self.assertEqual(result.returncode, 1, result)
                self.assertIn("standard output can not be written: No space", result.stderr)


if __name__ == "__main__":
    unittest.main()
