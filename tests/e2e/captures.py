# SPDX-License-Identifier: Apache-2.0
"""The real holdfastd over capture files: frames in, frames out, without root."""

import dataclasses
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from daemon import Daemon  # noqa: E402

VIP4, VIP6 = "203.0.113.10", "2001:db8:203::10"
SOURCE4, SOURCE6 = "192.0.2.1", "2001:db8:1::1"
BACKENDS4 = {"192.0.2.21": "02:00:5e:10:00:21", "192.0.2.22": "02:00:5e:10:00:22"}
BACKENDS6 = {"2001:db8:2::21": "02:00:5e:10:06:21", "2001:db8:2::22": "02:00:5e:10:06:22"}

CONFIG = """
[dataplane]
ports = [{ports}]
workers = {workers}
flow_capacity = 10000
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
pool = "four"
[[service]]
name = "web-six"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "tcp"
ports = "443"
pool = "six"
[[service]]
name = "dns"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "udp"
ports = "53"
pool = "four"
[[service]]
name = "tagged"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "7"
pool = "vlan"
[[pool]]
name = "four"
table_size = 251
backends = [
  { address = "192.0.2.21", next_hop = { port = "{out}", mac = "02:00:5e:10:00:21" } },
  { address = "192.0.2.22", next_hop = { port = "{out}", mac = "02:00:5e:10:00:22" } },
]
[[pool]]
name = "six"
table_size = 251
backends = [
  { address = "2001:db8:2::21", next_hop = { port = "{out}", mac = "02:00:5e:10:06:21" } },
  { address = "2001:db8:2::22", next_hop = { port = "{out}", mac = "02:00:5e:10:06:22" } },
]
[[pool]]
name = "vlan"
table_size = 251
backends = [
  { address = "192.0.2.31", next_hop = { port = "{out}", mac = "02:00:5e:10:00:31", vlan = 7 } },
]
"""

ONE_PORT = '{ name = "p", vdev = "net_pcap0,rx_pcap={folder}/in,tx_pcap={folder}/out" }'


def config(ports: str = ONE_PORT, workers: int = 1, out: str = "p") -> str:
    filled = CONFIG.replace("{ports}", ports).replace("{workers}", str(workers))
    return filled.replace("{out}", out)


def client(number: int, family: int = 4) -> tuple[str, int]:
    address = f"198.51.100.{number % 200 + 1}" if family == 4 else f"2001:db8:99::{number + 1:x}"
    return address, 10000 + number


def forward(packets: list[bytes], **options) -> list[bytes]:
    """Sends `packets` (IP) through one holdfastd; the frames that come out, in their order. Each
    is to be forwarded."""
    outcome = run_frames([f.frame_of(packet) for packet in packets], **options)
    if len(outcome.frames) != len(packets):
        raise AssertionError(f"{len(outcome.frames)} of {len(packets)} came out: {outcome.dropped}")
    return outcome.frames


@dataclasses.dataclass(frozen=True)
class Outcome:
    frames: list[bytes]  # that came out, in their order
    stats: dict  # as the CLI shows them
    dropped: dict[str, int]  # by reason, those that happened


def run_frames(frames: list[bytes], text: str = "", **options) -> Outcome:
    """`text`: the configuration, instead of the usual one."""
    daemon = Daemon(text or config(), **options)
    try:
        f.write_pcap(daemon.folder / "in", frames)
        daemon.start()
        stats = daemon.stats_after(len(frames))
        dropped = {row["reason"]: row["total"] for row in daemon.ask("drops")["reasons"]}
        if daemon.stop() != 0:
            raise AssertionError(daemon.stderr)
        left = os.listdir(daemon.folder / "tmp")
        if left:
            raise AssertionError(f"left behind: {left}")
        return Outcome(f.read_pcap(daemon.folder / "out"), stats, dropped)
    finally:
        daemon.close()
