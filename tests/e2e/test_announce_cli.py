# SPDX-License-Identifier: Apache-2.0
"""Announcing and stopping as operators see them: the real `holdfast` and the real control plane with
a fake BGP speaker (control_under_test), without root and without BGP."""

import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import CONFIG, Daemon, Listener  # noqa: E402

BGP = CONFIG.replace("[control]\n", "[control]\nlinger = \"1500ms\"\n").replace(
    "[[vip]]\n", "[bgp]\nnext_hop = \"192.0.2.5\"\nnext_hop_v6 = \"2001:db8:1::5\"\n[[vip]]\n", 1)
V4, V6 = "203.0.113.10", "2001:db8::10"
GRACEFUL_SHUTDOWN = " ffff0000"


class WithSpeaker(unittest.TestCase):
    config = BGP

    def setUp(self):
        self.listener = Listener()
        self.daemon = Daemon(self.listener.port, self.config)

    def tearDown(self):
        self.listener.close()
        if self.daemon.process.poll() is None:
            self.daemon.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        self.assertEqual(self.daemon.stop(), 0)

    def until(self, fulfilled, seconds=5):
        end = time.monotonic() + seconds
        while not fulfilled():
            if time.monotonic() > end:
                self.fail(f"not fulfilled\n{self.daemon.logged()}")
            time.sleep(0.05)

    def ribs(self):
        return [line["rib"] for line in self.daemon.published if "rib" in line]

    def vips(self):
        return {row["vip"]: row for row in self.daemon.json("vip", "list")[0]["vips"]}

    def bgp(self):
        return self.daemon.json("bgp")[0]

    def announced(self):
        """Until both VIPs were read back, and sent."""
        self.until(lambda: all(row["announce"] == "announced" for row in self.vips().values()))
        self.until(lambda: all(row["sent_to"] for row in self.bgp()["vips"]))


class Announcing(WithSpeaker):
    def test_vips_are_announced_and_shown_with_their_three_states(self):
        self.announced()
        self.assertEqual(self.ribs()[-1], [V4, V6])
        bgp = self.bgp()
        self.assertEqual((bgp["speaker"], bgp["state"], bgp["as"]), ("127.0.0.1:50051", "up", 64512))
        self.assertEqual([(peer["address"], peer["as"], peer["session"]) for peer in bgp["peers"]],
                         [("192.0.2.1", 64513, "established")])
        for row in bgp["vips"]:
            self.assertEqual((row["wanted"], row["in_rib"], row["sent_to"], row["not_sent_to"]),
                             (True, "yes", ["192.0.2.1"], []))
        self.assertEqual(bgp["alarms"], [])
        text = self.daemon.run("bgp", check=0).stdout
        self.assertRegex(text, r"(?m)^speaker +gobgpd at 127\.0\.0\.1:50051$")
        self.assertRegex(text, r"(?m)^state +up for ")
        self.assertRegex(text, r"(?m)^192\.0\.2\.1 +64513  established  .* IPv4 IPv6$")
        self.assertRegex(text, r"(?m)^203\.0\.113\.10  yes +yes .* 192\.0\.2\.1$")
        text = self.daemon.run("vip", "list", check=0).stdout
        self.assertRegex(text, r"(?m)^203\.0\.113\.10  web dns +announced$")
        self.assertRegex(text, r"(?m)^2001:db8::10 +web +announced$")
        self.assertRegex(
            self.daemon.run("status", check=0).stdout,
            r"(?m)^BGP +gobgpd at .* up for .*; 1 of 1 sessions, 2 of 2 wanted VIPs announced$")

    def test_a_vip_whose_pools_have_no_eligible_backend_is_withdrawn_with_the_reason(self):
        self.announced()
        self.listener.close()
        self.listener = Listener()  # on another port
        self.until(lambda: self.ribs()[-1] == [V4])  # the pool dns has no check, and goes on
        self.until(lambda: self.vips()[V6]["announce"] == "withdrawn")
        self.assertEqual(self.vips()[V6]["reason"], "no eligible backend in pool web")
        self.assertIn("VIP 2001:db8::10: to be withdrawn: no eligible backend in pool web",
                      self.daemon.logged())

    def test_nothing_is_announced_while_no_port_is_up(self):
        self.announced()
        self.daemon.say("port down")
        self.until(lambda: self.ribs()[-1] == [])
        self.assertEqual(self.vips()[V4]["reason"], "the data plane is not ready: no port is up")
        self.assertIn("ALARM: the data plane is not ready: no port is up",
                      self.daemon.run("status", check=0).stdout)
        self.daemon.say("port up")
        self.announced()

    def test_a_worker_that_stands_still_has_the_vips_withdrawn(self):
        self.announced()
        self.daemon.say("heartbeat off")
        self.until(lambda: self.ribs()[-1] == [], 8)
        self.daemon.say("heartbeat on")
        self.announced()


