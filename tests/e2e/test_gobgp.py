# SPDX-License-Identifier: Apache-2.0
"""The BGP speaker (gobgp_under_test) against a real gobgpd with a real router, BIRD, behind it: what is
announced arrives, what is not ours stays, and gobgpd may die, hang or vanish with its host. Needs
root: makes network namespaces."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from daemon import BUILD, wait_for  # noqa: E402
from wire import Wire  # noqa: E402

PROGRAM = BUILD / "tests" / "gobgp_under_test"
OWN_AS, ROUTER_AS = 64512, 64999
ROUTER = "192.0.2.2"
VIP4, VIP6 = "203.0.113.10", "2001:db8:203::10"
HOP4, HOP6 = "192.0.2.1", "2001:db8:1::1"

GOBGPD = f"""
[global.config]
  as = {OWN_AS}
  router-id = "{HOP4}"
[[neighbors]]
  [neighbors.config]
    neighbor-address = "{ROUTER}"
    peer-as = {ROUTER_AS}
  [neighbors.timers.config]
    connect-retry = 1
    hold-time = 9
    keepalive-interval = 3
  [[neighbors.afi-safis]]
    [neighbors.afi-safis.config]
      afi-safi-name = "ipv4-unicast"
  [[neighbors.afi-safis]]
    [neighbors.afi-safis.config]
      afi-safi-name = "ipv6-unicast"
"""
BIRD = f"""
router id {ROUTER};
protocol device {{}}
protocol bgp lb {{
  local {ROUTER} as {ROUTER_AS};
  neighbor {HOP4} as {OWN_AS};
  connect delay time 1;
  ipv4 {{ import all; export none; }};
  ipv6 {{ import all; export none; }};
}}
"""


def setUpModule():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root: makes network namespaces")


class Gobgpd:
    """gobgpd in the lb namespace; its API is a Unix socket and port 50051."""

    def __init__(self, wire: Wire, folder: Path):
        self._wire, self._folder = wire, folder
        self.socket = folder / "api"
        self.process: subprocess.Popen | None = None

    @property
    def target(self) -> str:
        return f"unix:{self.socket}"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)  # the file of a killed one stops the next
        config = self._folder / "gobgpd.toml"
        config.write_text(GOBGPD)
        with open(self._folder / "gobgpd.log", "ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self._wire.lb, "gobgpd", "-f", str(config), "--pprof-disable",
                 "--api-hosts", f"unix://{self.socket},0.0.0.0:50051"], stdout=log, stderr=log)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait(10)

    def cli(self, *words: str) -> str:
        """What an operator does beside us."""
        done = self._wire.exec(self._wire.lb, "gobgp", *words)
        if done.returncode != 0:
            raise AssertionError(f"gobgp {words}: {done.stdout}{done.stderr}")
        return done.stdout


class Speaker:
    """gobgp_under_test in a namespace."""

    def __init__(self, namespace: str, target: str):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, str(PROGRAM), target],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            bufsize=1)
        self._commands = 0
        self._answers: dict[int, dict] = {}
        self._arrived = threading.Condition()
        self.news: queue.Queue = queue.Queue()
        self.destroyed: float | None = None
        self.after_destruction: list[dict] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            message = json.loads(line)
            with self._arrived:
                if self.destroyed is not None:
                    self.after_destruction.append(message)
                self.destroyed = message.get("destroyed", self.destroyed)
                if "news" in message:
                    self.news.put((message["news"], time.monotonic()))
                if "id" in message:
                    self._answers[message["id"]] = message
                self._arrived.notify_all()

    def send(self, command: str) -> int:
        self._commands += 1
        self.process.stdin.write(command + "\n")
        return self._commands

    def answer(self, number: int, seconds: float = 5.0) -> dict:
        with self._arrived:
            if not self._arrived.wait_for(lambda: number in self._answers, seconds):
                raise AssertionError(f"no answer to command {number}")
            return self._answers[number]

    def ask(self, command: str) -> dict:
        return self.answer(self.send(command))

    def value(self, command: str):
        answer = self.ask(command)
        if not answer["ok"]:
            raise AssertionError(f"{command}: {answer}")
        return answer.get("value")

    def wait_for_news(self, what: str, seconds: float = 10.0) -> float:
        """When it came; other news before it is forgotten."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                news, at = self.news.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no news {what!r} within {seconds} s") from None
            if news == what:
                return at

    def close(self) -> str:
        """Ends it by the end of its input; its standard error."""
        if self.process.stderr.closed:
            return ""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join(5)
        self.process.stdout.close()
        with self.process.stderr as stderr:
            return stderr.read()


