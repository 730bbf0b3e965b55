# SPDX-License-Identifier: Apache-2.0
"""Traffic across a fault: streams and requests run while something dies and comes back, and then it
is known what clients saw of it. The test_recovery_* files say what dies.

One lab with two balancers serves all tests of a process; each test leaves it whole."""

import atexit
import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import Lab  # noqa: E402
from labkit.client import Client  # noqa: E402
from labkit.lab import DEFAULT_BUILD_DIR, find_program  # noqa: E402

PROGRAMS = ("holdfastd", "holdfast", "holdfast-agent")
STREAMS = 12  # over each family
PAUSE_SECONDS = 0.03  # between the requests of one lane
# A request that takes longer has waited for something to be sent again.
SLOW_SECONDS = 0.5
# TCP waits twice as long before each further try: silence may last about twice the outage.
SILENCE_SECONDS = 20.0

_lab: Lab | None = None


def shared_lab() -> Lab:
    """Raised at the first call; removed when the process ends."""
    global _lab
    if _lab is None:
        _lab = Lab(f"t{os.getpid()}-rec", lbs=2, purpose="tests/e2e/test_recovery_*")
        atexit.register(_lab.down)
        _lab.up()
    return _lab


@unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
@unittest.skipUnless(
    all(find_program(DEFAULT_BUILD_DIR, name) for name in PROGRAMS),
    f"needs the programs in {DEFAULT_BUILD_DIR.name}/",
)
class RecoveryCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = shared_lab()

    def setUp(self):
        for lb in self.lab.topology.lbs:
            self.lab.wait_eligible(lb.name)
        self.lab.wait_routes(*(lb.name for lb in self.lab.topology.lbs))

    def start_traffic(self, seconds: float) -> "Traffic":
        """Streams of `seconds`, all open, and requests until `finish`."""
        return Traffic(self.lab, seconds)

    def assert_streams_went_on(self, traffic: "Traffic", except_on: str | None = None) -> None:
        """Every stream ran to its end; on the backend `except_on` they may have broken."""
        for family, figures in traffic.streams.items():
            broken = [one for one in figures["failures"] if one["backend"] != except_on]
            self.assertEqual(broken, [], f"over {family}")
            self.assertEqual(figures["ended_well"] + figures["broken"], STREAMS)

    def tell(self, what: str, seconds: float, traffic: "Traffic") -> None:
        """Prints one line: what happened, the time that it took, what clients saw."""
        print(f"{what}: {seconds:.2f} s; {traffic.text()}", flush=True)


class Traffic:
    """Streams and requests over both families. After `finish`: `streams` (figures by family) and
    `requests`, a list of (started, seconds, backend or None when it failed), times as
    time.monotonic() has them."""

    def __init__(self, lab: Lab, seconds: float):
        client = Client(lab)
        vips = {"IPv4": lab.topology.vip4, "IPv6": lab.topology.vip6}
        path = f"/events?seconds={seconds}"
        self._streams = {
            family: client.start_streams(client.url(vip, path), STREAMS, silence=SILENCE_SECONDS)
            for family, vip in vips.items()
        }
        self._requests = [
            client.start_gets(client.url(vip), PAUSE_SECONDS) for vip in vips.values()
        ]
        for running in self._streams.values():
            opened = running.wait_open()
            if opened["open"] != STREAMS:
                raise AssertionError(f"streams did not open: {opened}")
        self.ends = time.monotonic() + seconds  # not before this
        self.streams: dict[str, dict] = {}
        self.requests: list[tuple] = []
        self.failures: list[dict] = []  # the first of them, with reasons

    def finish(self) -> None:
        self.streams = {family: running.result() for family, running in self._streams.items()}
        figures = [running.stop() for running in self._requests]
        self.requests = sorted(tuple(entry) for one in figures for entry in one["log"])
        self.failures = [failure for one in figures for failure in one["failures"]]

    def disturbed_until(self, fault: float) -> float:
        """From `fault` to the end of the last request that failed or was slow; 0 when none was."""
        ends = [
            started + seconds
            for started, seconds, backend in self.requests
            if started + seconds > fault and (backend is None or seconds > SLOW_SECONDS)
        ]
        return max(ends, default=fault) - fault

    def failed(self, begin: float = 0.0, end: float = float("inf")) -> int:
        """Requests begun in this time that failed."""
        return sum(
            1 for started, _, backend in self.requests if backend is None and begin <= started < end
        )

    def text(self) -> str:
        whole = sum(figures["ended_well"] for figures in self.streams.values())
        broken = sum(figures["broken"] for figures in self.streams.values())
        silence = max(figures["longest_silence_seconds"] for figures in self.streams.values())
        return (
            f"streams {whole} whole, {broken} broken, longest silence {silence:.1f} s; "
            f"requests {len(self.requests)}, {self.failed()} failed"
        )
