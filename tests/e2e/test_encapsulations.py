# SPDX-License-Identifier: Apache-2.0
"""nginx through each encapsulation, IPv4 and IPv6 outside and inside: a lab whose balancer is started
anew with one after the other. What it sends is looked at on the router.

Needs root. One test:
python3 -m unittest tests.e2e.test_encapsulations.Encapsulations.test_nginx_is_reached_by_gre
"""

import json
import os
import socket
import struct
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "tools")]

from agent_lab import inside  # noqa: E402
from agent_packets import GRE, GUE_PORT, IPIP, IPV6, UDP, checksum  # noqa: E402

from labkit import Lab  # noqa: E402
from labkit.client import Client  # noqa: E402
from labkit.config_files import WEB6_PORT, WEB_PORT  # noqa: E402

BUILD = os.environ.get("HOLDFAST_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
OUTER = {WEB_PORT: 4, WEB6_PORT: 6}  # the family of the tunnel, by the service's port


def read_tunnel(frame):
    """(outer version, kind, inner version, outer UDP checksum is right) of what a balancer sent to a
    backend; None for other frames."""
    packet = frame[14:]
    outer = packet[0] >> 4
    protocol, addresses, rest = (
        (packet[9], packet[12:20], packet[20:]) if outer == 4
        else (packet[6], packet[8:40], packet[40:]))
    if protocol in (IPIP, IPV6):
        return outer, "ipip", 4 if protocol == IPIP else 6, True
    if protocol == GRE:
        return outer, "gre", {0x0800: 4, 0x86DD: 6}[struct.unpack("!I", rest[:4])[0]], True
    if protocol != UDP or struct.unpack("!H", rest[2:4])[0] != GUE_PORT:
        return None
    if outer == 4:
        good = rest[6:8] == b"\0\0"
    else:
        good = rest[6:8] != b"\0\0" and checksum(
            addresses + struct.pack("!II", len(rest), UDP) + rest) == 0
    good = good and struct.unpack("!H", rest[:2])[0] >= 49152
    if rest[8] >> 4 == 0:
        return outer, "gue0", {IPIP: 4, IPV6: 6}[rest[9]], good
    return outer, "gue", rest[8] >> 4, good


@unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
class Encapsulations(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(f"t{os.getpid()}-encap", build_dir=BUILD, static_routes=True, backends=1)
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()
        cls.client = Client(cls.lab)

    def counters(self):
        shown = self.lab.exec("b1", [str(self.lab.program("holdfast-agent")), "status", "--json",
                                     "--pin-dir", str(self.lab.pin_dir("b1"))]).stdout
        return json.loads(shown)["interfaces"][0]["counters"]

    def use(self, kind):
        if self.lab.state.encapsulation == kind:
            return
        self.lab.stop_service("holdfastd@lb1")
        self.lab.state.encapsulation = kind
        self.lab.start_holdfastd("lb1")
        self.lab.wait_eligible("lb1")

    def on_the_router(self):
        """All frames that the balancer sends from now on, complete."""
        with inside(self.lab.namespace("router")):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        raw.bind(("to-lb1", 3))
        raw.setblocking(False)
        return raw

    def frames(self, raw):
        while True:
            try:
                frame, (_, _, kind, *_) = raw.recvfrom(65536)
            except BlockingIOError:
                return
            if kind != socket.PACKET_OUTGOING and frame[12:14] in (b"\x08\0", b"\x86\xdd"):
                yield frame

    def claim(self, kind):
        self.use(kind)
        before = self.counters()
        with self.on_the_router() as raw:
            for vip in self.lab.topology.vips:
                for port in OUTER:
                    figures = self.client.gets(self.client.url(vip, port=port), 4)
                    self.assertEqual(figures["failed"], 0, figures["failures"])
                    self.assertEqual(figures["backends"], {"b1": 4})
            seen = {read_tunnel(frame) for frame in self.frames(raw)} - {None}
        self.assertEqual(seen, {(outer, kind, inner, True) for outer in (4, 6) for inner in (4, 6)})
        # Full-sized segments in the longest header.
        upload = self.client.upload(self.client.url(self.lab.topology.vip6, "/upload", WEB6_PORT))
        self.assertIsNone(upload["failure"])
        after = self.counters()
        for mix in ("4in4", "6in4", "4in6", "6in6"):
            self.assertGreater(after[f"decapsulated_{mix}"], before[f"decapsulated_{mix}"])
        self.assertEqual(after["unknown_header"], 0)
        self.assertEqual(after["not_vip"], 0)

    def test_nginx_is_reached_by_ipip(self):
        self.claim("ipip")

    def test_nginx_is_reached_by_gre(self):
        self.claim("gre")

    def test_nginx_is_reached_by_gue(self):
        self.claim("gue")

    def test_nginx_is_reached_by_gue_variant_0(self):
        self.claim("gue0")


if __name__ == "__main__":
    unittest.main()
