# SPDX-License-Identifier: Apache-2.0
"""`holdfast replay` for tests: writes a configuration and a capture, runs it once over all of the
packets, and reads what came out. What must hold after every run is checked here.

Captures are written and read by scapy, never by code of ours."""

import collections
import contextlib
import dataclasses
import importlib.util
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

if importlib.util.find_spec("scapy") is None:
    # Debian's package belongs to Debian's interpreter, and another one may come first in PATH.
    sys.path.append("/usr/lib/python3/dist-packages")
logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.packet import Raw  # noqa: E402
from scapy.utils import RawPcapReader, wrpcap  # noqa: E402

BUILD = Path(os.environ.get("HOLDFAST_BUILD", Path(__file__).resolve().parents[2] / "build"))
BUILD = BUILD.resolve()  # programs are started elsewhere
CLI = BUILD / "ctrl" / "holdfast"

ETHERNET, RAW_IP, COOKED, COOKED2 = 1, 101, 113, 276  # link types

VIP4, VIP6 = "203.0.113.10", "2001:db8:203::10"
OPEN4, OPEN6 = "203.0.113.20", "2001:db8:203::20"  # every port is a service
SOURCE4, SOURCE6 = "192.0.2.1", "2001:db8:1::1"
PORT_MAC = "02:00:00:00:00:01"  # docs/replay.md
BACKENDS4 = {"192.0.2.21": "02:00:5e:10:00:21", "192.0.2.22": "02:00:5e:10:00:22"}
BACKENDS6 = {"2001:db8:2::21": "02:00:5e:10:06:21", "2001:db8:2::22": "02:00:5e:10:06:22"}
TAGGED = {"192.0.2.31": "02:00:5e:10:00:31"}
EGRESS_VLAN = 7

CONFIG = """
[dataplane]
ports = [{ name = "p", interface = "none0" }]
workers = 1
flow_capacity = 50000
hash_seed_file = "seed"
tunnel_source_v4 = "192.0.2.1"
tunnel_source_v6 = "2001:db8:1::1"
{dataplane}
[[vip]]
address = "203.0.113.10"
{vip}
[[vip]]
address = "2001:db8:203::10"
{vip}
[[vip]]
address = "203.0.113.20"
[[vip]]
address = "2001:db8:203::20"
[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8:203::10"]
ports = "80"
pool = "four"
{service}
[[service]]
name = "web-six"
vips = ["203.0.113.10", "2001:db8:203::10"]
ports = "443"
pool = "six"
{service}
[[service]]
name = "dns"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "udp"
ports = "53"
pool = "four"
[[service]]
name = "quic"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "udp"
ports = "443"
pool = "six"
[[service]]
name = "tagged"
vips = ["203.0.113.10", "2001:db8:203::10"]
protocol = "udp"
ports = "7"
pool = "tagged"
[[service]]
name = "open-tcp"
vips = ["203.0.113.20", "2001:db8:203::20"]
ports = "any"
pool = "four"
[[service]]
name = "open-udp"
vips = ["203.0.113.20", "2001:db8:203::20"]
protocol = "udp"
ports = "any"
pool = "six"
[[pool]]
name = "four"
table_size = 251
{pool}
backends = [
  { name = "b1", address = "192.0.2.21", next_hop = { port = "p", mac = "02:00:5e:10:00:21", mtu = {mtu} } },
  { name = "b2", address = "192.0.2.22", next_hop = { port = "p", mac = "02:00:5e:10:00:22", mtu = {mtu} } },
]
[[pool]]
name = "six"
table_size = 251
{pool}
backends = [
  { address = "2001:db8:2::21", next_hop = { port = "p", mac = "02:00:5e:10:06:21", mtu = {mtu} } },
  { address = "2001:db8:2::22", next_hop = { port = "p", mac = "02:00:5e:10:06:22", mtu = {mtu} } },
]
[[pool]]
name = "tagged"
table_size = 251
{pool}
backends = [
  { address = "192.0.2.31", next_hop = { port = "p", mac = "02:00:5e:10:00:31", vlan = 7, mtu = {mtu} } },
]
"""


def config(*, mtu: int = 1600, **lines: str) -> str:
    """`lines`: more of a section: dataplane, vip, service, pool."""
    text = CONFIG.replace("{mtu}", str(mtu))
    for section in ("dataplane", "vip", "service", "pool"):
        text = text.replace("{%s}" % section, lines.get(section, ""))
    return text


