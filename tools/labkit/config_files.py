# SPDX-License-Identifier: Apache-2.0
"""The text of the configuration files of nginx and holdfastd. Pure: no I/O. bgp_files.py has those of
BIRD and gobgpd."""

from pathlib import Path

from labkit import topology

WEB_PORT = 80  # service `web`: backends by their IPv4 addresses
LINGER_SECONDS = 3  # a balancer that stops forwards for so long after it withdrew the VIPs
WEB6_PORT = 8080  # service `web6`: the same hosts by their IPv6 addresses


def nginx(
    backend: topology.Host, folder: Path, www: Path, blob_sha256: str, app_socket: Path
) -> str:
    """A web server that names its backend in each answer; streams and uploads go on to app.py."""
    return f"""\
user root;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;

events {{
  worker_connections 8192;
}}

http {{
  access_log off;
  default_type application/octet-stream;
  sendfile on;
  client_body_temp_path {folder}/tmp;
  proxy_temp_path {folder}/tmp;
  fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp;
  scgi_temp_path {folder}/tmp;
  client_max_body_size 0;

  server {{
    listen {WEB_PORT} backlog=4096;
    listen {WEB6_PORT} backlog=4096;
    listen [::]:{WEB_PORT} ipv6only=on backlog=4096;
    listen [::]:{WEB6_PORT} ipv6only=on backlog=4096;
    add_header X-Backend {backend.name} always;

    location = / {{
      default_type text/plain;
      return 200 "{backend.name}\\n";
    }}

    location = /bytes/50m {{
      alias {www}/50m;
      add_header X-Backend {backend.name} always;
      add_header X-Sha256 {blob_sha256} always;
    }}

    location = /events {{
      proxy_pass http://unix:{app_socket}:;
      proxy_buffering off;
      proxy_read_timeout 1h;
    }}

    location = /upload {{
      proxy_pass http://unix:{app_socket}:;
      proxy_request_buffering off;
      proxy_read_timeout 5m;
    }}
  }}
}}
"""


def holdfast(
    lab: topology.Topology,
    lb: topology.Host,
    seed_file: Path,
    socket: Path,
    gobgp: Path | None,
    encapsulation: str = "ipip",
) -> str:
    """Two services on the same VIPs. Backends of `web` are reached through IPv4 tunnels, those of
    `web6` through IPv6 ones: with VIPs of both families that is every mix of inner and outer.
    `gobgp`: the socket of the BGP speaker; without one nothing is announced."""

    def backends(address) -> str:
        return "\n".join(
            f'  {{ name = "{name}", address = "{value}" }},'
            for name, value in (address(backend) for backend in lab.backends)
        )

    return f"""\
# Written by tools/lab for {lb.name}.
[site]
name = "lab-{lb.name}"

[dataplane]
ports = [{{ name = "uplink", interface = "{topology.INTERFACE}", queues = {lb.queues} }}]
workers = {lb.queues}
flow_capacity = 100000
hash_seed_file = "{seed_file}"
tunnel_source_v4 = "{lb.v4}"
tunnel_source_v6 = "{lb.v6}"

[control]
socket = "{socket}"
linger = "{LINGER_SECONDS}s"

{_bgp(lb, gobgp)}[[vip]]
address = "{lab.vip4}"

[[vip]]
address = "{lab.vip6}"

[[service]]
name = "web"
vips = ["{lab.vip4}", "{lab.vip6}"]
protocol = "tcp"
ports = "{WEB_PORT}"
pool = "web"

[[service]]
name = "web6"
vips = ["{lab.vip4}", "{lab.vip6}"]
protocol = "tcp"
ports = "{WEB6_PORT}"
pool = "web6"

[[pool]]
name = "web"
encapsulation = "{encapsulation}"
check = "http-port"
backends = [
{backends(lambda host: (host.name, host.v4))}
]

[[pool]]
name = "web6"
encapsulation = "{encapsulation}"
check = "http-port"
backends = [
{backends(lambda host: (host.name + "-v6", host.v6))}
]

[[check]]
name = "http-port"
kind = "tcp"
port = {WEB_PORT}
interval = "500ms"
timeout = "1s"
rise = 2
fall = 3
"""


def _bgp(lb: topology.Host, gobgp: Path | None) -> str:
    if gobgp is None:
        return ""
    return f"""\
[bgp]
mode = "external"
gobgp = "unix:{gobgp}"
next_hop = "{lb.v4}"
next_hop_v6 = "{lb.v6}"

"""
