# SPDX-License-Identifier: Apache-2.0
"""holdfastd on a kernel interface: steering, queues, restarts, sleep, and faults at the start.
Needs root: makes network namespaces."""

import os
import socket
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import NOBODY, Daemon, wait_for  # noqa: E402
from wire import ForeignProgram, Wire, inside  # noqa: E402

VIP4, VIP6 = "203.0.113.10", "2001:db8:203::10"
IDLE_LIMIT_PERCENT = 5.0

CONFIG = """
[dataplane]
ports = [{ name = "uplink", interface = "INTERFACE", queues = QUEUES }]
workers = WORKERS
busy_poll = BUSY
flow_capacity = 1000000
hash_seed_file = "seed"
tunnel_source_v4 = "192.0.2.1"
tunnel_source_v6 = "2001:db8:1::1"
[control]
socket = "{folder}/holdfast.sock"
[[vip]]
address = "203.0.113.10"
[[vip]]
address = "2001:db8:203::10"
[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "tcp"
ports = "80"
pool = "web"
[[pool]]
name = "web"
table_size = 251
backends = [{ address = "192.0.2.21", next_hop = { port = "uplink", mac = "PEER", mtu = 1600 } }]
"""


def setUpModule():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root: makes network namespaces")


class OnAWire(unittest.TestCase):
    queues = 1
    workers = 1

    @classmethod
    def setUpClass(cls):
        cls.wire = Wire(queues=cls.queues, vips=(VIP4, VIP6))
        cls.addClassCleanup(cls.wire.close)

    def config(self, interface="eth0", queues=None, workers=None, busy=False) -> str:
        text = CONFIG.replace("INTERFACE", interface).replace("PEER", self.wire.mac_peer.hex(":"))
        text = text.replace("QUEUES", str(queues or self.queues))
        text = text.replace("WORKERS", str(workers or self.workers))
        return text.replace("BUSY", "true" if busy else "false")

    def daemon(self, text: str | None = None, **options) -> Daemon:
        prefix = ["ip", "netns", "exec", self.wire.lb, *options.pop("prefix", [])]
        daemon = Daemon(text or self.config(), prefix=prefix, **options)
        self.addCleanup(daemon.close)
        self.wire.drain()
        return daemon

    def tunnelled(self, packets: list[bytes], seconds: float = 5.0) -> list[bytes]:
        """Sends `packets`; the insides of the tunnelled ones that come back."""
        self.wire.send(*(f.frame_of(packet) for packet in packets))
        return self.tunnels(len(packets), seconds)

    def tunnels(self, count: int, seconds: float = 5.0) -> list[bytes]:
        def to_backend(frame: bytes) -> bool:
            return frame[12:14] == b"\x08\x00" and frame[30:34] == socket.inet_aton("192.0.2.21")

        return [f.take_apart(frame).inner for frame in self.wire.receive(to_backend, count, seconds)]

    def answers(self, *frames: bytes, seconds: float = 0.5) -> list[bytes]:
        """What lb's kernel says to `frames`: everything from a VIP that is no tunnel."""
        vips = (socket.inet_aton(VIP4), socket.inet_pton(socket.AF_INET6, VIP6))

        def from_vip(frame: bytes) -> bool:
            return frame[26:30] == vips[0] or frame[22:38] == vips[1]

        self.wire.drain()
        self.wire.send(*frames)
        return self.wire.receive(from_vip, len(frames), seconds)

    def assert_refused(self, daemon: Daemon, *words: str, status: int = 1) -> None:
        got, said = daemon.run_to_end()
        self.assertEqual(got, status, said)
        self.assertEqual(said.count("\n"), 1, said)
        for word in words:
            self.assertIn(word, said)


def syn(number: int, port: int = 80, six: bool = False) -> bytes:
    if six:
        return f.tcp((f"2001:db8:99::{number + 1:x}", 9000), (VIP6, port), f.SYN)
    return f.tcp(("198.51.100.7", 10000 + number), (VIP4, port), f.SYN)


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
        daemon = self.daemon().start()
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
        # Each came whole, in one buffer: what is wrong with the last two is only their length.
        (row,) = daemon.ask("drops")["reasons"]
        self.assertEqual((row["reason"], row["total"]), ("too_big", 2))
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

    def test_a_second_daemon_is_refused_and_the_first_goes_on(self):
        first = self.daemon().start()
        program = self.wire.xdp_id()
        self.assert_refused(self.daemon(), "port uplink", "another holdfastd", "eth0")
        self.assertEqual(self.wire.xdp_id(), program)
        packets = [syn(n) for n in range(20)]
        self.assertEqual(self.tunnelled(packets), packets)
        self.assertEqual(first.stop(), 0)

    def test_somebody_elses_program_is_left_alone(self):
        # The second name is that of libxdp's default program, which other AF_XDP programs leave.
        for name in ("firewall", "xsk_def_prog"):
            with self.subTest(name):
                foreign = ForeignProgram(self.wire.lb, "eth0", name)
                program = self.wire.xdp_id()
                self.assert_refused(
                    self.daemon(), "port uplink", name, "`ip link set dev eth0 xdp off`"
                )
                self.assertEqual(self.wire.xdp_id(), program)
                self.wire.ip(self.wire.lb, "link", "set", "dev", "eth0", "xdp", "off")
                foreign.close()


class Faults(OnAWire):
    def test_a_wrong_interface(self):
        self.assert_refused(self.daemon(self.config("eth9")), "port uplink", "eth9", "`ip link`")

    def test_an_interface_that_is_down(self):
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "down")
        self.addCleanup(self.wire.ip, self.wire.lb, "link", "set", "eth0", "up")
        self.assert_refused(self.daemon(), "port uplink", "`ip link set eth0 up`")

    def test_an_mtu_that_af_xdp_cannot_take(self):
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "mtu", "9000")
        self.addCleanup(self.wire.ip, self.wire.lb, "link", "set", "eth0", "mtu", "1600")
        self.assert_refused(self.daemon(), "port uplink", "MTU 9000", "`ip link set eth0 mtu")

    def test_queues_that_do_not_match(self):
        self.assert_refused(self.daemon(self.config(queues=2)), "port uplink", "queues = 1")

    def test_missing_privileges(self):
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        daemon = self.daemon(prefix=as_nobody)
        for path in (daemon.folder, *daemon.folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        self.assert_refused(daemon, "CAP_NET_ADMIN", "root", status=4)

    def test_the_privileges_that_the_sentence_names_are_enough(self):
        named = "+net_admin,+net_raw,+sys_admin,+ipc_lock"
        only_those = ["setpriv", f"--bounding-set=-all,{named}", f"--inh-caps=-all,{named}"]
        daemon = self.daemon(prefix=only_those).start()
        packets = [syn(n) for n in range(20)]
        self.assertEqual(self.tunnelled(packets), packets)
        self.assertEqual(daemon.stop(), 0)


    def test_too_little_memory_to_lock(self):
        named = "+net_admin,+net_raw,+sys_admin"
        few = ["setpriv", f"--bounding-set=-all,{named}", f"--inh-caps=-all,{named}"]
        daemon = self.daemon(prefix=["prlimit", "--memlock=8388608", *few])
        self.assert_refused(daemon, "8 MiB", "LimitMEMLOCK", status=4)


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

    def test_a_queue_without_a_worker_is_refused(self):
        self.assert_refused(
            self.daemon(self.config(queues=1, workers=1)), "2 receive queues", "queues = 2"
        )


if __name__ == "__main__":
    unittest.main()