class SpeakerTrouble(WithSpeaker):
    def test_a_killed_speaker_is_said_and_has_the_vips_within_2_s_of_its_return(self):
        self.announced()
        self.daemon.say("bgp kill")
        self.until(lambda: self.bgp()["state"] == "unreachable")
        self.assertEqual({row["announce"] for row in self.vips().values()}, {"unknown"})
        self.assertEqual(self.vips()[V4]["reason"], "gobgpd is unreachable")
        self.until(lambda: self.bgp()["alarms"], 8)
        self.assertIn("ALARM: VIPs are not announced: gobgpd at 127.0.0.1:50051 is unreachable",
                      self.daemon.run("status", check=0).stdout)
        before = len(self.ribs())
        self.daemon.say("bgp start")
        self.until(lambda: len(self.ribs()) > before and self.ribs()[-1] == [V4, V6], 2)
        self.daemon.say("bgp up")
        self.announced()
        self.assertEqual(self.bgp()["alarms"], [])
        self.assertIn("alarm over", self.daemon.logged())

    def test_a_hung_speaker_is_said(self):
        self.announced()
        self.daemon.say("bgp freeze")
        self.until(lambda: self.bgp()["state"] == "hung", 3)
        self.assertRegex(self.daemon.run("status", check=0).stdout,
                         r"(?m)^BGP +gobgpd at 127\.0\.0\.1:50051 hung for .*: deadline exceeded$")
        self.daemon.say("bgp thaw")
        self.until(lambda: self.bgp()["state"] == "up", 3)

    def test_a_lost_session_is_said(self):
        self.announced()
        self.daemon.say("bgp down")
        self.until(lambda: self.bgp()["peers"][0]["session"] == "down")
        self.assertEqual(self.bgp()["vips"][0]["sent_to"], [])
        self.assertIn("peer 192.0.2.1 (AS 64513): session lost", self.daemon.logged())


class IgnoredAdds(WithSpeaker):
    def test_a_route_that_does_not_reach_the_rib_is_an_alarm_after_5_s(self):
        self.daemon.say("bgp ignore")
        self.daemon.say("bgp kill")  # so that those that came first are gone
        self.daemon.say("bgp start")
        self.until(lambda: self.bgp()["alarms"], 12)
        self.assertIn(f"VIP {V4}: alarm: is wanted, but not in gobgpd's RIB: gobgpd took the route",
                      self.daemon.logged())
        self.assertEqual(self.vips()[V4]["announce"], "announcing")
        self.daemon.say("bgp heed")
        self.daemon.say("bgp up")
        self.until(lambda: not self.bgp()["alarms"], 12)


class Stopping(WithSpeaker):
    def stop_after(self, signals, pause=0.0):
        start = time.monotonic()
        for number in range(signals):
            self.daemon.process.send_signal(signal.SIGTERM)
            time.sleep(pause if number + 1 < signals else 0)
        self.daemon.process.wait(20)
        return time.monotonic() - start

    def test_a_stop_prefers_others_then_withdraws_then_forwards_on(self):
        self.announced()
        start = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.until(lambda: self.ribs()[-1] == [V4 + GRACEFUL_SHUTDOWN, V6 + GRACEFUL_SHUTDOWN], 1)
        self.assertRegex(self.daemon.run("status", check=0).stdout,
                         r"(?m)^stopping: routers are asked to prefer others, the withdrawal is in ")
        self.until(lambda: self.ribs()[-1] == [], 4)
        withdrawn = time.monotonic() - start
        self.assertGreaterEqual(withdrawn, 2)
        self.until(lambda: "forwarded for another" in self.daemon.json("status")[0]["stopping"], 1)
        self.assertEqual(self.vips()[V4]["reason"], "stopping")
        self.daemon.process.wait(20)
        self.assertGreaterEqual(time.monotonic() - start, withdrawn + 1.5)
        self.assertLess(time.monotonic() - start, withdrawn + 4)

    def test_a_second_signal_skips_the_waits_but_still_withdraws(self):
        self.announced()
        self.assertLess(self.stop_after(2, pause=0.3), 2)
        self.assertEqual(self.ribs()[-1], [])

    def test_a_speaker_that_hangs_costs_bounded_waits(self):
        self.announced()
        self.daemon.say("bgp freeze")
        self.until(lambda: self.bgp()["state"] == "hung", 3)
        took = self.stop_after(1)
        self.assertGreaterEqual(took, 2 + 1.5)
        self.assertLess(took, 6)
        self.assertIn("the withdrawal is not confirmed", self.daemon.logged())

    def test_a_speaker_that_returns_while_packets_are_forwarded_on_confirms_the_withdrawal(self):
        self.announced()
        self.daemon.say("bgp freeze")
        self.daemon.process.send_signal(signal.SIGTERM)

        def stopping():
            return self.daemon.json("status")[0]["stopping"]

        self.until(lambda: "not confirmed" in stopping(), 8)
        self.daemon.say("bgp thaw")
        self.until(lambda: stopping().startswith("withdrawn, packets are forwarded"), 1.4)
        confirmed = time.monotonic()
        self.assertEqual(self.ribs()[-1], [])
        self.daemon.process.wait(5)
        self.assertGreaterEqual(time.monotonic() - confirmed, 1.2)
        self.assertIn("holdfastd: stopping: withdrawn, packets are", self.daemon.logged())


class NothingToWithdraw(WithSpeaker):
    def test_without_eligible_backends_the_daemon_stops_at_once(self):
        self.listener.close()
        self.listener = Listener()  # on another port
        self.until(lambda: self.vips()[V6]["reason"] == "no eligible backend in pool web")
        self.daemon.say("port down")
        self.until(lambda: self.vips()[V4]["announce"] == "withdrawn")
        start = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.process.wait(5)
        self.assertLess(time.monotonic() - start, 1)


class WithoutBgp(WithSpeaker):
    config = CONFIG

    def test_commands_say_that_nothing_is_announced_and_a_stop_is_quick(self):
        self.assertEqual(self.daemon.run("bgp", check=0).stdout,
                         "nothing is announced: there is no [bgp] in the configuration\n")
        self.assertEqual(self.vips()[V4]["announce"], "off")
        self.assertEqual(self.vips()[V4]["reason"], "there is no [bgp]")
        self.assertRegex(self.daemon.run("status", check=0).stdout,
                         r"(?m)^BGP +off: nothing is announced$")
        start = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.process.wait(5)
        self.assertLess(time.monotonic() - start, 1)


if __name__ == "__main__":
    unittest.main()
