# SPDX-License-Identifier: Apache-2.0
"""The text of the router's and the BGP speakers' configuration files. Pure: no I/O.

One IPv4 session between each balancer's gobgpd and BIRD carries both families. BIRD is active, and
gobgpd too: whoever is up last finds the other. docs/routers.md shows operators the same;
tests/e2e/test_routers.py compares.
"""

from pathlib import Path

from labkit import topology

HOLD_SECONDS = 9
KEEPALIVE_SECONDS = 3


def bird(lab: topology.Topology, static_routes: bool, route_log: Path) -> str:
    """The router. It learns the VIPs from the balancers, or has static routes by way of all of
    them. `route_log` gets a line with the time for each change of what it learnt."""
    sources = _static(lab) if static_routes else _learnt(lab)
    return f"""\
log stderr {{ info, remote, warning, error, auth, fatal, bug }};
log "{route_log}" {{ trace }};
timeformat log iso long us;
router id {lab.client.router4};

protocol device {{
}}

{sources}
# All routes that are equally good are one route with several next hops in the kernel (ECMP).
protocol kernel kernel4 {{
  ipv4 {{
    import none;
    export all;
  }};
  merge paths on limit 16;
}}

protocol kernel kernel6 {{
  ipv6 {{
    import none;
    export all;
  }};
  merge paths on limit 16;
}}
"""


def _static(lab: topology.Topology) -> str:
    def route(vip: str, gateways: list[str]) -> str:
        length = 128 if ":" in vip else 32
        return f"route {vip}/{length} " + " ".join(f"via {gateway}" for gateway in gateways) + ";"

    return f"""\
protocol static vips4 {{
  ipv4;
  {route(lab.vip4, [lb.v4 for lb in lab.lbs])}
}}

protocol static vips6 {{
  ipv6;
  {route(lab.vip6, [lb.v6 for lb in lab.lbs])}
}}
"""


def _learnt(lab: topology.Topology) -> str:
    sessions = "\n".join(_session(lb) for lb in lab.lbs)
    return f"""\
# RFC 8326: who is about to go asks to be the last choice, while it still forwards.
function honour_graceful_shutdown()
{{
  if (65535, 0) ~ bgp_community then bgp_local_pref = 0;
}}

filter vips4 {{
  if net !~ [ {topology.VIP_RANGE4}{{32,32}} ] then reject;
  honour_graceful_shutdown();
  accept;
}}

filter vips6 {{
  if net !~ [ {topology.VIP_RANGE6}{{128,128}} ] then reject;
  honour_graceful_shutdown();
  accept;
}}

# Sessions that ended are tried again at once, not after a minute.
template bgp balancer {{
  hold time {HOLD_SECONDS};
  keepalive time {KEEPALIVE_SECONDS};
  connect delay time 1;
  connect retry time 1;
  error wait time 1, 2;
  graceful restart off;
  debug {{ states, routes }};
  ipv4 {{
    import filter vips4;
    import limit 64 action block;
    export all;
  }};
  ipv6 {{
    import filter vips6;
    import limit 64 action block;
    export all;
  }};
}}

{sessions}"""


def _session(lb: topology.Host) -> str:
    return f"""\
protocol bgp {lb.name} from balancer {{
  local {lb.router4} as {topology.ROUTER_AS};
  neighbor {lb.v4} as {topology.LB_AS};
}}
"""


def gobgpd(lb: topology.Host) -> str:
    """The speaker beside holdfastd: it announces what it is told through its API. What the router
    sends back, such as the other balancers' paths to the same VIPs, it does not take."""
    return f"""\
[global.config]
as = {topology.LB_AS}
router-id = "{lb.v4}"
local-address-list = ["{lb.v4}"]

[global.apply-policy.config]
import-policy-list = ["only-local"]
default-import-policy = "reject-route"
default-export-policy = "accept-route"

[[policy-definitions]]
name = "only-local"
[[policy-definitions.statements]]
name = "local"
[policy-definitions.statements.conditions.bgp-conditions]
route-type = "local"
[policy-definitions.statements.actions]
route-disposition = "accept-route"

[[neighbors]]
[neighbors.config]
neighbor-address = "{lb.router4}"
peer-as = {topology.ROUTER_AS}
[neighbors.timers.config]
hold-time = {HOLD_SECONDS}
keepalive-interval = {KEEPALIVE_SECONDS}
connect-retry = 5
[neighbors.transport.config]
local-address = "{lb.v4}"
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "ipv4-unicast"
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "ipv6-unicast"
"""
