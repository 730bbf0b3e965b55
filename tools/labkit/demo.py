# SPDX-License-Identifier: Apache-2.0
"""The demonstration: real clients through the router and the balancer to the backends, and a drain
in the middle of long streams. `run` only measures; claims.py says what the figures must be."""

import contextlib
import json
import os
import subprocess
import threading
import time

from labkit import claims, namespaces, services, topology
from labkit.client import Client, without_log
from labkit.config_files import WEB6_PORT
from labkit.errors import LabError

LB = "lb1"
POOL = "web"
REQUESTS = 300  # over each family
MIX_REQUESTS = 100  # over each family through IPv6 tunnels
STREAMS = 30  # over each family
STREAM_SECONDS = 20
DRAIN_AFTER_SECONDS = 5  # after the streams are open
# Streams end long before. A flow whose end the balancer does not see may stay for many minutes.
DRAIN_LIMIT_SECONDS = STREAM_SECONDS + 10
PAUSE_SECONDS = 0.02  # between the requests that go on during the drain
IDLE_SECONDS = 3


def run(lab, say) -> dict:
    """Runs all steps in a lab that is up, in half a minute to a minute. `say(text)` gets one line
    a step. The figures are what JSON can hold."""
    return _Demo(lab, say).run()


class _Demo:
    def __init__(self, lab, say):
        self._lab = lab
        self._say = say
        self._client = Client(lab)
        self._vips = {"IPv4": lab.topology.vip4, "IPv6": lab.topology.vip6}
        self._drained = lab.topology.backends[0].name

    def run(self) -> dict:
        figures = {"backends": [backend.name for backend in self._lab.topology.backends]}
        figures["drained"] = self._drained
        figures["idle"] = self._idle()
        figures["requests"] = self._requests(REQUESTS)
        figures["requests_ipv6_tunnel"] = self._requests(MIX_REQUESTS, WEB6_PORT)
        figures["uploads"] = self._transfers("upload")
        figures["downloads"] = self._transfers("download")
        figures |= self._drain_during_streams()
        figures["after_enable"] = self._enable()
        figures["tunnels"] = self._tunnels()
        figures["packets"] = self._packets()
        return figures

    def _idle(self) -> dict:
        """CPU time of everything in the lab while no client asks for anything."""
        inodes = set(self._lab.state.namespaces.values())
        before, begin = _cpu_seconds(inodes), time.monotonic()
        time.sleep(IDLE_SECONDS)
        percent = 100 * (_cpu_seconds(inodes) - before) / (time.monotonic() - begin)
        self._say(f"idle lab: {percent:.1f} % of one core")
        return {"cpu_percent": round(percent, 2)}

    def _requests(self, count: int, port: int = 80) -> dict:
        done = {}
        for family, vip in self._vips.items():
            figures = without_log(self._client.gets(self._client.url(vip, port=port), count))
            tunnel = "through IPv6 tunnels" if port == WEB6_PORT else "through IPv4 tunnels"
            self._say(f"{count} requests over {family} {tunnel}: {claims.requests_text(figures)}")
            done[family] = figures
        return done

    def _transfers(self, direction: str) -> dict:
        transfer, path = {
            "upload": (self._client.upload, "/upload"),
            "download": (self._client.download, "/bytes/50m"),
        }[direction]
        done = {}
        for family, vip in self._vips.items():
            before = self._bytes_at_balancer()
            figures = transfer(self._client.url(vip, path))
            figures["bytes_to_balancer"] = self._bytes_at_balancer() - before
            self._say(f"50 MB {direction} over {family}: {claims.transfer_text(figures)}")
            done[family] = figures
        return done

    def _bytes_at_balancer(self) -> int:
        """Bytes that the router has sent to the balancer."""
        interface = self._lab.topology.host(LB).router_interface
        shown = self._lab.exec("router", ["ip", "-s", "-j", "link", "show", interface]).stdout
        return json.loads(shown)[0]["stats64"]["tx"]["bytes"]

    def _drain_during_streams(self) -> dict:
        path = f"/events?seconds={STREAM_SECONDS}"
        streams = {
            family: self._client.start_streams(self._client.url(vip, path), STREAMS)
            for family, vip in self._vips.items()
        }
        opened = {family: running.wait_open() for family, running in streams.items()}
        for family, figures in opened.items():
            spread = claims.spread_text(figures["backends"])
            self._say(f"{figures['open']} streams over {family} are open: {spread}")
        requests = {
            family: self._client.start_gets(self._client.url(vip), PAUSE_SECONDS)
            for family, vip in self._vips.items()
        }
        time.sleep(DRAIN_AFTER_SECONDS)
        drain = self._drain()
        status = drain["exit_status"]
        self._say(
            f"`holdfast backend drain {POOL}/{self._drained}` "
            + ("did not end" if status is None else f"ended with {status}")
            + f" after {drain['seconds']:.1f} s, while requests went on"
        )
        done_requests = {family: running.stop() for family, running in requests.items()}
        done_streams = {family: running.result() for family, running in streams.items()}
        for family, figures in done_streams.items():
            self._say(f"streams over {family}: {claims.streams_text(figures)}")
        last_end = max(
            figures["last_end"].get(self._drained, 0.0) for figures in done_streams.values()
        )
        drain["seconds_after_last_stream"] = round(drain.pop("ended") - last_end, 3)
        begun = drain.pop("begun")
        log = [entry for figures in done_requests.values() for entry in figures["log"]]
        later = [backend for started, _, backend in log if started > begun]
        drain["requests_begun_later"] = len(later)
        drain["of_these_on_drained"] = later.count(self._drained)
        return {
            "streams_opened": opened,
            "streams": done_streams,
            "requests_meanwhile": {
                family: without_log(figures) for family, figures in done_requests.items()
            },
            "drain": drain,
        }

    def _drain(self) -> dict:
        """Runs the command to its end. "begun" and "ended" are CLOCK_MONOTONIC; new flows are
        counted from the moment when the daemon says that the backend drains."""
        target = f"{POOL}/{self._drained}"
        begin = time.monotonic()
        command = self._lab.popen(
            LB,
            self._lab.holdfast_argv(["backend", "drain", target], lb=LB),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        lines = []

        def follow() -> None:
            for line in command.stdout:
                lines.append(line.rstrip())
                self._say(f"  holdfast: {lines[-1]}")

        follower = threading.Thread(target=follow)
        follower.start()

        def draining() -> bool:
            return self._backend()["state"] == "draining" or command.poll() is not None

        services.wait_until(draining, f"{target} is draining")
        begun = time.monotonic()
        at_begin = self._backend()
        try:
            status = command.wait(DRAIN_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
            command.kill()
            command.wait()
        ended = time.monotonic()
        follower.join()
        at_end = self._backend()
        return {
            "exit_status": status,
            "lines": lines,
            "seconds": round(ended - begin, 3),
            "begun": begun,
            "ended": ended,
            "new_flows": at_end["new_flows"] - at_begin["new_flows"],
            "active_at_begin": at_begin["active_flows"],
            "active_at_end": at_end["active_flows"],
            "state_at_end": at_end["state"],
        }

    def _enable(self) -> dict:
        self._lab.holdfast(["backend", "enable", f"{POOL}/{self._drained}"], lb=LB)
        begin = time.monotonic()
        with contextlib.suppress(LabError):  # then the figures say it
            services.wait_until(
                lambda: self._backend()["state"] == "eligible", "enabled", timeout=5
            )
        seconds = round(time.monotonic() - begin, 3)
        done = {"state": self._backend()["state"], "seconds": seconds, "requests": {}}
        for family, vip in self._vips.items():
            figures = without_log(self._client.gets(self._client.url(vip), MIX_REQUESTS))
            done["requests"][family] = figures
            text = claims.requests_text(figures)
            self._say(f"{self._drained} enabled again; {family}: {text}")
        return done

    def _backend(self) -> dict:
        """The drained backend's row of `holdfast pool show`."""
        rows = self._lab.pool(POOL, lb=LB)["backends"]
        return next(row for row in rows if row["name"] == self._drained)

    def _tunnels(self) -> dict:
        """What the agents counted, summed over the backends."""
        total: dict[str, int] = {}
        for backend in self._lab.topology.backends:
            argv = [str(self._lab.program("holdfast-agent")), "status", topology.INTERFACE]
            argv += ["--json", "--pin-dir", str(self._lab.pin_dir(backend.name))]
            status = json.loads(self._lab.exec(backend.name, argv).stdout)
            for name, count in status["interfaces"][0]["counters"].items():
                total[name] = total.get(name, 0) + count
        return total

    def _packets(self) -> dict:
        """What the balancer counted. Read again while a last packet is on its way: the counters
        are read one after the other."""
        for _ in range(10):
            stats = self._lab.stats(lb=LB)
            if stats["identity"]["holds"]:
                break
            time.sleep(0.2)
        return {name: stats[name] for name in ("packets", "identity", "flow_table")}


def _cpu_seconds(inodes: set[int]) -> float:
    """User and system time of all processes in these namespaces so far."""
    ticks = 0
    for pid in namespaces.processes_in(inodes):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")



