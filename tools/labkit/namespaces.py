# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, links and addresses of a lab, and the processes inside. Needs root."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

from labkit import topology
from labkit.errors import LabError

_NETNS = Path("/run/netns")


def run(argv: list[str], *, input_text: str | None = None) -> str:
    """Runs one command that must work; its standard output."""
    try:
        done = subprocess.run(argv, input=input_text, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is not installed: run tools/install-packages") from None
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip()
        raise LabError(f"`{' '.join(argv)}` failed: {reason}")
    return done.stdout


def exists(namespace: str) -> bool:
    return (_NETNS / namespace).exists()


def inode(namespace: str) -> int | None:
    """Names the namespace itself, whatever its name; None when there is none."""
    try:
        return (_NETNS / namespace).stat().st_ino
    except FileNotFoundError:
        return None


def inode_of_process(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def add(namespace: str) -> int:
    run(["ip", "netns", "add", namespace])
    return inode(namespace)


def delete(namespace: str) -> None:
    run(["ip", "netns", "delete", namespace])


# Written before any link is there, so that each interface starts with them.
#  accept_dad 0: an address can be used at once, no second of duplicate address detection.
#  accept_ra 0: nothing but the lab configures addresses.
_ALL_HOSTS = {
    "ipv6/conf/all/disable_ipv6": 0,
    "ipv6/conf/default/disable_ipv6": 0,
    "ipv6/conf/all/accept_dad": 0,
    "ipv6/conf/default/accept_dad": 0,
    "ipv6/conf/all/accept_ra": 0,
    "ipv6/conf/default/accept_ra": 0,
}
_ROUTER = {
    "ipv4/ip_forward": 1,
    "ipv6/conf/all/forwarding": 1,
    # A link that goes down and comes up again has its addresses as before.
    "ipv6/conf/all/keep_addr_on_down": 1,
    "ipv6/conf/default/keep_addr_on_down": 1,
    # ECMP by addresses and ports, as a leaf switch does it.
    "ipv4/fib_multipath_hash_policy": 1,
    "ipv6/fib_multipath_hash_policy": 1,
    # Answers come straight from the backends with a VIP as their source, while the route to the
    # VIP points at the balancers: the strict filter would drop them.
    "ipv4/conf/all/rp_filter": 0,
    "ipv4/conf/default/rp_filter": 0,
}
_END_HOST = {
    "ipv4/conf/all/rp_filter": 1,
    "ipv4/conf/default/rp_filter": 1,
}
_BACKEND = {
    # The VIP on lo is for the host itself only: no ARP answer for it, no ARP question from it.
    "ipv4/conf/all/arp_ignore": 1,
    "ipv4/conf/all/arp_announce": 2,
}


def set_sysctls(namespace: str, values: dict) -> None:
    """`values`: path below /proc/sys/net -> value."""
    script = "".join(f"echo {value} > {key} || exit 1\n" for key, value in values.items())
    run(["ip", "netns", "exec", namespace, "sh", "-c", f"cd /proc/sys/net || exit 1\n{script}"])


def sysctls_of(role: str) -> dict:
    """`role` is "router", "client", "lb" or "backend"."""
    if role == "router":
        return _ALL_HOSTS | _ROUTER
    return _ALL_HOSTS | _END_HOST | (_BACKEND if role == "backend" else {})


def link(host: topology.Host, namespace: str, router_namespace: str, vips: tuple[str, ...]) -> None:
    """Joins `host` to the router, with addresses and default routes; a backend gets the VIPs."""
    queues = ["numrxqueues", str(host.queues), "numtxqueues", str(host.queues)]
    far = host.router_interface
    run(
        ["ip", "link", "add", "name", topology.INTERFACE, "netns", namespace, "mtu", str(host.mtu)]
        + [*queues, "type", "veth", "peer", "name", far, "netns", router_namespace]
        + ["mtu", str(host.mtu), *queues]
    )
    # A veth hands on packets whose checksum is left for hardware to fill in. An AF_XDP socket and
    # an XDP program see them as they are, and whoever gets them after a tunnel drops them.
    run(["ip", "netns", "exec", router_namespace, "ethtool", "-K", far, "tx", "off"])
    run(
        ["ip", "-n", router_namespace, "-batch", "-"],
        input_text=f"link set {far} up\n"
        f"address add {host.router4}/{host.link4.network.prefixlen} dev {far}\n"
        f"address add {host.router6}/{host.link6.network.prefixlen} dev {far} nodad\n",
    )
    lines = [
        "link set lo up",
        f"link set {topology.INTERFACE} up",
        f"address add {host.link4} dev {topology.INTERFACE}",
        f"address add {host.link6} dev {topology.INTERFACE} nodad",
        f"route add default via {host.router4}",
        f"route add default via inet6 {host.router6}",
    ]
    if host.role == "backend":
        lines += [f"address add {vip} dev lo" + (" nodad" if ":" in vip else "") for vip in vips]
    run(["ip", "-n", namespace, "-batch", "-"], input_text="\n".join(lines) + "\n")


def processes_in(inodes: set[int]) -> list[int]:
    """The processes that live in one of these namespaces, ourselves excepted."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and inode_of_process(int(entry)) in inodes:
            found.append(int(entry))
    return found


def stop_processes(inodes: set[int], patience: float = 3.0) -> None:
    """Ends every process in these namespaces: SIGTERM, once more for holdfastd, which at the first
    hands its traffic over in peace, and SIGKILL after `patience` seconds.

    A pidfd is opened first and the namespace looked at afterwards, so a pid that was given to
    another process meanwhile cannot be hit.
    """
    steps = ((signal.SIGTERM, 0.2), (signal.SIGTERM, patience), (signal.SIGKILL, 3.0))
    for number, seconds in steps:
        handles = []
        for pid in processes_in(inodes):
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            if inode_of_process(pid) in inodes:
                handles.append(handle)
                try:
                    signal.pidfd_send_signal(handle, number)
                except ProcessLookupError:
                    pass  # ended by itself
            else:
                os.close(handle)
        _wait_for_end(handles, seconds)
        for handle in handles:
            os.close(handle)


def _wait_for_end(handles: list[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    poller = select.poll()
    for handle in handles:
        poller.register(handle, select.POLLIN)
    left = len(handles)
    while left > 0 and (remaining := deadline - time.monotonic()) > 0:
        for handle, _ in poller.poll(remaining * 1000):
            poller.unregister(handle)
            left -= 1
