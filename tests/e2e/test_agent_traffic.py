# SPDX-License-Identifier: Apache-2.0
"""holdfast-agent on a backend with real sockets: what comes out of the tunnel, and what does not.

Needs root. One test: python3 tests/e2e/test_agent_traffic.py NativeTest.test_tcp_in_all_four_mixes
"""

import collections
import contextlib
import select
import socket
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from agent_lab import BACKEND, CLIENT, LB, VIP, LabTest, inside, run  # noqa: E402
from agent_packets import (  # noqa: E402
    CE, ECT_0, ICMP, ICMPV6, ethernet, family, packed, tunnel, udp_packet)

MIXES = [(inner, outer) for outer in (4, 6) for inner in (4, 6)]


class TunnelSender:
    """A load balancer of one backend: a thread that tunnels what the client sends to a VIP."""

    def __init__(self, lab, outer):
        self.outer = outer
        self.from_client = lab.raw(lab.lb, "c")
        self.to_backend = lab.raw(lab.lb, "f")
        self.sent = collections.Counter()  # by (inner, outer)
        self.stop_reader, self.stop_writer = socket.socketpair()
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop_writer.send(b"x")
        self.thread.join()
        for one in (self.from_client, self.to_backend, self.stop_reader, self.stop_writer):
            one.close()

    def _work(self):
        while True:
            ready, _, _ = select.select([self.from_client, self.stop_reader], [], [])
            if self.stop_reader in ready:
                return
            frame, (_, _, kind, *_) = self.from_client.recvfrom(65536)
            packet = frame[14:]
            version = packet[0] >> 4
            if kind == socket.PACKET_OUTGOING or version not in (4, 6):
                continue
            destination = packet[16:20] if version == 4 else packet[24:40]
            if destination == packed(VIP[version]):
                self.sent[version, self.outer] += 1
                self.to_backend.send(ethernet(tunnel(LB[self.outer], BACKEND[self.outer], packet)))


