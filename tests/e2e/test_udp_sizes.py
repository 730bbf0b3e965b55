# SPDX-License-Identifier: Apache-2.0
"""UDP datagrams of every size around the boundaries, through a whole lab: fragmented by the client's
kernel, tunnelled fragment by fragment, put together by a backend's kernel, and answered directly."""

import json
import os
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
sys.path.insert(0, str(TESTS.parents[1] / "tools"))

from daemon import wait_for  # noqa: E402

from labkit import Lab, services  # noqa: E402
from labkit.lab import DEFAULT_BUILD_DIR, find_program  # noqa: E402

PROGRAMS = ("holdfastd", "holdfast", "holdfast-agent")
ECHO = TESTS / "udp_echo.py"
# By the tunnel: over IPv4, over IPv6.
PORTS = {"web": "7000", "web6": "7006"}

# What lies behind the IP header in a packet of 1500 bytes: 1480 of IPv4, 1452 of IPv6, whose fragment
# header takes 8 (and all but the last are cut to multiples of 8). UDP's header takes 8 more.
BOUNDARIES = {
    "IPv4": (1472, 1480, 2952, 4432, 8192),
    "IPv6": (1452, 1440, 2888, 4336, 8192),
}


def sizes(boundaries: tuple[int, ...]) -> list[str]:
    """Around each boundary, where the answer's name before it may make the difference, too."""
    around = {edge + more for edge in boundaries for more in (-9, -8, -4, -3, -2, -1, 0, 1, 2, 8, 9)}
    return [str(size) for size in sorted({0, 1, *around})]


@unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
@unittest.skipUnless(
    all(find_program(DEFAULT_BUILD_DIR, name) for name in PROGRAMS),
    f"needs the programs in {DEFAULT_BUILD_DIR.name}/",
)
class UdpSizes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Two workers: whole packets of a flow and its fragments come by different queues.
        cls.lab = Lab(
            f"t{os.getpid()}-udp",
            static_routes=True,
            queues=2,
            backends=3,
            running_lbs=0,
            purpose="tests/e2e/test_udp_sizes.py",
        )
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()
        cls.topology = cls.lab.topology
        cls.vips = {"IPv4": cls.topology.vip4, "IPv6": cls.topology.vip6}
        cls.start_balancer()
        for backend in cls.topology.backends:
            cls.narrow_the_way_back(backend)
            cls.start_echo(backend.name)

    @classmethod
    def start_balancer(cls):
        lb = cls.topology.lbs[0]
        config = services.write_holdfast_config(cls.lab, lb)
        vips = json.dumps(list(cls.topology.vips))
        config.write_text(
            config.read_text()
            + "".join(
                f'[[service]]\nname = "udp-{pool}"\nvips = {vips}\nprotocol = "udp"\n'
                f'ports = "{port}"\npool = "{pool}"\n'
                for pool, port in PORTS.items()
            )
        )
        cls.lab.start_holdfastd(lb.name, config)
        cls.lab.wait_eligible(lb.name)

    @classmethod
    def narrow_the_way_back(cls, backend):
        """A backend's link carries more than the client's, and its first large answer would be lost
        to path MTU discovery."""
        client = cls.topology.client
        for to, gateway in ((client.v4, backend.router4), (client.v6, backend.router6)):
            argv = ["ip", "route", "add", to, "via", gateway, "mtu", str(client.mtu)]
            cls.lab.exec(backend.name, argv)

    @classmethod
    def start_echo(cls, backend: str):
        argv = [sys.executable, str(ECHO), "serve", backend, *PORTS.values(), "--"]
        service = cls.lab.start_service("echo", backend, [*argv, *cls.topology.vips])
        log = cls.lab.path(backend, "echo.log")
        wait_for(lambda: log.read_text().startswith("ready"), f"{service} to listen")

    def ask(self, how: str, family: str, *words: str) -> dict:
        client = self.topology.client
        source = client.v4 if family == "IPv4" else client.v6
        argv = [sys.executable, str(ECHO), how, source, self.vips[family], *words]
        return json.loads(self.lab.exec("client", argv).stdout)

    def assert_intact(self, answer: dict) -> None:
        self.assertEqual((answer["lost"], answer["wrong"]), ([], []))
        self.assertEqual(len(answer["backends"]), 1, answer)

    def packets(self, name: str) -> int:
        return sum(worker["packets"][name] for worker in self.lab.stats()["workers"])

    def dropped(self) -> dict[str, int]:
        shown = json.loads(self.lab.holdfast(["drops", "--json"]).stdout)
        return {row["reason"]: row["total"] for row in shown["reasons"] if row["total"]}

    def test_datagrams_of_every_size_come_back_intact(self):
        for family, boundaries in BOUNDARIES.items():
            for pool, port in PORTS.items():
                with self.subTest(family=family, pool=pool):
                    answer = self.ask("ask", family, port, *sizes(boundaries))
                    self.assert_intact(answer)
        self.assertEqual(self.packets("held_now"), 0)

    def test_fragments_in_any_order_reach_the_backend_of_the_flow(self):
        for family in self.vips:
            for order in ("3,2,1,0", "2,0,3,1", "1,3,=,2,0", "3,=,0,=,2,1"):
                with self.subTest(family=family, order=order):
                    self.assert_intact(self.ask("ask_in_pieces", family, PORTS["web"], order))
        self.assertEqual(self.packets("held_now"), 0)

    def test_a_datagram_with_a_fragment_twice_arrives_and_one_without_its_first_is_dropped(self):
        for family, reasons in (("IPv4", "ipv4"), ("IPv6", "ipv6")):
            with self.subTest(family=family):
                before = self.dropped()
                self.assert_intact(self.ask("ask_in_pieces", family, PORTS["web6"], "2,2,0,1,1,3"))
                lost = self.ask("ask_in_pieces", family, PORTS["web"], "1,2,3")
                self.assertEqual(len(lost["lost"]), 1)
                after = self.dropped()
                more = {reason: after[reason] - before.get(reason, 0) for reason in after}
                self.assertEqual(
                    {reason: count for reason, count in more.items() if count},
                    {f"{reasons}_fragment_overlap": 2, f"{reasons}_fragment_no_first": 3},
                )
        self.assertEqual(self.packets("held_now"), 0)


if __name__ == "__main__":
    unittest.main()
