# SPDX-License-Identifier: Apache-2.0
"""holdfast-agent as its operator meets it: attach, status, detach, and what can be wrong.

Needs root. One test: python3 tests/e2e/test_agent.py OperatorTest.test_wrong_words_are_usage_errors
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from agent_bpf import attach_with_link, load_passing_program  # noqa: E402
from agent_lab import AGENT, BACKEND, LB, TOP, VIP, LabTest, inside, libc, run  # noqa: E402


class DocumentationTest(unittest.TestCase):

    def test_every_outcome_is_explained_to_operators(self):
        header = (TOP / "tools/agent/decap_shared.h").read_text()
        names = re.findall(r"X\((\w+), (?:PASS|DROP)", header)
        self.assertIn("not_vip", names)
        guide = (TOP / "docs/agent.md").read_text()
        self.assertEqual([name for name in names if f"`{name}`" not in guide], [])


class OperatorTest(LabTest):

    def test_every_help_has_an_example(self):
        for command in ([], ["attach"], ["status"], ["detach"]):
            words = [*command, "--help"]
            shown = self.lab.agent(*words)
            self.assertEqual(shown.returncode, 0)
            self.assertIn("Example:\n  holdfast-agent ", shown.stdout)

    def test_wrong_words_are_usage_errors(self):
        good = ["f", "--vip", VIP[4], "--lb", LB[4]]
        for words, says in (
            ([], "a command is required: attach"),
            (["fly"], "there is no command fly"),
            (["attach"], "required"),
            (["attach", "f", "--lb", LB[4]], "--vip is required"),
            (["attach", "f", "--vip", VIP[4]], "--lb is required"),
            (["attach", *good, "more"], "not expected: more"),
            (["attach", *good, "--vip", "203.0.113.999"], "--vip 203.0.113.999: not an IPv4"),
            (["attach", *good, "--vip", "0.0.0.0"], "--vip 0.0.0.0: not the address of one host"),
            (["attach", *good, "--local", "ff02::1"], "--local ff02::1: not the address of one"),
            (["attach", *good, "--lb", "192.0.2.1/24"], "--lb 192.0.2.1/24: not an address or"),
            (["attach", *good, "--lb", "192.0.2.0/33"], "--lb 192.0.2.0/33: not an address or"),
            (["attach", *good, "--mode", "warp"], "--mode warp: not auto, native or generic"),
            (["status", "f", "g"], "not expected: g"),
            (["detach"], "required"),
            (["detach", "f", "g"], "not expected: g"),
        ):
            with self.subTest(words=words):
                self.assert_done(self.lab.agent(*words), 2, says)

    def test_more_than_the_maps_hold_is_refused_and_as_much_is_taken(self):
        def vips(count):
            return [f"203.0.{number >> 8}.{number & 255}" for number in range(256, 256 + count)]

        self.assert_done(self.lab.attach(vips=vips(4097)), 2, "--vip: 4097 different ones, at most "
                                                              "4096 are possible")
        self.assert_done(self.lab.attach(vips=vips(4096)), says="4096 VIPs")
        self.assertEqual(len(self.lab.status()["vips"]), 4096)
        self.assert_done(self.lab.attach(vips=[VIP[4]] * 3), says="1 VIPs")

    def test_without_privileges_it_says_so(self):
        def drop_all():
            for capability in range(64):
                libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: gone at exec

        for words in (["attach", "f", "--vip", VIP[4], "--lb", LB[4]], ["status"], ["detach", "f"]):
            done = self.lab.agent(*words, before=drop_all)
            self.assert_done(done, 4, "run holdfast-agent as root")
        # Usage comes first: nobody needs root to be told of a typing error.
        self.assert_done(self.lab.agent("status", "f", "g", before=drop_all), 2)

    def test_what_is_not_there(self):
        self.assert_done(self.lab.attach(interface="eth99"), 1, "there is no interface eth99")
        self.assert_done(self.lab.attach(interface="a-name-that-is-too-long"), 1, "there is no")
        self.assert_done(self.lab.agent("status"), 1, "nothing is attached")
        self.assert_done(self.lab.agent("detach", "f"), 1, "nothing is attached to f")
        self.assert_done(self.lab.agent("detach", "eth99"), 1, "nothing is attached to eth99")
        self.assert_done(self.lab.attach())
        self.assert_done(self.lab.agent("status", "g"), 1, "nothing is attached to g")

    def test_everybody_as_load_balancer_is_done_with_a_warning(self):
        done = self.lab.attach(lbs=["0.0.0.0/0", LB[6]])
        self.assert_done(done, says="decapsulating")
        [line] = done.stderr.splitlines()
        self.assertIn("warning: with --lb 0.0.0.0/0 anybody may send tunnels", line)
        done = self.lab.attach()
        self.assert_done(done, says="replaced")
        self.assertEqual(done.stderr, "")

    def test_output_that_can_not_be_written_is_exit_1_with_a_line(self):
        self.assert_done(self.lab.attach())
        for words in (["status"], ["status", "f", "--json"], ["--help"],
                      ["attach", "f", "--vip", VIP[4], "--lb", LB[4]], ["detach", "f"]):
            with self.subTest(words=words):
                done = self.lab.agent(*words, before=lambda: os.dup2(os.open("/dev/full", 1), 1))
                self.assert_done(done, 1, "standard output can not be written: No space left")
        self.assert_done(self.lab.agent("status"), 1, "nothing is attached")

    def test_a_strange_or_long_word_comes_back_escaped_and_cut(self):
        for word in ("a\x1b[2J\n", "x" * 70_000):
            for pins, words in ((self.lab.pins, ["detach", word]),
                                (self.lab.pins, ["status", word]),
                                (self.lab.pins, ["attach", word, "--vip", VIP[4], "--lb", LB[4]]),
                                (word, ["status"]),
                                (word, ["attach", "f", "--vip", VIP[4], "--lb", LB[4]])):
                with self.subTest(words=[each[:20] for each in words]):
                    done = subprocess.run([AGENT, *words, "--pin-dir", f"/proc/none/{pins}"
                                           if pins is word else str(pins)],
                                          capture_output=True, text=True, timeout=20)
                    self.assertEqual(done.returncode, 1, done)
                    self.assertTrue(done.stderr.strip().isprintable(), done.stderr)
                    self.assertLess(len(done.stderr), 500)

    def test_an_interface_without_addresses_needs_local(self):
        self.lab.add_link(self.lab.lb, "n", {}, self.lab.backend, "n", {})
        run("ip", "-n", self.lab.backend, "address", "flush", "dev", "n")
        self.assert_done(self.lab.attach(interface="n"), 1, "n has no address")
        self.assert_done(self.lab.attach("--local", "192.0.2.9", interface="n"))
        self.assertEqual(self.lab.status("n")["locals"], ["192.0.2.9"])

    def test_somebody_else_s_program_is_left_alone(self):
        with inside(self.lab.backend):
            link = attach_with_link(load_passing_program(), socket.if_nametoindex("f"))
        self.enterContext(contextlib.closing(open(link, "rb", buffering=0)))
        self.assert_done(self.lab.attach(), 1, "f already runs another XDP program (somebody_else")
        self.assert_done(self.lab.agent("detach", "f"), 1, "another XDP program (somebody_else")

    def test_decapsulation_is_not_switched_off_in_passing(self):
        self.assert_done(self.lab.attach())
        with self.assertRaises(RuntimeError):
            run("ip", "-n", self.lab.backend, "link", "set", "dev", "f", "xdp", "off")
        self.assertTrue(self.lab.status()["running"])

    def test_an_attachment_by_another_pin_folder_is_recognised(self):
        self.assert_done(self.lab.attach())
        other = self.lab.pins / "other"
        self.assert_done(self.lab.attach("--pin-dir", str(other)), 2)  # given twice
        self.lab.pins = other
        self.assert_done(self.lab.attach(), 1, "use the --pin-dir that it was attached with")

    def test_a_running_mode_is_not_changed_in_passing(self):
        self.assert_done(self.lab.attach("--mode", "generic"))
        self.assert_done(self.lab.attach("--mode", "native"), 1, "f runs in generic mode")
        self.assert_done(self.lab.attach(), says="in generic mode")

    def test_an_interface_with_a_dot_in_its_name(self):
        """A bpffs allows none."""
        self.lab.add_link(self.lab.lb, "x", {}, self.lab.backend, "e.1", {4: "192.0.2.65"})
        self.assert_done(self.lab.attach(interface="e.1"))
        self.assertEqual(self.lab.status("e.1")["interface"], "e.1")
        self.assert_done(self.lab.attach(interface="e.1"), says="counters kept")
        self.assert_done(self.lab.agent("detach", "e.1"))

    def test_a_renamed_interface_is_found_by_its_new_name(self):
        self.assert_done(self.lab.attach())
        run("ip", "-n", self.lab.backend, "link", "set", "f", "down")
        run("ip", "-n", self.lab.backend, "link", "set", "f", "name", "g")
        run("ip", "-n", self.lab.backend, "link", "set", "g", "up")
        self.assertTrue(self.lab.status("g")["running"])
        self.assert_done(self.lab.attach(interface="g"), says="counters kept")
        self.assert_done(self.lab.agent("detach", "f"), 1, "nothing is attached to f")
        self.assert_done(self.lab.agent("detach", "g"))

    def test_a_deleted_interface_is_shown_as_gone_and_can_be_attached_again(self):
        self.assert_done(self.lab.attach())
        run("ip", "-n", self.lab.backend, "link", "del", "f")
        self.assertFalse(self.lab.status()["running"])
        self.assertIn("the interface is gone", self.lab.agent("status").stdout)
        self.lab.add_link(self.lab.lb, "f", LB, self.lab.backend, "f", BACKEND)
        self.assert_done(self.lab.attach(), says="decapsulating")
        self.assertTrue(self.lab.status()["running"])
        run("ip", "-n", self.lab.backend, "link", "del", "f")
        self.assert_done(self.lab.agent("detach", "f"), says="detached")
        self.assert_done(self.lab.agent("status"), 1, "nothing is attached")

    def test_two_namespaces_can_not_share_an_entry(self):
        """Interface numbers and names repeat in namespaces: neither may hit the other's."""
        self.assert_done(self.lab.attach())
        number = self.lab.status()["program_id"]
        words = ["attach", "f", "--vip", VIP[4], "--lb", LB[4]]
        done = self.lab.agent(*words, namespace=self.lab.lb)
        self.assert_done(done, 1, "another network namespace")
        done = self.lab.agent("detach", "f", namespace=self.lab.lb)
        self.assert_done(done, 1, "nothing is attached to f")
        self.assertEqual(self.lab.status()["program_id"], number)

    def test_a_folder_that_is_no_bpffs(self):
        self.lab.pins = self.lab.folder  # holds the folder "bpf"
        self.assert_done(self.lab.attach(), 1, "holds files of something else")
        self.assert_done(self.lab.agent("status"), 1, "there is no bpffs folder")
        self.lab.pins = self.lab.folder / "new"
        self.addCleanup(run, "umount", "-q", str(self.lab.pins))
        self.assert_done(self.lab.attach())  # mounts one, which outlives the agent
        self.assertTrue(self.lab.status()["running"])
        self.assert_done(self.lab.agent("detach", "f"))

    def test_a_mount_that_would_vanish_is_refused(self):
        """`ip netns exec` has a /sys of its own, and with it the default pin folder."""
        words = ["attach", "f", "--vip", VIP[4], "--lb", LB[4]]
        done = subprocess.run(["ip", "netns", "exec", self.lab.backend, AGENT, *words],
                              capture_output=True, text=True)
        self.assert_done(done, 1, "would vanish with this process")


if __name__ == "__main__":
    unittest.main()
