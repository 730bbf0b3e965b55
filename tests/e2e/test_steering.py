# SPDX-License-Identifier: Apache-2.0
"""The steering program by itself, with no worker behind it: what it takes away from the kernel, what
it counts, and how its VIPs change under traffic. Needs root: makes network namespaces."""

import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import BUILD  # noqa: E402
from wire import Wire  # noqa: E402

PROGRAM = BUILD / "tests" / "steering_under_test"
VIPS = ("203.0.113.10", "203.0.113.11", "2001:db8:203::10")


def setUpModule():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root: makes network namespaces")


class Steering(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # lb's kernel has all of them, so it answers an echo unless the program takes it.
        cls.wire = Wire(vips=VIPS)
        cls.addClassCleanup(cls.wire.close)

    def attach(self, *vips: str) -> subprocess.Popen:
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.wire.lb, str(PROGRAM), "eth0", *vips],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), "ready\n", process.stderr)
        return process

    @staticmethod
    def end(process: subprocess.Popen) -> int:
        if not process.stdin.closed:
            process.stdin.close()
        status = process.wait(5)
        process.stdout.close()
        process.stderr.close()
        return status

    @staticmethod
    def say(process: subprocess.Popen, line: str) -> str:
        process.stdin.write(line + "\n")
        return process.stdout.readline().strip()

    def stats(self, process: subprocess.Popen) -> tuple[int, ...]:
        return tuple(map(int, self.say(process, "stats").split()))

    def echo_of(self, vip: str) -> bytes:
        return f.frame_of(f.echo("2001:db8:1::2" if ":" in vip else "192.0.2.2", vip))

    def reaches_kernel(self, vip: str) -> bool:
        self.wire.drain()
        self.wire.send(self.echo_of(vip))
        reply = f.IPV6 if ":" in vip else f.IPV4
        kinds = (0, 129)  # echo reply, of either family

        def is_reply(frame: bytes) -> bool:
            if frame[12:14] != reply.to_bytes(2, "big"):
                return False
            return frame[34 if reply == f.IPV4 else 54] in kinds

        return len(self.wire.receive(is_reply, 1, seconds=0.3)) == 1

    def test_vips_can_change_while_it_runs(self):
        first, second, third = VIPS
        process = self.attach(first)
        for chosen in ((first,), (second, third), (), (first, second, third), (third,)):
            with self.subTest(chosen=chosen):
                self.assertEqual(self.say(process, " ".join(("vips", *chosen))), "done")
                for vip in VIPS:
                    self.assertEqual(self.reaches_kernel(vip), vip not in chosen, vip)
        self.assertEqual(self.end(process), 0)
        self.assertEqual(self.wire.xdp_id(), 0)

    def test_a_vip_that_stays_is_never_absent_while_others_change(self):
        stays, changes, _ = VIPS
        process = self.attach(stays, changes)
        stop = threading.Event()

        def change():
            while not stop.is_set():
                self.say(process, f"vips {stays}")
                self.say(process, f"vips {changes} {stays}")

        thread = threading.Thread(target=change)
        thread.start()
        self.wire.drain()
        self.wire.send(*[self.echo_of(stays)] * 3000)
        stop.set()
        thread.join()
        from_stays = self.wire.receive(
            lambda frame: frame[26:30] == self.echo_of(stays)[30:34], 1, seconds=0.3
        )
        self.assertEqual(from_stays, [])
        self.assertGreaterEqual(self.stats(process)[2], 3000)

    def test_what_a_killed_run_left_unserved_is_counted_on(self):
        vip = VIPS[0]
        process = self.attach(vip)
        for expected in (5, 2 + 5):  # of the program that was replaced, before and after the kill
            process.kill()
            process.wait(5)
            self.assertNotEqual(self.wire.xdp_id(), 0)
            self.wire.send(*[self.echo_of(vip)] * 5)
            process = self.attach(vip)
            self.assertEqual(self.stats(process)[2], expected)
            self.wire.send(*[self.echo_of(vip)] * 2)
            self.assertEqual(self.stats(process)[2], expected + 2)
        self.assertEqual(self.end(process), 0)
        self.wire.send(*[self.echo_of(vip)] * 5)  # to the kernel
        process = self.attach(vip)
        self.assertEqual(self.stats(process)[2], 0)

    def test_each_packet_is_counted_once(self):
        vip = VIPS[0]
        process = self.attach(*VIPS)
        packet = f.tcp(("192.0.2.2", 9), (vip, 80), f.SYN)
        six = f.tcp(("2001:db8:1::2", 9), (VIPS[2], 80), f.SYN)
        for_vip = {
            "IPv4": f.frame_of(packet),
            "IPv6": f.frame_of(six),
            "one tag": f.frame_of(packet, (5,)),
            "two tags": f.frame_of(six, (5, 6)),
            "a later fragment": f.frame_of(f.ip("192.0.2.2", vip, f.UDP, bytes(64), fragment=9)),
            "an unknown protocol": f.frame_of(f.ip("192.0.2.2", vip, 200, b"")),
            "only the IPv4 header": f.frame_of(packet)[:34],
            "only the IPv6 header": f.frame_of(six)[:54],
        }
        for_kernel = {
            "another address": f.frame_of(f.tcp(("192.0.2.2", 9), ("203.0.113.12", 80), f.SYN)),
            "the VIP as source": f.frame_of(f.tcp((vip, 9), ("192.0.2.1", 80), f.SYN)),
            "three tags": f.frame_of(packet, (5, 6, 7)),
            # ::ffff:203.0.113.10 and the IPv4 address are two addresses.
            "a mapped address": f.frame_of(
                f.tcp(("2001:db8:1::2", 9), (f"::ffff:{vip}", 80), f.SYN)
            ),
            "a cut IPv4 header": f.frame_of(packet)[:33],
            "a cut IPv6 header": f.frame_of(six)[:53],
            "a cut tag": f.frame_of(packet, (5,))[:17],
            "not IP": f.ethernet(packet, 0x88B5),
        }
        for frames, to_kernel, no_socket in ((for_vip, 0, 3), (for_kernel, 3, 0)):
            for name, frame in frames.items():
                with self.subTest(name):
                    before = self.stats(process)
                    self.wire.send(*[frame] * 3)
                    after = self.stats(process)
                    self.assertEqual(after[0], 0)
                    # The kernels talk to each other too (ARP, neighbour discovery).
                    self.assertGreaterEqual(after[1] - before[1], to_kernel)
                    self.assertEqual(after[2] - before[2], no_socket)


if __name__ == "__main__":
    unittest.main()