class WithGobgpd(unittest.TestCase):
    """One gobgpd for the class."""

    @classmethod
    def setUpClass(cls):
        cls.wire = Wire()
        cls.addClassCleanup(cls.wire.close)
        folder = tempfile.TemporaryDirectory(prefix="holdfast-gobgp-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.gobgpd = Gobgpd(cls.wire, cls.folder)
        cls.gobgpd.start()
        cls.addClassCleanup(lambda: cls.gobgpd.kill())

    def speaker(self, namespace: str | None = None, target: str | None = None) -> Speaker:
        speaker = Speaker(namespace or self.wire.lb, target or self.gobgpd.target)
        self.addCleanup(speaker.close)
        return speaker

    def connected(self) -> Speaker:
        speaker = self.speaker()
        speaker.wait_for_news("restarted")
        return speaker


class Announcing(WithGobgpd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = cls.folder / "bird.conf"
        config.write_text(BIRD)
        cls.control = cls.folder / "bird.ctl"
        bird = subprocess.Popen(
            ["ip", "netns", "exec", cls.wire.peer, "bird", "-f", "-c", str(config), "-s",
             str(cls.control), "-P", str(cls.folder / "bird.pid")], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(bird.wait)
        cls.addClassCleanup(bird.kill)

    def route(self, vip: str) -> str:
        """All that the router knows of a VIP; empty without a route."""
        prefix = f"{vip}/{128 if ':' in vip else 32}"
        done = subprocess.run(["birdc", "-s", str(self.control), "show", "route", "all", "for", prefix],
                              capture_output=True, text=True)
        return done.stdout if "BGP.next_hop" in done.stdout else ""

    def established(self) -> Speaker:
        speaker = self.connected()
        wait_for(lambda: any(peer["established"] for peer in speaker.value("peers")),
                 "the session with the router", 30)
        return speaker

    def test_it_knows_who_the_speaker_and_its_peers_are(self):
        speaker = self.established()
        self.assertEqual(speaker.value("identify"), {"as": OWN_AS, "router_id": HOP4})
        self.assertEqual(speaker.value("peers"), [
            {"address": ROUTER, "as": ROUTER_AS, "established": True, "ipv4": True, "ipv6": True}])

    def test_both_families_are_announced_read_back_replaced_and_removed(self):
        speaker = self.established()
        for family, vip, hop in (("4", VIP4, HOP4), ("6", VIP6, HOP6)):
            with self.subTest(vip=vip):
                plain = {"vip": vip, "next_hop": hop, "communities": [], "prepend": 0, "med": None}
                self.assertEqual(speaker.value(f"rib {family} {vip}"), [])
                speaker.value(f"add {OWN_AS} {vip} {hop}")
                start = time.monotonic()
                self.assertEqual(speaker.value(f"rib {family} {vip}"), [plain])
                route = wait_for(lambda: self.route(vip), f"{vip} at the router")
                print(f"{vip}: at the router after {(time.monotonic() - start) * 1000:.0f} ms")
                self.assertIn(f"BGP.next_hop: {hop}", route)
                self.assertEqual(speaker.value(f"sent {ROUTER} {family} {vip}"), [vip])

                # 0xffff0000 is GRACEFUL_SHUTDOWN (RFC 8326).
                speaker.value(f"add {OWN_AS} {vip} {hop} med=70 prepend=2 "
                              "community=0xfc000007 community=0xffff0000")
                rich = plain | {"med": 70, "prepend": 2, "communities": [0xFC000007, 0xFFFF0000]}
                self.assertEqual(speaker.value(f"rib {family} {vip}"), [rich])
                route = wait_for(lambda: "BGP.med" in self.route(vip) and self.route(vip),
                                 "the new attributes at the router")
                self.assertIn("BGP.med: 70", route)
                self.assertRegex(route, rf"BGP.as_path: {OWN_AS} {OWN_AS} {OWN_AS}\n")
                self.assertRegex(route, r"BGP.community: .*\(64512,7\)")
                self.assertRegex(route, r"BGP.community: .*\(65535,0\)")
                self.assertEqual(route.count("BGP.next_hop"), 1)

                speaker.value(f"add {OWN_AS} {vip} {hop}")
                self.assertEqual(speaker.value(f"rib {family} {vip}"), [plain])
                speaker.value(f"remove {vip}")
                self.assertEqual(speaker.value(f"rib {family} {vip}"), [])
                self.assertEqual(speaker.value(f"sent {ROUTER} {family} {vip}"), [])
                wait_for(lambda: not self.route(vip), f"{vip} gone from the router")
                speaker.value(f"remove {vip}")  # what is not there counts as removed

    def test_paths_of_others_are_neither_listed_nor_touched(self):
        speaker = self.established()
        self.gobgpd.cli("global", "rib", "add", "198.51.100.77/32", "nexthop", HOP4)
        self.gobgpd.cli("global", "rib", "add", "203.0.113.0/24", "nexthop", HOP4)
        self.gobgpd.cli("global", "rib", "-a", "ipv6", "add", "2001:db8:77::/64", "nexthop", HOP6)
        speaker.value(f"add {OWN_AS} {VIP4} {HOP4}")
        # VIP 203.0.113.99 is in somebody's /24, and is not announced by that.
        listed = speaker.value(f"rib 4 {VIP4} 203.0.113.99")
        self.assertEqual([path["vip"] for path in listed], [VIP4])
        self.assertEqual(speaker.value(f"sent {ROUTER} 4 203.0.113.99 {VIP4}"), [VIP4])
        self.assertEqual(speaker.value("rib 4"), [])
        speaker.value("remove 203.0.113.99")
        speaker.value(f"remove {VIP6}")
        speaker.value(f"remove {VIP4}")
        for family, prefix in (("ipv4", "198.51.100.77/32"), ("ipv4", "203.0.113.0/24"),
                               ("ipv6", "2001:db8:77::/64")):
            self.assertIn(prefix, self.gobgpd.cli("global", "rib", "-a", family))
        self.assertNotIn(VIP4 + "/", self.gobgpd.cli("global", "rib", "-a", "ipv4"))

    def test_a_peer_that_does_not_exist_is_a_refusal(self):
        answer = self.connected().ask(f"sent 192.0.2.99 4 {VIP4}")
        self.assertEqual((answer["ok"], answer["code"]), (False, "refused"))

    def test_a_thousand_vips_at_once(self):
        speaker = self.connected()
        vips = [f"198.18.{i // 250}.{i % 250 + 1}" for i in range(1000)]
        start = time.monotonic()
        numbers = [speaker.send(f"add {OWN_AS} {vip} {HOP4} community=0xfc000007") for vip in vips]
        answers = [speaker.answer(number) for number in numbers]
        added = time.monotonic()
        self.assertTrue(all(answer["ok"] for answer in answers), answers[-1])
        listed = speaker.value("rib 4 " + " ".join(vips))
        print(f"1000 VIPs: added in {(added - start) * 1000:.0f} ms, "
              f"listed in {(time.monotonic() - added) * 1000:.0f} ms")
        self.assertEqual(sorted(path["vip"] for path in listed), sorted(vips))
        for number in [speaker.send(f"remove {vip}") for vip in vips]:
            self.assertTrue(speaker.answer(number)["ok"])
        self.assertEqual(speaker.value("rib 4 " + " ".join(vips)), [])

    def test_a_session_that_falls_or_rises_is_news(self):
        speaker = self.established()
        self.gobgpd.cli("neighbor", ROUTER, "disable")
        speaker.wait_for_news("changed")
        wait_for(lambda: not speaker.value("peers")[0]["established"], "the session to fall")
        self.assertEqual([speaker.value("peers")[0][key] for key in ("ipv4", "ipv6")], [False] * 2)
        self.gobgpd.cli("neighbor", ROUTER, "enable")
        speaker.wait_for_news("changed", 30)
        wait_for(lambda: speaker.value("peers")[0]["established"], "the session to rise", 30)


class Failing(WithGobgpd):
    def test_one_that_is_killed_and_started_again_is_noticed_at_once(self):
        speaker = self.connected()
        speaker.value(f"add {OWN_AS} {VIP4} {HOP4}")
        for _ in range(3):
            killed = time.monotonic()
            self.gobgpd.kill()
            lost = speaker.wait_for_news("lost") - killed
            answer = speaker.ask("identify")
            self.assertEqual((answer["ok"], answer["code"]), (False, "unreachable"))
            self.assertLess(answer["ms"], 600)
            time.sleep(2.5)  # pauses between tries have grown to the longest
            started = time.monotonic()
            self.gobgpd.start()
            wait_for(self.gobgpd.socket.exists, "its socket")
            listens = time.monotonic() - started
            restarted = speaker.wait_for_news("restarted") - started
            print(f"gobgpd killed: noticed after {lost * 1000:.0f} ms; started: it listens after "
                  f"{listens * 1000:.0f} ms, noticed after {restarted * 1000:.0f} ms")
            self.assertLess(lost, 1.0)
            self.assertLess(restarted - listens, 1.5)
            self.assertEqual(speaker.value(f"rib 4 {VIP4}"), [])
            speaker.value(f"add {OWN_AS} {VIP4} {HOP4}")
            self.assertEqual(len(speaker.value(f"rib 4 {VIP4}")), 1)

    def test_one_that_hangs_is_a_deadline_and_goes_on_after_it(self):
        speaker = self.connected()
        self.gobgpd.kill(signal.SIGSTOP)
        try:
            for _ in range(4):
                answer = speaker.ask("identify")
                self.assertEqual((answer["ok"], answer["code"]), (False, "deadline"))
                self.assertLess(answer["ms"], 600)
            answer = speaker.ask(f"add {OWN_AS} {VIP4} {HOP4}")
            self.assertEqual((answer["ok"], answer["code"]), (False, "deadline"))
            self.assertLess(answer["ms"], 1200)
        finally:
            self.gobgpd.kill(signal.SIGCONT)
        start = time.monotonic()
        wait_for(lambda: speaker.ask("identify")["ok"], "an answer after it goes on", 3)
        print(f"gobgpd goes on: answers after {(time.monotonic() - start) * 1000:.0f} ms")
        self.assertTrue(speaker.news.empty(), "the connection was given up")

    def test_one_whose_host_vanished_is_found_again_when_it_is_back(self):
        """The connection dies without a word, and TCP would wait ever longer between two tries."""
        speaker = self.speaker(self.wire.peer, f"{HOP4}:50051")
        speaker.wait_for_news("restarted")
        # Frames go to hosts that are not there, both ways: no FIN arrives. (A link that is down would
        # not do: there the kernel tries again each half second.)
        ends = ((self.wire.peer, HOP4, "p0"), (self.wire.lb, ROUTER, "eth0"))
        for namespace, other, device in ends:
            self.wire.ip(namespace, "neighbor", "replace", other, "lladdr", "02:00:00:00:00:99",
                         "dev", device, "nud", "permanent")
        self.gobgpd.kill()
        self.gobgpd.start()
        for _ in range(8):
            answer = speaker.ask("identify")
            self.assertFalse(answer["ok"])
            self.assertLess(answer["ms"], 600)
            time.sleep(1.0 - min(answer["ms"] / 1000, 1.0))
        for namespace, other, device in ends:
            self.wire.ip(namespace, "neighbor", "del", other, "dev", device)
        back = time.monotonic()
        wait_for(lambda: speaker.ask("identify")["ok"], "an answer", 10)
        took = time.monotonic() - back
        print(f"the host of gobgpd is back: it answers after {took * 1000:.0f} ms")
        self.assertLess(took, 4.0)
        speaker.wait_for_news("restarted", 3)

    def test_nothing_comes_after_the_end(self):
        self.gobgpd.kill(signal.SIGSTOP)
        try:
            speaker = self.speaker()
            for _ in range(50):
                speaker.send("identify")
                speaker.send(f"add {OWN_AS} {VIP4} {HOP4}")
            stderr = speaker.close()
        finally:
            self.gobgpd.kill(signal.SIGCONT)
        self.assertEqual(speaker.process.returncode, 0, stderr)
        self.assertLess(speaker.destroyed, 200)
        self.assertEqual(speaker.after_destruction, [])
        self.assertEqual(re.sub(r"\s", "", stderr), "")


if __name__ == "__main__":
    unittest.main()