@dataclasses.dataclass(frozen=True)
class Replayed:
    packets: list[dict]  # by packet that went in
    counters: dict
    frames: list[bytes]  # of OUT.pcap
    stderr: str

    def sent_for(self, index: int) -> list[bytes]:
        return [self.frames[number] for number in self.packets[index]["outputs"]]

    def verdicts(self) -> dict[str, int]:
        return dict(collections.Counter(packet["verdict"] for packet in self.packets))

    def reasons(self) -> list[str | None]:
        return [packet["reason"] for packet in self.packets]


def read_pcap(path: Path) -> list[bytes]:
    """Requires: Ethernet, no frame cut."""
    frames = []
    with contextlib.closing(RawPcapReader(str(path))) as reader:
        if reader.linktype != ETHERNET:
            raise AssertionError(f"link type {reader.linktype}")
        for data, meta in reader:
            if meta.wirelen != len(data):
                raise AssertionError("a frame was cut")
            frames.append(bytes(data))
    return frames


def check_outcome(outcome: Replayed, count: int) -> None:
    """What holds whatever was replayed (docs/replay.md, docs/architecture.md)."""
    packets, counters = outcome.packets, outcome.counters
    problems = []

    def require(holds: bool, what: str) -> None:
        if not holds:
            problems.append(what)

    require([packet["index"] for packet in packets] == list(range(count)), "an entry a packet")
    owned = [number for packet in packets for number in packet["outputs"]]
    require(sorted(owned) == list(range(len(outcome.frames))), "each frame has one owner")
    for packet in packets:
        verdict, sent = packet["verdict"], len(packet["outputs"])
        expected = {"forward": sent >= 1, "answer": sent == 1, "drop": sent == 0, "kernel": sent == 0}
        require(expected.get(verdict, False), f"outputs of {packet}")
        require((packet["reason"] is not None) == (verdict == "drop"), f"reason of {packet}")
        require(verdict != "forward" or None not in (packet["service"], packet["backend"]),
                f"service and backend of {packet}")
    verdicts = outcome.verdicts()
    dropped = collections.Counter(r for r in outcome.reasons() if r is not None)
    require(counters["dropped"] == dict(dropped), f"{counters['dropped']} dropped, told {dropped}")
    require(counters["received"] == count, "received")
    for name, verdict in (("forwarded", "forward"), ("answered", "answer"), ("to_kernel", "kernel")):
        require(counters[name] == verdicts.get(verdict, 0), name)
    require(counters["held_now"] == 0, "held_now")
    require(counters["received"] == counters["forwarded"] + counters["answered"]
            + counters["to_kernel"] + sum(counters["dropped"].values()), "identity of received")
    require(counters["transmitted"] == counters["forwarded"] + counters["answered"]
            + counters["extra_fragments"], "identity of transmitted")
    require(counters["transmitted"] == len(outcome.frames), "transmitted")
    if problems:
        raise AssertionError(f"{problems[:5]} and {max(0, len(problems) - 5)} more: {counters}")


class Bench:
    """A folder with a configuration, in which captures are replayed. Close it."""

    def __init__(self, text: str):
        self._temporary = tempfile.TemporaryDirectory(prefix="holdfast-replay-")
        self.folder = Path(self._temporary.name)
        (self.folder / "seed").write_text("00112233445566ff\n")
        self.write_config("holdfast.toml", text)

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_) -> None:
        self._temporary.cleanup()

    def write_config(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def write_capture(self, records, *, link_type: int = ETHERNET, times=None):
        """`records`: bytes or scapy packets. `times`: seconds by record; else a millisecond apart."""
        packets = []
        for number, record in enumerate(records):
            packet = Raw(bytes(record))
            packet.time = 1_700_000_000 + (times[number] if times else number / 1000)
            packets.append(packet)
        path = self.folder / "in"
        wrpcap(str(path), packets, linktype=link_type)
        return path

    def start(self, *words: str) -> subprocess.CompletedProcess:
        """`holdfast replay` with these words and nothing else."""
        return subprocess.run([str(CLI), "replay", *words], capture_output=True, text=True,
                              timeout=120, cwd=self.folder)

    def run(self, *options: str) -> Replayed:
        """Replays `in`."""
        done = self.start("holdfast.toml", "in", "out", "--json", *options)
        if done.returncode != 0:
            raise AssertionError(f"ended with {done.returncode}: {done.stderr}")
        told = json.loads(done.stdout)
        return Replayed(told["packets"], told["counters"], read_pcap(self.folder / "out"),
                        done.stderr)

    def replay(self, records, *options: str, link_type: int = ETHERNET, times=None) -> Replayed:
        records = list(records)
        self.write_capture(records, link_type=link_type, times=times)
        outcome = self.run(*options)
        check_outcome(outcome, len(records))
        return outcome


def replay(records, *options: str, text: str | None = None, **how) -> Replayed:
    with Bench(config() if text is None else text) as bench:
        return bench.replay(records, *options, **how)
