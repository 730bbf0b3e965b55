# SPDX-License-Identifier: Apache-2.0
"""The lab itself: that it is what it says, and that it leaves nothing behind. No balancer here:
plain routes at the router take its place."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from labkit import Lab, LabError, namespaces, state  # noqa: E402
from labkit.client import Client  # noqa: E402

needs_root = unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")


def free_name(part: str) -> str:
    """A name that no other run on this machine uses."""
    return f"t{os.getpid()}-{part}"


def namespaces_of(name: str) -> list[str]:
    try:
        return [entry for entry in os.listdir("/run/netns") if entry.startswith(name + "-")]
    except FileNotFoundError:
        return []


@needs_root
class OneLab(unittest.TestCase):
    """What a lab offers, in one lab."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(free_name("one"), bare=True)
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()
        cls.client = Client(cls.lab)
        cls.topology = cls.lab.topology

    def setUp(self):
        self.lab.route_vips_to("b2")

    def on_each_vip(self, claim):
        for vip in self.topology.vips:
            with self.subTest(vip=vip):
                claim(vip)

    def test_bird_routes_the_vips_to_the_balancer(self):
        lb = self.topology.host("lb1")
        for vip, gateway in ((self.topology.vip4, lb.v4), (self.topology.vip6, lb.v6)):
            family = "-6" if ":" in vip else "-4"
            shown = self.lab.exec("router", ["ip", family, "route", "show", vip, "proto", "bird"])
            self.assertIn(f"via {gateway} dev to-lb1", shown.stdout)

    def test_the_router_spreads_by_addresses_and_ports(self):
        for family in ("ipv4", "ipv6"):
            key = f"/proc/sys/net/{family}/fib_multipath_hash_policy"
            self.assertEqual(self.lab.exec("router", ["cat", key]).stdout.strip(), "1")

    def test_links_have_the_mtus_of_the_topology(self):
        for host in self.topology.linked_hosts:
            shown = self.lab.exec(host.name, ["ip", "-o", "link", "show", "eth0"]).stdout
            self.assertIn(f" mtu {host.mtu} ", shown)
            shown = self.lab.exec("router", ["ip", "-o", "link", "show", host.router_interface])
            self.assertIn(f" mtu {host.mtu} ", shown.stdout)

    def test_packets_to_the_balancer_carry_whole_checksums(self):
        shown = self.lab.exec("router", ["ethtool", "-k", "to-lb1"]).stdout
        self.assertIn("tx-checksumming: off", shown)

    def test_exec_returns_output_and_failure(self):
        self.assertEqual(self.lab.exec("b1", ["echo", "here"]).stdout, "here\n")
        self.assertEqual(self.lab.exec("b1", ["false"], check=False).returncode, 1)
        with self.assertRaisesRegex(LabError, "no-such-file"):
            self.lab.exec("b1", ["ls", "no-such-file"])
        with self.assertRaisesRegex(LabError, "there are: client, router, lb1, b1, b2, b3"):
            self.lab.exec("b9", ["true"])

    def test_hosts_reach_each_other(self):
        for backend in self.topology.backends:
            for address in (backend.v4, backend.v6):
                figures = self.client.gets(self.client.url(address), 1)
                self.assertEqual(figures["backends"], {backend.name: 1}, figures["failures"])

    def test_requests_are_answered_by_the_host_with_the_route(self):
        def claim(vip):
            for port in (80, 8080):
                figures = self.client.gets(self.client.url(vip, port=port), 5)
                self.assertEqual(figures["failed"], 0, figures["failures"])
                self.assertEqual(figures["backends"], {"b2": 5})

        self.on_each_vip(claim)

    def test_large_transfers_arrive_whole(self):
        def claim(vip):
            for figures in (
                self.client.upload(self.client.url(vip, "/upload")),
                self.client.download(self.client.url(vip, "/bytes/50m")),
            ):
                self.assertIsNone(figures["failure"])
                self.assertEqual(figures["backend"], "b2")
                self.assertEqual(figures["bytes"], 50 * 1024 * 1024)

        self.on_each_vip(claim)

    def test_streams_run_to_their_end(self):
        def claim(vip):
            url = self.client.url(vip, "/events?seconds=1&interval=0.1")
            running = self.client.start_streams(url, 20)
            self.assertEqual(running.wait_open()["open"], 20)
            figures = running.result()
            self.assertEqual((figures["ended_well"], figures["broken"]), (20, 0), figures)
            self.assertEqual(figures["events"], 20 * 10)
            self.assertEqual(figures["backends"], {"b2": 20})

        self.on_each_vip(claim)

    def test_a_flow_that_moves_to_another_backend_is_seen_as_broken(self):
        running = self.client.start_streams(
            self.client.url(self.topology.vip4, "/events?seconds=10&interval=0.1"), 5
        )
        self.assertEqual(running.wait_open()["open"], 5)
        self.lab.route_vips_to("b3")  # knows nothing of these connections: resets them
        figures = running.result()
        self.assertEqual(figures["broken"], 5, figures)

    def test_requests_go_on_until_told_to_stop_and_failures_are_counted(self):
        running = self.client.start_gets(self.client.url(self.topology.vip4))
        time.sleep(0.5)
        # The router takes the VIP for itself, where nothing listens.
        no_way = ["local", self.topology.vip4, "dev", "lo", "table", "main"]
        self.lab.exec("router", ["ip", "route", "add", *no_way])
        try:
            time.sleep(0.5)
        finally:
            self.lab.exec("router", ["ip", "route", "delete", *no_way])
        figures = running.stop()
        self.assertGreater(figures["requests"], figures["failed"])
        self.assertGreater(figures["failed"], 0)
        self.assertIn("Failed to connect", figures["failures"][-1]["reason"])


