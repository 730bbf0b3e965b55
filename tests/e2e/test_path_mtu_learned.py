# SPDX-License-Identifier: Apache-2.0
"""What a router between balancer and backend says about its MTU: holdfastd hears it, believes it only
if the quoted packet is its own, and sends no more than that."""

import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from captures import VIP4, client, config  # noqa: E402
from daemon import NOBODY, Daemon, wait_for  # noqa: E402
from labkit import Lab  # noqa: E402
from labkit.client import Client  # noqa: E402
from labkit.config_files import WEB6_PORT, WEB_PORT  # noqa: E402

NARROW = 1400

# Sends one ICMP message, its checksum filled in: destination, and the message in hexadecimal.
_SEND_ICMP = """
import socket, struct, sys
message = bytearray.fromhex(sys.argv[2])
total = sum(struct.unpack(f"!{len(message) // 2}H", message))
total = (total & 0xFFFF) + (total >> 16)
message[2:4] = struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.sendto(bytes(message), (sys.argv[1], 0))
"""


def needed(source: str, destination: str, mtu: int) -> bytes:
    """A fragmentation-needed that quotes an IP in IP packet of 1500 bytes."""
    quote = bytes.fromhex("450005dc 00004000 4004 0000")
    quote += bytes(int(part) for part in f"{source}.{destination}".split("."))
    quote += bytes.fromhex("450005c8 00004000")
    return bytes.fromhex("0304 0000 0000") + mtu.to_bytes(2, "big") + quote


class NarrowLink(unittest.TestCase):
    """A lab whose link to its only backend is narrow."""

    encapsulation = "ipip"

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root: makes network namespaces")
        name = f"t{os.getpid()}-pmtu-{cls.encapsulation}"
        cls.lab = Lab(name, static_routes=True, backends=1, encapsulation=cls.encapsulation)
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()
        cls.client = Client(cls.lab)
        cls.lb, cls.b1 = cls.lab.topology.lbs[0], cls.lab.topology.backends[0]
        cls.lab.exec("router", ["ip", "link", "set", "to-b1", "mtu", str(NARROW)])
        cls.lab.exec("b1", ["ip", "link", "set", "eth0", "mtu", str(NARROW)])

    def path_mtu(self, pool: str) -> dict | None:
        return self.lab.pool(pool)["backends"][0]["path_mtu"]

    def messages(self) -> dict:
        return self.lab.stats()["path_mtu_messages"]

    def forge(self, host: str, message: bytes) -> None:
        self.lab.exec(host, [sys.executable, "-c", _SEND_ICMP, self.lb.v4, message.hex()])

    def counted(self, message: bytes, counter: str, host: str = "client") -> None:
        """Forges a message that is to be counted under `counter`."""
        before = self.messages()
        self.forge(host, message)
        wait_for(lambda: self.messages() != before, "the message to be read")
        self.assertEqual(self.messages(), before | {counter: before[counter] + 1})

    def assert_heard(self) -> None:
        """Uploads over both tunnels and to both VIPs complete, and the router was heard."""
        for pool, port, source in (
            ("web", WEB_PORT, self.lb.router4),
            ("web6", WEB6_PORT, self.lb.router6),
        ):
            for vip in self.lab.topology.vips:
                figures = self.client.upload(self.client.url(vip, "/upload", port))
                self.assertIsNone(figures.get("failure"), figures)
            learned = self.path_mtu(pool)
            self.assertEqual((learned["mtu"], learned["learned_from"]), (NARROW, source))
            self.assertTrue(0 < learned["expires_in_seconds"] <= 600)
            backend = self.b1.v4 if pool == "web" else self.b1.v6
            said = f"path MTU to backend {backend} is {NARROW}, learned from {source}, for 10 min"
            self.assertIn(said, self.lab.holdfast(["events"]).stdout)
        shown = self.lab.holdfast(["pool", "show", "web"]).stdout
        self.assertIn(f"path MTU to b1: {NARROW}, learned from {self.lb.router4}, for ", shown)
        self.assertIn("for 2 backends", self.lab.holdfast(["status"]).stdout)


class WithIpip(NarrowLink):
    def test_1_what_quotes_no_tunnel_of_ours_is_counted_and_not_believed(self):
        backend, ours = self.b1.v4, self.lb.v4
        another_source = needed("192.0.2.3", backend, 1300)
        self.counted(another_source, "not_ours")
        self.counted(needed(ours, "192.0.2.99", 1300), "not_ours")  # no backend
        tcp = needed(ours, backend, 1300).replace(b"\x40\x04", b"\x40\x06")
        self.counted(tcp, "not_ours")
        self.counted(needed(ours, backend, 575), "not_believed")
        self.counted(needed(ours, backend, 1500), "malformed")  # it would have fitted
        # The kernel's filter holds back what is about no MTU, such as an unreachable port.
        self.forge("client", b"\x03\x03" + needed(ours, backend, 1300)[2:])
        self.counted(another_source, "not_ours")
        self.assertIsNone(self.path_mtu("web"))

    def test_2_the_router_is_heard_and_large_uploads_complete(self):
        self.assert_heard()

    def test_3_nobody_raises_it_and_repetition_keeps_it(self):
        self.counted(needed(self.lb.v4, self.b1.v4, NARROW + 50), "known")
        self.assertEqual(self.path_mtu("web")["mtu"], NARROW)
        time.sleep(1.1)
        before = self.path_mtu("web")["expires_in_seconds"]
        self.assertLess(before, 599)
        self.counted(needed(self.lb.v4, self.b1.v4, NARROW), "known")
        self.assertGreater(self.path_mtu("web")["expires_in_seconds"], before)

    def test_4_what_would_starve_ipv6_is_a_warning_and_changes_nothing(self):
        for _ in range(2):
            self.counted(needed(self.lb.v4, self.b1.v4, 1299), "not_believed", "router")
        said = f"router {self.lb.router4} says that the path MTU is 1299, but IPv6 services need 1300"
        self.assertEqual(self.lab.holdfast(["events"]).stdout.count(said), 1)
        self.assertEqual(self.path_mtu("web")["mtu"], NARROW)


class WithGue(NarrowLink):
    encapsulation = "gue"

    def test_the_router_is_heard_and_large_uploads_complete(self):
        self.assert_heard()


class WithoutPermission(unittest.TestCase):
    @unittest.skipIf(os.geteuid() != 0, "needs root: to be somebody else")
    def test_a_daemon_without_raw_sockets_says_so_once_and_forwards(self):
        daemon = Daemon(config(), user=NOBODY)
        self.addCleanup(daemon.close)
        packets = [f.tcp(client(n), (VIP4, 80), f.SYN) for n in range(10)]
        f.write_pcap(daemon.folder / "in", [f.frame_of(packet) for packet in packets])
        daemon.start()
        stats = daemon.stats_after(len(packets))
        self.assertEqual(stats["packets"]["forwarded"], len(packets))
        self.assertEqual(set(stats["path_mtu_messages"].values()), {0})
        said = [line for line in daemon.stderr.splitlines() if "MTU on the way" in line]
        self.assertEqual(len(said), 1, daemon.stderr)
        self.assertIn("run holdfastd as root or with CAP_NET_RAW", said[0])


if __name__ == "__main__":
    unittest.main()
