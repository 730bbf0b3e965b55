# SPDX-License-Identifier: Apache-2.0
"""Names, addresses and MTUs of the lab: all of them are here and nowhere else. Pure: no I/O.

Each host has one interface, `eth0`, to the router; the router's end of that link is `to-HOST`.
Every lab lives in namespaces of its own, so all labs use the same addresses. They come from the
ranges for documentation (RFC 5737, RFC 3849):

    198.51.100.0/24, 2001:db8:c::/64       the client's link
    192.0.2.0/28 ..., 2001:db8:a:N::/64    load balancers, one link each (at most 4)
    192.0.2.64/28 ..., 2001:db8:b:N::/64   backends, one link each (at most 12)
    203.0.113.0/24, 2001:db8:f::/64        VIPs: on `lo` of each backend, routed to the balancers
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface, ip_interface

from labkit.errors import LabError

INTERFACE = "eth0"  # on every host but the router

CLIENT_MTU = 1500
# The outer header adds 20 to 52 bytes to a packet of 1500 that came from the client's link. A link
# that cannot carry that loses large uploads while small requests still work.
FABRIC_MTU = 1600

MAX_LBS = 4
MAX_BACKENDS = 12

VIP4 = "203.0.113.10"
VIP6 = "2001:db8:f::10"
VIP_RANGE4 = "203.0.113.0/24"  # the router takes host routes in these ranges, and no others
VIP_RANGE6 = "2001:db8:f::/64"

# Numbers for documentation (RFC 5398). All balancers are in one AS, as within one site.
ROUTER_AS = 64496
LB_AS = 64500


@dataclass(frozen=True)
class Host:
    """One host and its link to the router."""

    name: str
    role: str  # "client", "lb" or "backend"
    link4: IPv4Interface  # the host's own address, with the prefix length of the link
    link6: IPv6Interface
    router4: str  # the router's address on that link
    router6: str
    mtu: int  # of both ends
    queues: int = 1  # receive and transmit queues of both ends

    @property
    def v4(self) -> str:
        return str(self.link4.ip)

    @property
    def v6(self) -> str:
        return str(self.link6.ip)

    @property
    def router_interface(self) -> str:
        return f"to-{self.name}"


def _host(name: str, role: str, subnet4: str, subnet6: str, mtu: int, queues: int = 1) -> Host:
    """The router has the first address of each subnet, the host the second."""
    net4, net6 = ip_interface(subnet4), ip_interface(subnet6)
    length4, length6 = net4.network.prefixlen, net6.network.prefixlen
    return Host(
        name=name,
        role=role,
        link4=IPv4Interface(f"{net4.ip + 2}/{length4}"),
        link6=IPv6Interface(f"{net6.ip + 2}/{length6}"),
        router4=str(net4.ip + 1),
        router6=str(net6.ip + 1),
        mtu=mtu,
        queues=queues,
    )


@dataclass(frozen=True)
class Topology:
    """The hosts of a lab with `lb_count` load balancers and `backend_count` backends."""

    lb_count: int = 1
    backend_count: int = 3
    lb_queues: int = 1  # queues of each balancer's link = AF_XDP sockets = workers
    static_routes: bool = False  # the router's to the VIPs; else it learns them by BGP

    client: Host = field(init=False)
    lbs: tuple[Host, ...] = field(init=False)
    backends: tuple[Host, ...] = field(init=False)

    def __post_init__(self):
        _require("load balancers", self.lb_count, MAX_LBS)
        _require("backends", self.backend_count, MAX_BACKENDS)
        _require("queues", self.lb_queues, 16)
        client = _host("client", "client", "198.51.100.0/24", "2001:db8:c::/64", CLIENT_MTU)
        lbs = tuple(
            _host(
                f"lb{i}",
                "lb",
                f"192.0.2.{16 * (i - 1)}/28",
                f"2001:db8:a:{i}::/64",
                FABRIC_MTU,
                self.lb_queues,
            )
            for i in range(1, self.lb_count + 1)
        )
        backends = tuple(
            _host(
                f"b{i}",
                "backend",
                f"192.0.2.{64 + 16 * (i - 1)}/28",
                f"2001:db8:b:{i}::/64",
                FABRIC_MTU,
            )
            for i in range(1, self.backend_count + 1)
        )
        # A frozen dataclass fills derived fields this way.
        object.__setattr__(self, "client", client)
        object.__setattr__(self, "lbs", lbs)
        object.__setattr__(self, "backends", backends)

    router = "router"
    vip4 = VIP4
    vip6 = VIP6
    vips = (VIP4, VIP6)

    @property
    def linked_hosts(self) -> tuple[Host, ...]:
        """Every host that has a link to the router."""
        return (self.client, *self.lbs, *self.backends)

    @property
    def host_names(self) -> tuple[str, ...]:
        return (self.client.name, self.router, *(h.name for h in (*self.lbs, *self.backends)))

    def host(self, name: str) -> Host:
        for host in self.linked_hosts:
            if host.name == name:
                return host
        raise LabError(f"no host {name!r} in this lab; there are: {', '.join(self.host_names)}")

    def drawing(self) -> str:
        """The lab as a picture; made from the values above, so it cannot differ from them."""
        balancers = ", ".join(lb.name for lb in self.lbs)
        router, speaker = f"BIRD, AS {ROUTER_AS}", f"; gobgpd, AS {LB_AS}"
        if self.static_routes:
            router, speaker = "BIRD, static routes", ""
        runs = {"lb": f"holdfastd on AF_XDP{speaker}", "backend": "nginx, holdfast-agent"}
        lines = [
            f"client  {self.client.link4}, {self.client.link6}",
            "  |",
            f"  |  {self.client.router_interface}, MTU {self.client.mtu}",
            "  |",
            f"router  {router}: {self.vip4} and {self.vip6} (the VIPs) via {balancers}",
        ]
        for host in (*self.lbs, *self.backends):
            branch = f"  +--[{host.router_interface}, MTU {host.mtu}]--"
            lines.append("  |")
            lines.append(f"{branch:<25} {host.name:<4} {host.link4}, {host.link6}: {runs[host.role]}")
        return "\n".join(lines)


def _require(what: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise LabError(f"a lab has 1 to {most} {what}, not {value}")