class TrafficTests:
    """The same for both modes."""

    def fabric(self):
        """A socket on the load balancer's side of the link to the backend."""
        return self.enterContext(self.lab.raw(self.lab.lb, "f"))

    def datagram(self, inner, outer, port, payload, **fields):
        packet = udp_packet(CLIENT[inner], VIP[inner], 40000, port, payload, **fields)
        return ethernet(tunnel(LB[outer], BACKEND[outer], packet))

    def attach(self, *more):
        self.assert_done(self.lab.attach("--mode", self.mode, *more), says=f"in {self.mode} mode")

    def test_tcp_in_all_four_mixes(self):
        self.attach()
        self.assertEqual(self.lab.status()["mode"], self.mode)
        sent = collections.Counter()
        for inner, outer in MIXES:
            with TunnelSender(self.lab, outer) as tunnels:
                with self.lab.listener(socket.SOCK_STREAM, inner) as listener:
                    self.echo_over_tcp(inner, listener, 300_000)
            # The thread has ended: nothing is sent any more. Frames of both families may have been,
            # for the connection before is closed at its leisure.
            self.assertGreater(tunnels.sent[inner, outer], 200)
            sent += tunnels.sent
            for (one, other), packets in sent.items():
                counter = f"decapsulated_{one}in{other}"
                self.assertEqual(self.lab.wait_for(counter, packets), packets, counter)
        dropped = ("inner_malformed", "not_vip", "ecn_conflict", "no_headroom")
        self.assertEqual([self.lab.counters()[name] for name in dropped], [0] * 4)

    def echo_over_tcp(self, version, listener, size):
        """A client's whole connection through the VIP; the answers take the direct way."""
        sent = bytes(number % 251 for number in range(size))

        def serve():
            with contextlib.closing(listener.accept()[0]) as connection:
                connection.settimeout(10)
                while data := connection.recv(65536):
                    connection.sendall(data)

        server = threading.Thread(target=serve)
        server.start()
        with inside(self.lab.client):
            client = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6,
                                   socket.SOCK_STREAM)
        with client:
            # The tunnel's header must fit, as the MSS of docs/agent.md makes it.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1380)
            client.settimeout(10)
            client.connect(listener.getsockname()[:2])
            sender = threading.Thread(
                target=lambda: (client.sendall(sent), client.shutdown(socket.SHUT_WR)))
            sender.start()
            received = b""
            while data := client.recv(65536):
                received += data
            sender.join()
        server.join()
        self.assertEqual(received, sent)

    def test_udp_in_all_four_mixes_and_each_counted_once(self):
        self.attach()
        fabric = self.fabric()
        for inner, outer in MIXES:
            with self.subTest(inner=inner, outer=outer):
                with self.lab.listener(socket.SOCK_DGRAM, inner) as listener:
                    port = listener.getsockname()[1]
                    for number in range(20):
                        fabric.send(self.datagram(inner, outer, port, b"%d" % number))
                    for number in range(20):
                        payload, source = listener.recvfrom(2048)
                        self.assertEqual(payload, b"%d" % number)
                        self.assertEqual(source[:2], (CLIENT[inner], 40000))
                self.assertEqual(self.lab.counters()[f"decapsulated_{inner}in{outer}"], 20)

    def test_datagrams_in_all_four_mixes_by_gre_and_gue(self):
        self.attach()
        fabric = self.fabric()
        for inner, outer in MIXES:
            with self.lab.listener(socket.SOCK_DGRAM, inner) as listener:
                port = listener.getsockname()[1]
                for kind in ("gre", "gue", "gue0"):
                    packet = udp_packet(CLIENT[inner], VIP[inner], 40000, port, kind.encode())
                    fabric.send(ethernet(tunnel(LB[outer], BACKEND[outer], packet, kind)))
                    self.assertEqual(listener.recv(100), kind.encode())
            self.assertEqual(self.lab.counters()[f"decapsulated_{inner}in{outer}"], 3)

    def test_a_congestion_mark_of_the_fabric_reaches_the_socket(self):
        self.attach()
        fabric = self.fabric()
        for inner, outer in MIXES:
            with self.lab.listener(socket.SOCK_DGRAM, inner) as listener:
                if inner == 4:
                    listener.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
                else:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
                port = listener.getsockname()[1]
                packet = udp_packet(CLIENT[inner], VIP[inner], 40000, port, b"x", ecn=ECT_0)
                fabric.send(ethernet(tunnel(LB[outer], BACKEND[outer], packet, ecn=CE)))
                _, ancillary, _, _ = listener.recvmsg(100, 100)
                self.assertEqual(ancillary[0][2][0] & 3, CE)

    def test_a_stranger_s_tunnel_packet_is_the_kernel_s_affair(self):
        """The kernel has no tunnel device here: it says so to the sender."""
        stranger = {4: "192.0.2.66", 6: "2001:db8:f::66"}
        self.attach("--lb", "192.0.2.128/25")
        for version in (4, 6):
            run("ip", "-n", self.lab.lb, "address", "add", f"{stranger[version]}/32" if version == 4
                else f"{stranger[version]}/128", "dev", "f", *(["nodad"] if version == 6 else []))
        fabric = self.fabric()
        for outer in (4, 6):
            packet = udp_packet(CLIENT[4], VIP[4], 1, 9, b"stranger")
            fabric.send(ethernet(tunnel(stranger[outer], BACKEND[outer], packet)))
            self.assert_refused_by_kernel(fabric, stranger[outer])
        self.assertEqual(self.lab.counters()["unknown_source"], 2)

    def assert_refused_by_kernel(self, fabric, sender):
        """Waits for an ICMP error (unreachable, or ICMPv6 unreachable or parameter problem)."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            packet = fabric.recv(2048)[14:]
            if family(sender) == 4 and packet[0] >> 4 == 4 and packet[9] == ICMP:
                if packet[16:20] == packed(sender) and packet[20] == 3:
                    return
            if family(sender) == 6 and packet[0] >> 4 == 6 and packet[6] == ICMPV6:
                if packet[24:40] == packed(sender) and packet[40] in (1, 4):
                    return
        self.fail("the kernel did not answer")

    def test_replacing_under_traffic_loses_nothing_and_keeps_the_counters(self):
        self.attach()
        fabric = self.fabric()
        with self.lab.listener(socket.SOCK_DGRAM, 4) as listener:
            listener.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
            port = listener.getsockname()[1]
            stop = threading.Event()
            sent = 0

            def send():
                nonlocal sent
                while not stop.is_set():
                    fabric.send(self.datagram(4, 6, port, b"%d" % sent))
                    sent += 1
                    time.sleep(0.0001)

            sender = threading.Thread(target=send)
            sender.start()
            programs = set()
            while len(programs) < 12 or sent < 1000:
                vips = [VIP[4]] if len(programs) % 2 else VIP.values()
                self.assert_done(self.lab.attach(vips=vips), says="counters kept")
                status = self.lab.status()
                programs.add(status["program_id"])
                self.assertEqual(status["vips"], list(vips))
            stop.set()
            sender.join()
            listener.settimeout(1)
            received = [int(listener.recv(100)) for _ in range(sent)]
        self.assertEqual(received, list(range(sent)))
        counters = self.lab.counters()
        self.assertEqual(counters["decapsulated_4in6"], sent)

    def test_detach_gives_the_tunnel_packets_back_to_the_kernel(self):
        self.attach()
        self.assertIn("xdp", run("ip", "-n", self.lab.backend, "link", "show", "f"))
        self.assert_done(self.lab.agent("detach", "f"), says="f: detached")
        self.assertNotIn("xdp", run("ip", "-n", self.lab.backend, "link", "show", "f"))
        fabric = self.fabric()
        fabric.send(self.datagram(4, 4, 9, b"x"))
        self.assert_refused_by_kernel(fabric, LB[4])
        self.assert_done(self.lab.agent("detach", "f"), 1, "nothing is attached to f")
        self.assertEqual([entry.name for entry in self.lab.pins.iterdir() if entry.is_dir()], [])

    def test_a_jumbo_frame_comes_through(self):
        for namespace in (self.lab.lb, self.lab.backend):
            run("ip", "-n", namespace, "link", "set", "f", "mtu", "9000")
        self.attach()
        fabric = self.fabric()
        payload = bytes(8900)
        for inner, outer in MIXES:
            with self.lab.listener(socket.SOCK_DGRAM, inner) as listener:
                fabric.send(self.datagram(inner, outer, listener.getsockname()[1], payload))
                self.assertEqual(listener.recv(9000), payload)


class NativeTest(TrafficTests, LabTest):
    mode = "native"


class GenericTest(TrafficTests, LabTest):
    mode = "generic"


if __name__ == "__main__":
    unittest.main()
