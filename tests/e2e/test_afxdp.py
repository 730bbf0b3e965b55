# SPDX-License-Identifier: Apache-2.0
"""holdfastd on a kernel interface: steering, queues, restarts, sleep. (test_start_faults.py has what it
refuses.) Needs root: makes network namespaces."""

import os
import socket
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import Daemon, wait_for  # noqa: E402
from on_a_wire import VIP4, VIP6, OnAWire, needs_root, syn  # noqa: E402
from wire import Wire, inside  # noqa: E402

IDLE_LIMIT_PERCENT = 5.0


def setUpModule():
    needs_root()


class Steering(OnAWire):
    # What the kernel answers if it gets it: that is how we know where a packet went. The sources
    # are the peer's own addresses, so that the answers find their way.
    to_vips = {
        "echo": f.echo("192.0.2.2", VIP4),
        "echo six": f.echo("2001:db8:1::2", VIP6),
        "tcp, unknown port": f.tcp(("192.0.2.2", 9), (VIP4, 81), f.SYN),
        "tcp six, unknown port": f.tcp(("2001:db8:1::2", 9), (VIP6, 81), f.SYN),
        "udp": f.udp(("192.0.2.2", 9), (VIP4, 5), b"x"),
        "udp six": f.udp(("2001:db8:1::2", 9), (VIP6, 5), b"x"),
        "unknown protocol": f.ip("192.0.2.2", VIP4, 200, bytes(16)),
        "unknown protocol six": f.ip("2001:db8:1::2", VIP6, 200, bytes(16)),
    }

    def to_kernel_works(self):
        wire = self.wire
        for address in ("192.0.2.1", "2001:db8:1::1"):
            with self.subTest(ping=address):
                shown = wire.exec(wire.peer, "ping", "-c", "2", "-i", "0.1", "-W", "2", address)
                self.assertEqual(shown.returncode, 0, shown.stdout)
            with self.subTest(tcp=address):
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                with inside(wire.lb):
                    server = socket.create_server((address, 8080), family=family)
                with server:
                    with inside(wire.peer):
                        client = socket.create_connection((address, 8080), timeout=3)
                    with client, server.accept()[0] as accepted:
                        client.sendall(b"question" * 1000)
                        client.shutdown(socket.SHUT_WR)
                        got = b"".join(iter(lambda: accepted.recv(4096), b""))
                        self.assertEqual(got, b"question" * 1000)

    def test_vips_go_to_the_workers_and_all_else_to_the_kernel(self):
        all_frames = [f.frame_of(packet) for packet in self.to_vips.values()]
        # Without the daemon the kernel answers each of them.
        self.assertEqual(len(self.answers(*all_frames, seconds=3)), len(all_frames))

        # Neighbours are learned anew, so ARP and ND pass through the steering program as well.
        silent = self.config().replace('[[vip]]\n', '[[vip]]\necho = false\n')
        daemon = self.daemon(silent).start()
        for namespace, name in ((self.wire.lb, "eth0"), (self.wire.peer, "p0")):
            self.wire.ip(namespace, "neigh", "flush", "dev", name)
        self.to_kernel_works()
        for name, packet in self.to_vips.items():
            with self.subTest(name):
                self.assertEqual(self.answers(f.frame_of(packet), seconds=0.2), [])
        packets = [syn(n) for n in range(50)] + [syn(n, six=True) for n in range(50)]
        self.assertEqual(self.tunnelled(packets), packets)

        self.assertEqual(daemon.stop(), 0, daemon.stderr)
        self.assertEqual(self.wire.xdp_id(), 0)
        self.assertEqual(len(self.answers(*all_frames, seconds=3)), len(all_frames))

    def test_fragments_and_tagged_packets_to_a_vip_go_to_the_workers(self):
        # Both halves of a datagram: the kernel would put them together and answer.
        data = f.udp(("192.0.2.2", 9), (VIP4, 5), bytes(1024))[20:]
        halves = [
            f.ip("192.0.2.2", VIP4, f.UDP, data[:512], identification=7, fragment=0x2000),
            f.ip("192.0.2.2", VIP4, f.UDP, data[512:], identification=7, fragment=512 // 8),
        ]
        frames = [f.frame_of(half) for half in halves]
        self.assertEqual(len(self.answers(*frames, seconds=2)), 1)
        daemon = self.daemon().start()
        self.assertEqual(self.answers(*frames), [])
        for vlans in ((5,), (5, 6)):
            packet = syn(len(vlans))
            self.wire.send(f.frame_of(packet, vlans))
            self.assertEqual(self.tunnels(1), [packet])
        self.wire.send(f.frame_of(syn(3), (5, 6, 7)))
        self.assertEqual(self.tunnels(1, seconds=0.3), [])
        self.assertEqual(daemon.stop(), 0)

    def test_the_largest_mtu_leaves_room_for_a_tag(self):
        wire = Wire(mtu=3420)
        self.addCleanup(wire.close)
        config = self.config().replace("mtu = 1600", "mtu = 3420")
        config = config.replace(self.wire.mac_peer.hex(":"), wire.mac_peer.hex(":"))
        daemon = Daemon(config, prefix=["ip", "netns", "exec", wire.lb])
        self.addCleanup(daemon.close)
        daemon.start()
        source = ("198.51.100.7", 10000)
        fits = f.tcp(source, (VIP4, 80), f.ACK, bytes(3420 - 20 - 40))
        too_long = f.tcp(source, (VIP4, 80), f.ACK, bytes(3420 - 40))
        wire.send(f.frame_of(fits), f.frame_of(too_long), f.frame_of(too_long, (5,)))
        daemon.stats_after(3)
        # Each came whole, in one buffer: what is wrong with the last two is only their length, and
        # that is what they are told.
        self.assertEqual(daemon.ask("drops")["reasons"], [])
        self.assertEqual(daemon.ask("stats")["workers"][0]["packets"]["answered"], 2)
        (sent,) = wire.receive(lambda frame: frame[30:34] == socket.inet_aton("192.0.2.21"), 1)
        self.assertEqual(f.take_apart(sent).inner, fits)
        self.assertEqual(daemon.stop(), 0)

    def test_large_packets_pass(self):
        daemon = self.daemon().start()
        packets = [
            f.tcp(("198.51.100.7", 10000 + n), (VIP4, 80), f.ACK, bytes(1500 - 40)) for n in range(300)
        ]
        self.assertEqual(self.tunnelled(packets), packets)
        self.assertEqual(daemon.stop(), 0)


class Restarts(OnAWire):
    def test_a_killed_daemon_is_taken_over_at_once(self):
        programs = set()
        for round_number in range(5):
            with self.subTest(round_number):
                daemon = self.daemon().start()
                packets = [syn(n) for n in range(20)]
                self.assertEqual(self.tunnelled(packets), packets)
                programs.add(self.wire.xdp_id())
                daemon.kill()
                self.assertNotEqual(self.wire.xdp_id(), 0, "the program stays")
        self.assertEqual(len(programs), 5, "each start brings its own program")
        # Nobody listens now: the kernel must not answer for a VIP that it holds by chance.
        self.assertEqual(self.answers(f.frame_of(f.echo("192.0.2.2", VIP4)), seconds=0.3), [])

        daemon = self.daemon().start()
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(self.wire.xdp_id(), 0)


class Interfaces(OnAWire):
    def test_forwarding_goes_on_after_the_interface_was_down(self):
        daemon = self.daemon().start()
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "down")
        time.sleep(0.2)
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "up")
        packets = [syn(n) for n in range(20)]
        wait_for(lambda: sorted(self.tunnelled(packets, 0.5)) == sorted(packets), "forwarding")
        self.assertEqual(daemon.stop(), 0)

    def test_a_vanished_interface_leaves_a_quiet_daemon_that_stops(self):
        wire = Wire()  # not the class's own: it is destroyed
        self.addCleanup(wire.close)
        daemon = Daemon(self.config(), prefix=["ip", "netns", "exec", wire.lb])
        self.addCleanup(daemon.close)
        daemon.start()
        wire.ip(wire.lb, "link", "del", "eth0")
        time.sleep(0.5)
        before, begin = daemon.cpu_seconds(), time.monotonic()
        time.sleep(2)
        percent = 100 * (daemon.cpu_seconds() - before) / (time.monotonic() - begin)
        self.assertLess(percent, IDLE_LIMIT_PERCENT)
        self.assertEqual(daemon.ask("status")["workers_alive"], 1)
        self.assertEqual(daemon.stop(), 0, daemon.stderr)


