# SPDX-License-Identifier: Apache-2.0
"""Start-up faults of the machine (test_start_files.py has those of files): each ends holdfastd with one
sentence that says what to do, and doing that makes it start. What may mend itself (routes, neighbours,
gobgpd) is a warning in the log and in `holdfast status` instead. Needs root: makes network namespaces."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from daemon import CLI, NOBODY, Daemon, wait_for  # noqa: E402
from on_a_wire import OnAWire, WithDaemon, advice_in, needs_root, syn  # noqa: E402
from wire import ForeignProgram, ForeignSocket, run  # noqa: E402

# A configuration that needs neither interface nor privileges.
NULL = """
[dataplane]
ports = [{ name = "nowhere", vdev = "net_null0" }]
flow_capacity = 1024
hash_seed_file = "seed"
[control]
socket = "{folder}/holdfast.sock"
"""
NIC = NULL.replace('vdev = "net_null0"', 'pci = "ADDRESS"')
PCI_DEVICES, NODES = Path("/sys/bus/pci/devices"), Path("/sys/devices/system/node")


def setUpModule():
    needs_root()


class HugePages(WithDaemon):
    """A NIC on node 1 of two, in a machine that is made of files: each daemon has a mount namespace
    in which they lie over sysfs."""

    address = "0000:3b:00.0"

    def start_with_files(self) -> Daemon:
        daemon = self.run_daemon(NIC.replace("ADDRESS", self.address))
        self.pci, self.nodes = daemon.folder / "pci", daemon.folder / "node"
        device = self.pci / self.address
        device.mkdir(parents=True)
        (device / "class").write_text("0x020000\n")
        (device / "numa_node").write_text("1\n")
        (device / "driver").symlink_to("../../../bus/pci/drivers/vfio-pci")
        for node, free in ((0, 5000), (1, 3)):
            self.pages(node).mkdir(parents=True)
            self.set_pages(node, free)
        script = f'mount --bind {self.pci} {PCI_DEVICES} && mount --bind {self.nodes} {NODES} && exec "$@"'
        daemon.prefix = ["unshare", "-m", "sh", "-c", script, "sh"]
        return daemon

    def pages(self, node: int) -> Path:
        return self.nodes / f"node{node}" / "hugepages" / "hugepages-2048kB"

    def set_pages(self, node: int, number: int) -> None:
        for name in ("nr_hugepages", "free_hugepages"):
            (self.pages(node) / name).write_text(f"{number}\n")

    def test_too_few_huge_pages_on_the_node_of_the_nic(self):
        if not PCI_DEVICES.exists() or not NODES.exists():
            self.skipTest("this machine has no folders to lay files over")
        daemon = self.start_with_files()
        said = self.assert_refused(
            daemon, "port nowhere", "huge pages of 2 MiB on NUMA node 1, where 3 are free: `echo "
        )
        needed = int(re.search(r"need (\d+) huge pages", said)[1])
        self.assertGreater(needed, 3)
        [(echo, number, to, path)] = advice_in(said)
        self.assertEqual((echo, int(number), to), ("echo", needed, ">"))
        self.assertEqual(path, f"{NODES}/node1/hugepages/hugepages-2048kB/nr_hugepages")
        # One less than that would not do; with that it goes on, up to the NIC that is none.
        self.set_pages(1, needed - 1)
        self.assert_refused(daemon, f"where {needed - 1} are free")
        self.set_pages(1, needed)
        self.assertNotIn("where", self.assert_refused(daemon, "DPDK"))


class PciDevices(WithDaemon):
    def test_a_pci_device_that_is_not_there(self):
        daemon = self.run_daemon(NIC.replace("ADDRESS", "0000:fe:1f.7"))
        said = self.assert_refused(daemon, "port nowhere", "no PCI device 0000:fe:1f.7")
        self.assertEqual(advice_in(said), [["ls", str(PCI_DEVICES)]])

    def test_the_machines_own_devices_are_not_touched(self):
        for_dpdk = ("vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core", "mlx5_core")
        own = [path for path in PCI_DEVICES.glob("*")
               if Path(os.path.realpath(path / "driver")).name not in for_dpdk]
        if not own:
            self.skipTest("this machine has no PCI device")
        # A network card of this machine if there is one: that is the one to worry about.
        device = max(own, key=lambda path: (path / "class").read_text().startswith("0x02"))
        driver = os.path.realpath(device / "driver")
        daemon = self.run_daemon(NIC.replace("ADDRESS", device.name))
        self.assert_refused(daemon, "port nowhere", f"PCI device {device.name} ")
        self.assertEqual(os.path.realpath(device / "driver"), driver)


class Queues(OnAWire):
    queues = 2

    def test_more_channels_than_queues(self):
        said = self.assert_refused(self.daemon(self.config(queues=1)), "port uplink", "2 receive queues",
                                   "set queues = 2 ")
        self.assertEqual(advice_in(said), [["ethtool", "-L", "eth0", "combined", "1"]])
        self.daemon(self.config(queues=2)).start()

    def test_more_queues_than_channels(self):
        self.assert_refused(self.daemon(self.config(queues=3)), "port uplink", "set queues = 2 ")


class Interfaces(OnAWire):
    def test_a_wrong_interface(self):
        self.assert_refused(self.daemon(self.config("eth9")), "port uplink", "eth9", "`ip link`")

    def test_an_interface_that_is_down(self):
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "down")
        said = self.assert_refused(self.daemon(), "port uplink", "is down")
        self.do(said)
        self.assert_forwards(self.daemon())

    def test_an_mtu_that_af_xdp_cannot_take(self):
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "mtu", "9000")
        self.addCleanup(self.wire.ip, self.wire.lb, "link", "set", "eth0", "mtu", "1600")
        said = self.assert_refused(self.daemon(), "port uplink", "MTU 9000")
        self.do(said)
        self.assert_forwards(self.daemon())

    def do(self, said: str) -> None:
        """What a sentence says, in lb."""
        for command in advice_in(said):
            run("ip", "netns", "exec", self.wire.lb, *command)


class TunnelRoom(OnAWire):
    def test_an_mtu_too_small_for_the_encapsulation(self):
        self.wire.ip(self.wire.lb, "link", "set", "eth0", "mtu", "1500")
        self.addCleanup(self.wire.ip, self.wire.lb, "link", "set", "eth0", "mtu", "1600")
        said = self.assert_refused(
            self.daemon(), "port uplink", "interface eth0 has MTU 1500",
            "1520 bytes (client_mtu 1500 and a header of 20)", "set client_mtu = 1480 in [dataplane]",
        )
        lower = self.config().replace("[dataplane]", "[dataplane]\nclient_mtu = 1480")
        self.assert_forwards(self.daemon(lower))
        [command] = advice_in(said)
        self.assertEqual(command, "ip link set eth0 mtu 1520".split())
        run("ip", "netns", "exec", self.wire.lb, *command)
        self.assert_forwards(self.daemon())

    def test_a_way_that_becomes_too_narrow_is_a_warning(self):
        backend = "192.0.2.21"
        self.wire.ip(self.wire.peer, "address", "add", f"{backend}/24", "dev", "p0")
        self.addCleanup(self.wire.ip, self.wire.peer, "address", "del", f"{backend}/24", "dev", "p0")
        text = re.sub(r", next_hop = \{.*?\}", "", self.config())
        self.assertIn(f'backends = [{{ address = "{backend}" }}]', text)
        daemon = self.daemon(text).start()
        wait_for(lambda: status(daemon)["pools"][0]["eligible"] == 1, "the backend")
        self.assertEqual(status(daemon)["warnings"], [])

        route = ["route", "replace", f"{backend}/32", "dev", "eth0"]
        self.wire.ip(self.wire.lb, *route, "mtu", "1400")
        [warning] = wait_for(lambda: status(daemon)["warnings"], "a warning")
        for word in (f"web/{backend}", "uplink is 1400", "above 1380 bytes", "1520", "client_mtu"):
            self.assertIn(word, warning)
        self.assertIn(f"WARNING: {warning}\n", shown_status(daemon))
        # It is used all the same: packets that fit get through.
        packets = [syn(n) for n in range(20)]
        self.assertEqual(self.tunnelled(packets), packets)
        self.wire.ip(self.wire.lb, *route, "mtu", "1520")
        wait_for(lambda: not status(daemon)["warnings"], "the warning's end")
        self.assertEqual(logged(daemon, "warning", backend, "1400"), 1, daemon.stderr)
        self.assertEqual(logged(daemon, "info", backend, "fit again"), 1, daemon.stderr)
        self.assertEqual(daemon.stop(), 0)


class VethPeers(OnAWire):
    """AF_XDP on one end of a veth, while the other leaves checksums to hardware."""

    serials = itertools.count()

    def test_in_a_namespace_with_a_name(self):
        self.checksums(["ip", "netns", "exec", self.wire.peer], "p0", "on")
        self.addCleanup(self.checksums, ["ip", "netns", "exec", self.wire.peer], "p0", "off")
        said = self.assert_refused(self.daemon(), "port uplink", "the far end of eth0")
        self.assertEqual(advice_in(said),
                         [f"ip netns exec {self.wire.peer} ethtool -K p0 tx off".split()])
        run(*advice_in(said)[0])
        self.assert_forwards(self.daemon())

    def test_in_the_daemons_own_namespace(self):
        interface, far = self.pair()
        said = self.assert_refused(self.daemon(self.config(interface)), f"the far end of {interface}")
        self.assertEqual(advice_in(said), [["ethtool", "-K", far, "tx", "off"]])
        run("ip", "netns", "exec", self.wire.lb, *advice_in(said)[0])
        self.daemon(self.config(interface)).start()

    def test_in_the_namespace_of_a_process(self):
        interface, far = self.pair()
        process = self.other_namespace(far)
        said = self.assert_refused(self.daemon(self.config(interface)), f"the far end of {interface}")
        self.assertEqual(advice_in(said),
                         [f"nsenter -t {process.pid} -n ethtool -K {far} tx off".split()])
        run(*advice_in(said)[0])
        self.daemon(self.config(interface)).start()

    def test_out_of_sight_is_a_line_in_the_log(self):
        interface, far = self.pair()
        process = self.other_namespace(far)
        with open(f"/proc/{process.pid}/ns/net", "rb"):  # now only this test keeps it
            process.kill()
            process.wait()
            daemon = self.daemon(self.config(interface)).start()
        self.assertEqual(logged(daemon, "info", f"{interface} is a veth", "`ethtool -K FAR-END tx off`"),
                         1, daemon.stderr)

    @staticmethod
    def checksums(prefix: list[str], name: str, state: str) -> None:
        run(*prefix, "ethtool", "-K", name, "tx", state)

    def pair(self) -> tuple[str, str]:
        """Both ends in lb, up, as the kernel makes them."""
        near, far = (f"{end}{next(self.serials)}" for end in ("near", "far"))
        lb = self.wire.lb
        self.wire.ip(lb, "link", "add", near, "mtu", "1600", "type", "veth", "peer", "name", far)
        self.wire.ip(lb, "link", "set", near, "up")
        self.wire.ip(lb, "link", "set", far, "up")
        return near, far

    def other_namespace(self, interface: str) -> subprocess.Popen:
        """A process in a namespace of its own that has no name, where `interface` is now."""
        process = subprocess.Popen(["unshare", "-n", "sleep", "60"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_for(lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino != own, "another namespace")
        self.wire.ip(self.wire.lb, "link", "set", interface, "netns", str(process.pid))
        run("nsenter", "-t", str(process.pid), "-n", "ip", "link", "set", interface, "up")
        return process


class Taken(OnAWire):
    def test_by_another_holdfastd(self):
        first = self.daemon().start()
        program = self.wire.xdp_id()
        self.assert_refused(self.daemon(), "port uplink", "another holdfastd", "eth0: stop that one first")
        self.assertEqual(self.wire.xdp_id(), program)
        packets = [syn(n) for n in range(20)]
        self.assertEqual(self.tunnelled(packets), packets)
        self.assertEqual(first.stop(), 0)
        self.assert_forwards(self.daemon())

    def test_the_control_socket_by_another_holdfastd(self):
        first = self.run_daemon(NULL).start()
        text = NULL.replace("{folder}/holdfast.sock", str(first.folder / "holdfast.sock"))
        self.assert_refused(self.run_daemon(text), f"control socket {first.folder}/holdfast.sock",
                            f"another holdfastd (pid {first.process.pid})", "stop it first")
        self.assertEqual(status(first)["pid"], first.process.pid)
        self.assertEqual(first.stop(), 0)
        self.run_daemon(text).start()

    def test_a_queue_by_somebody_elses_socket(self):
        foreign = ForeignSocket(self.wire.lb, "eth0", 0)
        self.addCleanup(foreign.close)
        self.assert_refused(self.daemon(), "port uplink", "another program has an AF_XDP socket",
                            "queue 0 of eth0", "stop that one first")
        self.assertEqual(self.wire.xdp_id(), 0)
        foreign.close()
        self.assert_forwards(self.daemon())

    def test_by_somebody_elses_program(self):
        # The second name is that of libxdp's default program, which other AF_XDP programs leave.
        for name in ("firewall", "xsk_def_prog"):
            with self.subTest(name):
                foreign = ForeignProgram(self.wire.lb, "eth0", name)
                program = self.wire.xdp_id()
                said = self.assert_refused(self.daemon(), "port uplink", name)
                self.assertEqual(self.wire.xdp_id(), program)
                self.assertEqual(advice_in(said), ["ip link set dev eth0 xdp off".split()])
                run("ip", "netns", "exec", self.wire.lb, *advice_in(said)[0])
                foreign.close()
        self.assert_forwards(self.daemon())


class Privileges(OnAWire):
    def test_missing_ones(self):
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        daemon = self.daemon(prefix=as_nobody)
        for path in (daemon.folder, *daemon.folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        self.assert_refused(daemon, "CAP_NET_ADMIN", "root", status=4)

    def test_those_that_the_sentence_names_are_enough(self):
        named = "+net_admin,+net_raw,+sys_admin,+ipc_lock"
        self.assert_forwards(
            self.daemon(prefix=["setpriv", f"--bounding-set=-all,{named}", f"--inh-caps=-all,{named}"])
        )

    def test_too_little_memory_to_lock(self):
        named = "+net_admin,+net_raw,+sys_admin"
        few = ["setpriv", f"--bounding-set=-all,{named}", f"--inh-caps=-all,{named}"]
        daemon = self.daemon(prefix=["prlimit", "--memlock=8388608", *few])
        self.assert_refused(daemon, "8 MiB", "LimitMEMLOCK", status=4)


class Warnings(OnAWire):
    """The daemon starts, and says what is missing for as long as it is."""

    def test_no_route_and_no_neighbour_of_a_backend(self):
        text = re.sub(r"backends = .*", 'backends = [{ address = "198.51.100.1" }, '
                      '{ name = "silent", address = "192.0.2.77" }]', self.config())
        daemon = self.daemon(text).start()
        expected = (("web/198.51.100.1", "no route", "`ip route add`"),
                    ("web/silent (192.0.2.77)", "192.0.2.77", "on eth0", "check that it is up"))
        warnings = wait_for(lambda: len(found := status(daemon)["warnings"]) == 2 and found, "warnings")
        for warning, words in zip(warnings, expected, strict=True):
            for word in words:
                self.assertIn(word, warning)
            self.assertIn(f"WARNING: {warning}\n", shown_status(daemon))
            self.assertEqual(logged(daemon, "warning", words[0], words[1]), 1, daemon.stderr)

        # As advised: a route by the port, and the host itself.
        self.wire.ip(self.wire.lb, "route", "add", "198.51.100.1", "via", "192.0.2.2")
        self.wire.ip(self.wire.peer, "address", "add", "192.0.2.77/24", "dev", "p0")
        wait_for(lambda: status(daemon)["pools"][0]["eligible"] == 2, "both backends")
        self.assertEqual(status(daemon)["warnings"], [])
        self.assertNotIn("WARNING", shown_status(daemon))
        self.assertEqual(daemon.stop(), 0)

    @unittest.skipIf(shutil.which("gobgpd") is None, "needs gobgpd")
    def test_gobgpd_unreachable(self):
        bgp = ('[bgp]\ngobgp = "unix:{folder}/gobgp.sock"\nnext_hop = "192.0.2.1"\n'
               'next_hop_v6 = "2001:db8:1::1"\n[[vip]]')
        daemon = self.daemon(self.config().replace("[[vip]]", bgp, 1)).start()
        target = f"gobgpd at unix:{daemon.folder}/gobgp.sock"
        [warning] = wait_for(lambda: status(daemon)["warnings"], "a warning")
        self.assertIn(f"{target} is unreachable: ", warning)
        self.assertIn("start it, or mend `gobgp` in [bgp]", warning)
        self.assertIsNone(daemon.ask("bgp")["as"])
        self.assertIn(f"WARNING: {warning}\n", shown_status(daemon))
        self.assertEqual(logged(daemon, "warning", target, "unreachable", "start it"), 1, daemon.stderr)
        packets = [syn(n) for n in range(20)]
        self.assertEqual(self.tunnelled(packets), packets)

        with self.gobgpd(daemon.folder):
            wait_for(lambda: status(daemon)["bgp"]["state"] == "up", "gobgpd")
            self.assertEqual(daemon.ask("bgp")["as"], 64512)
            self.assertEqual(status(daemon)["warnings"], [])
            daemon.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "stopping:" in daemon.stderr, "the stop order")
            # The second signal skips its waits.
            self.assertEqual(daemon.stop(), 0, daemon.stderr)

    @contextlib.contextmanager
    def gobgpd(self, folder: Path):
        config = folder / "gobgpd.toml"
        config.write_text('[global.config]\nas = 64512\nrouter-id = "192.0.2.1"\nport = -1\n')
        with open(folder / "gobgpd.log", "wb") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.wire.lb, "gobgpd", "-f", str(config), "--pprof-disable",
                 "--api-hosts", f"unix://{folder}/gobgp.sock"], stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def status(daemon: Daemon) -> dict:
    return daemon.ask("status")


def shown_status(daemon: Daemon) -> str:
    command = [str(CLI), "--socket", str(daemon.folder / "holdfast.sock"), "status"]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout


def logged(daemon: Daemon, level: str, *words: str) -> int:
    """How many lines of the log have this level and all these words."""
    return sum(f" {level}: " in line and all(word in line for word in words)
               for line in daemon.stderr.splitlines())


if __name__ == "__main__":
    unittest.main()