@needs_root
class Life(unittest.TestCase):
    """Raising and removing labs."""

    def test_two_labs_do_not_disturb_each_other(self):
        with Lab(free_name("x"), bare=True) as first, Lab(free_name("y"), bare=True) as second:
            first.route_vips_to("b1")
            second.route_vips_to("b2")
            for lab, backend in ((first, "b1"), (second, "b2")):
                client = Client(lab)
                figures = client.gets(client.url(lab.topology.vip4), 3)
                self.assertEqual(figures["backends"], {backend: 3}, figures["failures"])
            first.down()
            client = Client(second)
            figures = client.gets(client.url(second.topology.vip6), 3)
            self.assertEqual(figures["backends"], {"b2": 3}, figures["failures"])

    def test_nothing_is_left_of_a_lab(self):
        lab = Lab(free_name("gone"), bare=True)
        lab.up()
        folder = lab.path()
        pids = namespaces.processes_in(set(lab.state.namespaces.values()))
        self.assertGreater(len(pids), 6)
        started = {pid: state.start_time(pid) for pid in pids}
        sleeper = lab.popen(
            "client",
            ["sh", "-c", "echo here; exec sleep 1000"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.assertEqual(sleeper.stdout.readline(), "here\n")
        lab.down()
        sleeper.communicate()
        self.assertEqual(sleeper.returncode, -signal.SIGTERM)
        lab.down()  # does nothing the second time
        self.assertEqual(namespaces_of(folder.name), [])
        self.assertEqual([pid for pid in pids if state.start_time(pid) == started[pid]], [])
        self.assertFalse(folder.exists())

    def test_the_lab_of_a_killed_run_is_removed_by_the_next(self):
        name = free_name("dead")
        program = textwrap.dedent(f"""
            import sys, time
            sys.path.insert(0, {str(TOOLS)!r})
            from labkit import Lab
            with Lab({name!r}, bare=True):
                print("up", flush=True)
                time.sleep(1000)
        """)
        for when in ("up", "half-way"):
            with self.subTest(when=when):
                run = subprocess.Popen(
                    [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
                )
                if when == "up":
                    self.assertEqual(run.stdout.readline(), "up\n")
                else:
                    while len(namespaces_of(name)) < 3:
                        time.sleep(0.001)
                run.kill()
                run.communicate()
                left = state.load(name)
                self.assertTrue(left.stale())
                pids = namespaces.processes_in(set(left.namespaces.values()))
                started = {pid: state.start_time(pid) for pid in pids}
                if when == "up":
                    self.assertGreater(len(started), 6)
                with Lab(free_name("next"), bare=True):
                    self.assertEqual(namespaces_of(name), [])
                    alive = [pid for pid in pids if state.start_time(pid) == started[pid]]
                    self.assertEqual(alive, [])
                    self.assertIsNone(state.load(name))

    def test_a_running_or_kept_lab_is_not_removed_by_the_next(self):
        kept = Lab(free_name("kept"), bare=True)
        self.addCleanup(kept.down)
        kept.up()
        kept.keep()
        with Lab(free_name("own"), bare=True) as own, Lab(free_name("third"), bare=True):
            for lab in (kept, own):
                self.assertEqual(lab.exec("b1", ["echo", "here"]).stdout, "here\n")

    def test_a_namespace_of_somebody_else_is_refused_and_left_alone(self):
        name = free_name("other")
        namespaces.add(f"{name}-b2")
        self.addCleanup(namespaces.delete, f"{name}-b2")
        with self.assertRaisesRegex(LabError, f"{name}-b2 exists and no lab made it"):
            Lab(name, bare=True).up()
        self.assertEqual(namespaces_of(name), [f"{name}-b2"])
        self.assertIsNone(state.load(name))

    def test_a_name_that_was_taken_anew_is_left_alone(self):
        lab = Lab(free_name("anew"), bare=True)
        lab.up()
        name = lab.namespace("b3")
        namespaces.stop_processes({lab.state.namespaces[name]})
        old = open(f"/run/netns/{name}")  # keeps its inode number from being used again
        namespaces.delete(name)
        namespaces.add(name)
        self.addCleanup(namespaces.delete, name)
        old.close()
        lab.down()
        self.assertEqual(namespaces_of(lab_name := name.removesuffix("-b3")), [f"{lab_name}-b3"])

    def test_a_lab_that_cannot_be_raised_leaves_nothing(self):
        name = free_name("fails")
        with tempfile.TemporaryDirectory() as empty:
            with self.assertRaisesRegex(LabError, "is not built in"):
                Lab(name, build_dir=empty).up()
        self.assertEqual(namespaces_of(name), [])
        self.assertIsNone(state.load(name))

    def test_without_a_name_a_free_one_is_taken(self):
        with Lab(bare=True) as first, Lab(bare=True) as second:
            self.assertNotEqual(first.name, second.name)
            self.assertRegex(first.name, r"^hf\d*$")
            self.assertRegex(second.name, r"^hf\d*$")


@needs_root
class NotUnderstood(unittest.TestCase):
    """A state file of another version, or a broken one, beside labs that are well."""

    TEXTS = {
        "": "not JSON",
        "[]": "not a JSON object",
        '{"name": "x"': "not JSON",
        "\x00\xff": "not JSON",
        '{"purpose": "x"}': "no 'name'",
        "unknown key": "the unknown key 'colour'",
        "wrong type": "'mounts' is of another type",
        "wrong process": "other keys than",
    }

    def setUp(self):
        self.name = free_name("odd")
        self.folder = state.ROOT / self.name
        self.addCleanup(self.remove)

    def remove(self):
        with state.locked():
            shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, text: str) -> None:
        fields = dataclasses.asdict(state.State(self.name, "a test"))
        other = {
            "unknown key": {"colour": "red"},
            "wrong type": {"mounts": 3},
            "wrong process": {"services": {"nginx@b1": {"process": 7}}},
        }.get(text)
        with state.locked():
            self.folder.mkdir(exist_ok=True)
            whole = text if other is None else json.dumps(fields | other)
            (self.folder / "state.json").write_text(whole, encoding="latin-1")

    def run_lab(self, *argv):
        return subprocess.run([TOOLS / "lab", *argv], capture_output=True, text=True)

    def test_commands_about_it_say_so_in_one_line(self):
        for text, reason in self.TEXTS.items():
            with self.subTest(text=text):
                self.write(text)
                for argv in (["status"], ["up", "--bare"], ["down"], ["exec"]):
                    what = ["b1", "true"] if argv == ["exec"] else []
                    done = self.run_lab(*argv, "--name", self.name, *what)
                    self.assertEqual(done.returncode, 1, done)
                    [line] = done.stderr.splitlines()
                    self.assertIn(f"{self.folder}/state.json is not understood: ", line)
                    self.assertIn(reason, line)
        self.assertTrue(self.folder.exists())

    def test_other_labs_go_on(self):
        self.write("")
        with Lab(free_name("well"), bare=True) as lab:
            status = self.run_lab("status")
            self.assertIn(f"lab {lab.name} ", status.stdout)
            self.assertIn(f"{self.folder}/state.json is not understood", status.stderr)
            self.assertEqual(status.returncode, 1)
            self.assertEqual(self.run_lab("status", "--name", lab.name).returncode, 0)
            done = self.run_lab("exec", "--name", lab.name, "b1", "echo", "here")
            self.assertEqual(done.stdout, "here\n")
        self.assertTrue(self.folder.exists())

    def test_what_an_earlier_version_wrote_is_understood(self):
        self.write("unknown key")
        fields = dataclasses.asdict(state.State(self.name, "a test"))
        del fields["queues"]  # the lab had one, before there was a choice
        (self.folder / "state.json").write_text(json.dumps(fields))
        self.assertEqual(state.load(self.name).queues, 1)


@needs_root
class CommandLine(unittest.TestCase):
    """tools/lab up, status, exec, down."""

    def run_lab(self, *argv):
        return subprocess.run([TOOLS / "lab", *argv], capture_output=True, text=True)

    def test_up_status_exec_down(self):
        name = free_name("cli")
        self.addCleanup(self.run_lab, "down", "--name", name)
        up = self.run_lab("up", "--bare", "--name", name)
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertIn("203.0.113.10", up.stdout)
        again = self.run_lab("up", "--bare", "--name", name)
        self.assertEqual(again.returncode, 1)
        self.assertIn(f"tools/lab down --name {name}", again.stderr)
        status = self.run_lab("status", "--name", name)
        self.assertIn("kept until `down`", status.stdout)
        self.assertRegex(status.stdout, r"b1 +app, nginx\n")
        inside = self.run_lab("exec", "--name", name, "b1", "sh", "-c", "exit 7")
        self.assertEqual(inside.returncode, 7)
        down = self.run_lab("down", "--name", name)
        self.assertEqual((down.returncode, namespaces_of(name)), (0, []), down.stderr)
        down = self.run_lab("down", "--name", name)
        self.assertEqual((down.returncode, down.stdout), (0, f"no lab {name} is up\n"))

    def test_a_lab_in_use_is_not_removed_without_force(self):
        with Lab(free_name("used"), bare=True) as lab:
            down = self.run_lab("down", "--name", lab.name)
            self.assertEqual(down.returncode, 1)
            self.assertIn(f"belongs to a running process, {os.getpid()}", down.stderr)
            self.assertEqual(lab.exec("b1", ["echo", "here"]).stdout, "here\n")

    def test_an_interrupted_up_leaves_nothing(self):
        name = free_name("stop")
        run = subprocess.Popen(
            [TOOLS / "lab", "up", "--bare", "--name", name], stderr=subprocess.PIPE
        )
        while len(namespaces_of(name)) < 2:
            time.sleep(0.001)
        run.send_signal(signal.SIGTERM)
        run.communicate()
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.assertEqual(namespaces_of(name), [])
        self.assertIsNone(state.load(name))


if __name__ == "__main__":
    unittest.main()
