# SPDX-License-Identifier: Apache-2.0
"""Links of 1400 bytes behind the balancer, and a client whose link takes 1500: what is sent to the
VIPs arrives whole, by way of Packet Too Big or in fragments, and what the VIPs say themselves is
right. In one lab whose balancer knows the MTU by its routes."""

import hashlib
import json
import os
import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import Lab, services  # noqa: E402
from labkit.config_files import WEB6_PORT, WEB_PORT  # noqa: E402
from labkit.lab import DEFAULT_BUILD_DIR, find_program  # noqa: E402

PROGRAMS = ("holdfastd", "holdfast", "holdfast-agent")
LINK = 1400  # bytes of IP between router and backends
IN_IPV4_TUNNEL = LINK - 20
TRANSFER_BYTES = 3_000_000
UDP_PORT = 4000  # one echoes there; on all other ports nobody listens

# Answers each datagram with its length and a digest.
UDP_SERVER = f"""
import hashlib, socket, sys
server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.bind(("::", {UDP_PORT}))
server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
print("ready", flush=True)
while True:
    data, found, _, client = server.recvmsg(65535, 256)
    answer = f"{{len(data)}} {{hashlib.sha256(data).hexdigest()}}".encode()
    # From the address that was asked: a VIP.
    server.sendmsg([answer], found, 0, client)
"""

# Sends one datagram that may be fragmented on its way, and prints the answer.
UDP_CLIENT = """
import socket, sys
vip, port, size, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in vip else socket.AF_INET
client = socket.socket(family, socket.SOCK_DGRAM)
if family == socket.AF_INET:
    client.setsockopt(socket.IPPROTO_IP, 10, mode)  # IP_MTU_DISCOVER
client.settimeout(3)
client.connect((vip, port))
client.send(bytes(i * 7 % 256 for i in range(size)))
print(client.recv(200).decode())
"""
PMTUDISC_DONT = 0


@unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
@unittest.skipUnless(
    all(find_program(DEFAULT_BUILD_DIR, name) for name in PROGRAMS),
    f"needs the programs in {DEFAULT_BUILD_DIR.name}/",
)
class PathMtu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lab = Lab(f"t{os.getpid()}-mtu", static_routes=True, running_lbs=0,
                  purpose="tests/e2e/test_path_mtu")
        cls.lab = lab
        cls.addClassCleanup(lab.down)
        lab.up()
        cls.vips = lab.topology.vips
        for backend in lab.topology.backends:
            cls.narrow(backend)
            server = lab.start_service("udp", backend.name, [sys.executable, "-c", UDP_SERVER])
            services.wait_until(lambda s=server: "ready" in s.log.read_text(), "UDP", [server])
        balancer = lab.topology.lbs[0]
        for to, by in (("192.0.2.64/26", balancer.router4), ("2001:db8:b::/48", balancer.router6)):
            lab.exec("lb1", ["ip", "route", "add", to, "via", by, "dev", "eth0", "mtu", str(LINK)])
        lab.start_holdfastd("lb1", cls.config(balancer))
        lab.wait_eligible()

    @classmethod
    def narrow(cls, backend):
        """Both ends of its link take LINK bytes; but its TCP asks clients for full segments, as one
        does whose own link is wide and whose path is not."""
        lab = cls.lab
        lab.exec("router", ["ip", "link", "set", backend.router_interface, "mtu", str(LINK)])
        lab.exec(backend.name, ["ip", "link", "set", "eth0", "mtu", str(LINK)])
        for family, gateway, most in (("-4", backend.router4, 1460), ("-6", backend.router6, 1440)):
            lab.exec(backend.name, ["ip", family, "route", "change", "default", "via", gateway,
                                    "dev", "eth0", "advmss", str(most)])

    @classmethod
    def config(cls, balancer) -> Path:
        """The lab's own, with UDP on any port, and with VIPs that reject what is for no service."""
        path = services.write_holdfast_config(cls.lab, balancer)
        text = path.read_text()
        text = re.sub(r"(\[\[vip\]\]\n)", r'\1unknown_port = "reject"\n', text)
        vips = ", ".join(f'"{vip}"' for vip in cls.vips)
        text += f'\n[[service]]\nname = "udp"\nvips = [{vips}]\nprotocol = "udp"\n'
        text += 'ports = "any"\npool = "web"\n'
        path.write_text(text)
        return path

    def on_each_vip(self, claim):
        for vip in self.vips:
            with self.subTest(vip=vip):
                claim(vip)

    def client(self, *argv: str, **options):
        return self.lab.exec("client", list(argv), **options)

    def url(self, vip: str, path: str, port: int = WEB_PORT) -> str:
        host = f"[{vip}]" if ":" in vip else vip
        return f"http://{host}:{port}{path}"

    def answered(self) -> int:
        return self.lab.stats()["packets"]["answered"]

    def send_datagram(self, vip: str, size: int, port: int = UDP_PORT) -> str:
        return self.client(sys.executable, "-c", UDP_CLIENT, vip, str(port), str(size),
                           str(PMTUDISC_DONT)).stdout.strip()

    def test_large_uploads_and_downloads_complete(self):
        blob = self.lab.path("www", "50m").read_bytes()[:TRANSFER_BYTES]
        part = self.lab.path("www", "part")
        part.write_bytes(blob)
        digest = hashlib.sha256(blob).hexdigest()

        def claim(vip):
            for port in (WEB_PORT, WEB6_PORT):  # in tunnels of either family
                before = self.answered()
                done = self.client("curl", "-sS", "--max-time", "20", "-T", str(part),
                                   self.url(vip, "/upload", port))
                said = json.loads(done.stdout)
                self.assertEqual((said["bytes"], said["sha256"]), (TRANSFER_BYTES, digest))
                self.assertGreater(self.answered(), before, "nobody was told that it is too big")
                self.client("curl", "-sS", "--max-time", "20", "-r", f"0-{TRANSFER_BYTES - 1}",
                            "-o", str(part) + ".back", self.url(vip, "/bytes/50m", port))
                self.assertEqual(Path(str(part) + ".back").read_bytes(), blob)

        self.on_each_vip(claim)

    def test_tracepath_shows_the_path_mtu(self):
        def claim(vip):
            # What earlier tests have learnt is forgotten first.
            family = "-6" if ":" in vip else "-4"
            self.client("ip", family, "route", "flush", "cache")
            shown = self.client("tracepath", "-n", "-m", "6", vip).stdout
            self.assertIn(f"pmtu {IN_IPV4_TUNNEL}", shown)
            self.assertRegex(shown, rf"{re.escape(vip)} .*reached")
            self.assertRegex(shown, rf"Resume: pmtu {IN_IPV4_TUNNEL}")

        self.on_each_vip(claim)

    def test_a_vip_answers_pings(self):
        def claim(vip):
            for size in ("56", "1400"):
                said = self.client("ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", "-s", size, vip)
                self.assertIn("2 received", said.stdout)

        self.on_each_vip(claim)

    def test_a_closed_port_refuses_at_once(self):
        def claim(vip):
            begun = time.monotonic()
            done = self.client("curl", "-sS", "--max-time", "5", self.url(vip, "/", 81),
                               check=False)
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertLess(time.monotonic() - begun, 2)

        self.on_each_vip(claim)

    def test_a_datagram_that_may_be_fragmented_arrives_whole(self):
        vip = self.vips[0]
        # What other tests have learnt would have the client fragment by itself.
        self.client("ip", "route", "flush", "cache")
        before = self.lab.stats()["packets"]["extra_fragments"]
        for size in (1352, 1353, 1400, 1472):
            digest = hashlib.sha256(bytes(i * 7 % 256 for i in range(size))).hexdigest()
            self.assertEqual(self.send_datagram(vip, size), f"{size} {digest}")
        after = self.lab.stats()["packets"]["extra_fragments"]
        self.assertEqual(after - before, 3)

    def test_every_packet_is_accounted_for(self):
        self.client("ping", "-n", "-c", "1", self.vips[0])
        self.assertTrue(self.lab.stats()["identity"]["holds"])


if __name__ == "__main__":
    unittest.main()
