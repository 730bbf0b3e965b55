# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, a bpffs and the agent's command line, for the agent's tests.

    client ---(c)--- lb ---(f)--- backend    198.51.100.0/24, then 192.0.2.0/24, and IPv6 alike

The lb namespace is the router for answers. To a VIP it has no route: only what a test itself sends
in a tunnel gets there. Everything is named for this process, and what a killed run left is removed
by the next one.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
AGENT = os.environ.get("HOLDFAST_AGENT", str(TOP / "build/tools/agent/holdfast-agent"))
PREFIX = "hfagent"
CLONE_NEWNET = 0x40000000

CLIENT = {4: "198.51.100.2", 6: "2001:db8:c::2"}
CLIENT_GATEWAY = {4: "198.51.100.1", 6: "2001:db8:c::1"}
LB = {4: "192.0.2.1", 6: "2001:db8:f::1"}
BACKEND = {4: "192.0.2.2", 6: "2001:db8:f::2"}
VIP = {4: "203.0.113.10", 6: "2001:db8:1::10"}
WIDTH = {4: 24, 6: 64}

libc = ctypes.CDLL(None, use_errno=True)


def why_not():
    """Why these tests can not run here, or an empty string."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.access(AGENT, os.X_OK):
        return f"{AGENT} is not built: ninja -C build tools/agent/holdfast-agent"
    return ""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def enter(namespace):
    """Moves this thread into the network namespace."""
    with open(f"/run/netns/{namespace}") as handle:
        set_namespace(handle)


def set_namespace(handle):
    if libc.setns(handle.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(namespace):
    """Sockets that are opened here belong to that namespace for good."""
    with open("/proc/thread-self/ns/net") as home:
        enter(namespace)
        try:
            yield
        finally:
            set_namespace(home)


def switch_offloads_off(namespace, interface):
    """Frames that an AF_PACKET socket copies must be complete: with checksums, within the MTU."""
    siocethtool, stxcsum, stso, sgso = 0x8946, 0x17, 0x1F, 0x24
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (sgso, stso, stxcsum):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = ctypes.create_string_buffer(
                struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))
            if libc.ioctl(control.fileno(), siocethtool, request) != 0:
                raise OSError(ctypes.get_errno(), f"ethtool {interface}")


def remove_leftovers():
    """Namespaces and mounts of runs that did not come to their end."""
    names = [line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.strip()]
    for name in names:
        if name.startswith(PREFIX) and not is_alive(name):
            subprocess.run(["ip", "netns", "del", name])
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        if not is_alive(folder.name):
            subprocess.run(["umount", "-q", folder / "bpf"])
            shutil.rmtree(folder, ignore_errors=True)


def is_alive(name):
    pid = name.removeprefix(PREFIX).split("-")[0]
    return not pid.isdigit() or os.path.exists(f"/proc/{pid}")


class Lab:
    """The three namespaces and a mounted bpffs. Use as a context."""

    def __enter__(self):
        remove_leftovers()
        base = f"{PREFIX}{os.getpid()}"
        self.client, self.lb, self.backend = f"{base}-client", f"{base}-lb", f"{base}-backend"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{base}-"))
        self.pins = self.folder / "bpf"
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (self.client, self.lb, self.backend):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "-q", self.folder / "bpf"])
        shutil.rmtree(self.folder, ignore_errors=True)

    def _build(self):
        for name in (self.client, self.lb, self.backend):
            run("ip", "netns", "add", name)
            with inside(name):
                for key in ("all", "default"):
                    pathlib.Path(f"/proc/sys/net/ipv4/conf/{key}/rp_filter").write_text("0")
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.add_link(self.client, "c", CLIENT, self.lb, "c", CLIENT_GATEWAY)
        self.add_link(self.lb, "f", LB, self.backend, "f", BACKEND)
        with inside(self.lb):
            pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            pathlib.Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
        for version in (4, 6):
            run("ip", "-n", self.client, "route", "add", "default", "via", CLIENT_GATEWAY[version])
            run("ip", "-n", self.backend, "route", "add", "default", "via", LB[version])
            run("ip", "-n", self.lb, "route", "add", "blackhole", VIP[version])
            run("ip", "-n", self.backend, "address", "add", VIP[version], "dev", "lo")
        self.pins.mkdir()
        run("mount", "-t", "bpf", "bpf", str(self.pins))

    def add_link(self, one, one_name, one_addresses, two, two_name, two_addresses):
        """A veth pair; its second end has agent_packets.BACKEND_MAC, the first one OTHER_MAC."""
        run("ip", "-n", one, "link", "add", "name", one_name, "address", "02:00:00:00:00:01",
            "type", "veth", "peer", "name", two_name, "address", "02:00:00:00:00:02", "netns", two)
        for namespace, name, addresses in ((one, one_name, one_addresses),
                                           (two, two_name, two_addresses)):
            switch_offloads_off(namespace, name)
            for version, address in addresses.items():
                nodad = ["nodad"] if version == 6 else []
                run("ip", "-n", namespace, "address", "add", f"{address}/{WIDTH[version]}",
                    "dev", name, *nodad)
            run("ip", "-n", namespace, "link", "set", "dev", name, "up")

    def agent(self, *words, namespace=None, before=None):
        """Runs holdfast-agent in the backend's network namespace; returns the finished process."""

        def prepare():
            enter(namespace or self.backend)
            if before:
                before()

        pin_dir = ["--pin-dir", str(self.pins)] if words else []
        return subprocess.run([AGENT, *words, *pin_dir], capture_output=True, text=True,
                              preexec_fn=prepare, timeout=60)

    def attach(self, *more, interface="f", vips=VIP.values(), lbs=LB.values()):
        words = ["attach", interface, *more]
        for vip in vips:
            words += ["--vip", vip]
        for lb in lbs:
            words += ["--lb", lb]
        return self.agent(*words)

    def status(self, interface="f"):
        done = self.agent("status", interface, "--json")
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)["interfaces"][0]

    def counters(self, interface="f"):
        return self.status(interface)["counters"]

    def wait_for(self, counter, packets):
        """Returns the count once it is that many: frames are handled a moment after the send."""
        for _ in range(100):
            if (counted := self.counters()[counter]) >= packets:
                break
            time.sleep(0.02)
        return counted

    def listener(self, kind, version):
        """A socket of the backend on the VIP. kind: socket.SOCK_STREAM or SOCK_DGRAM."""
        with inside(self.backend):
            bound = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, kind)
        bound.settimeout(5)
        bound.bind((VIP[version], 0))
        if kind == socket.SOCK_STREAM:
            bound.listen()
        return bound

    def raw(self, namespace, interface):
        """An AF_PACKET socket: sends frames and gets all that the interface receives."""
        with inside(namespace):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        raw.bind((interface, 3))
        raw.settimeout(5)
        return raw


class SkippedWhereImpossible(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if reason := why_not():
            raise unittest.SkipTest(reason)


class LabTest(SkippedWhereImpossible):
    """A lab for each test: attaching and detaching is what they are about."""

    def setUp(self):
        self.lab = self.enterContext(Lab())

    def assert_done(self, finished, status=0, says=""):
        self.assertEqual(finished.returncode, status, finished.stderr + finished.stdout)
        self.assertIn(says, finished.stderr if status else finished.stdout)
        if status:
            self.assertEqual(finished.stderr.count("\n"), 1, "one sentence")