class Sleep(OnAWire):
    def test_an_idle_daemon_sleeps_and_wakes_for_a_packet(self):
        daemon = self.daemon().start()
        time.sleep(1)
        before, begin = daemon.cpu_seconds(), time.monotonic()
        time.sleep(4)
        percent = 100 * (daemon.cpu_seconds() - before) / (time.monotonic() - begin)
        print(f"idle on AF_XDP: {percent:.2f} % of a CPU", file=sys.stderr)
        self.assertLess(percent, IDLE_LIMIT_PERCENT)
        for number in range(5):
            time.sleep(0.3)
            sent = time.monotonic()
            self.assertEqual(self.tunnelled([syn(number)]), [syn(number)])
            self.assertLess(time.monotonic() - sent, 0.04, "woke by the packet, not by a timer")
        self.assertEqual(daemon.stop(), 0)

    def test_busy_poll_never_sleeps(self):
        daemon = self.daemon(self.config(busy=True)).start()
        before, begin = daemon.cpu_seconds(), time.monotonic()
        time.sleep(2)
        percent = 100 * (daemon.cpu_seconds() - before) / (time.monotonic() - begin)
        self.assertGreater(percent, 25, "shares a CPU with others here, but takes what it gets")
        self.assertEqual(daemon.stop(), 0)


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two CPUs")
class SeveralQueues(OnAWire):
    queues = 2
    workers = 2

    def test_each_worker_serves_its_queue(self):
        daemon = self.daemon().start()
        before = self.wire.queue_counts()
        packets = [syn(n) for n in range(400)]
        self.assertEqual(sorted(self.tunnelled(packets)), sorted(packets))
        served = [now - then for now, then in zip(self.wire.queue_counts(), before, strict=True)]
        self.assertEqual(len(served), 2)
        self.assertGreater(min(served), 50, served)
        self.assertEqual(daemon.stop(), 0)

    def test_one_worker_can_serve_all_queues(self):
        daemon = self.daemon(self.config(workers=1)).start()
        packets = [syn(n) for n in range(400)]
        self.assertEqual(sorted(self.tunnelled(packets)), sorted(packets))
        daemon.kill()
        daemon = self.daemon().start()
        self.assertEqual(sorted(self.tunnelled(packets)), sorted(packets))
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
