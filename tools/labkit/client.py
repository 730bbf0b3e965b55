# SPDX-License-Identifier: Apache-2.0
"""The client's traffic, started from outside: runs traffic.py in the client's namespace."""

import json
import subprocess
import sys
from pathlib import Path

from labkit.config_files import WEB_PORT
from labkit.errors import LabError

_PROGRAM = Path(__file__).with_name("traffic.py")


def without_log(figures: dict) -> dict:
    """The figures of requests without the log of each."""
    return {name: value for name, value in figures.items() if name != "log"}


class Running:
    """Traffic under way. `stop` or `result` ends it with its figures."""

    def __init__(self, process: subprocess.Popen):
        self._process = process

    def wait_open(self) -> dict:
        """Streams only: figures at the moment when every stream is open or has failed."""
        return self._line(self._process.stdout.readline())

    def stop(self) -> dict:
        """Ends endless requests: no new one starts, those under way finish."""
        self._process.stdin.close()
        self._process.stdin = None  # communicate() would flush it
        return self.result()

    def result(self) -> dict:
        output, _ = self._process.communicate()
        lines = output.strip().splitlines()
        return self._line(lines[-1] if lines else "")

    def _line(self, text: str) -> dict:
        if not text:
            raise LabError("the client's traffic ended without figures; its error is above")
        return json.loads(text)


class Client:
    """The client host of `lab`."""

    def __init__(self, lab):
        self._lab = lab

    def url(self, vip: str, path: str = "/", port: int = WEB_PORT) -> str:
        host = f"[{vip}]" if ":" in vip else vip
        return f"http://{host}{'' if port == 80 else f':{port}'}{path}"

    def gets(self, url: str, count: int, parallel: int = 2) -> dict:
        argv = ["gets", "--url", url, "--count", str(count), "--parallel", str(parallel)]
        return self._start(argv).result()

    def start_gets(
        self,
        url: str,
        pause: float = 0.0,
        *,
        limit: float | None = None,
        local_ports: str | None = None,
    ) -> Running:
        """Requests one after the other until `stop()`, `pause` seconds between them; each may take
        `limit` seconds and comes from `local_ports` ("61000-62000")."""
        lane = ["--parallel", "1", "--pause", str(pause)]
        lane += [] if limit is None else ["--limit", str(limit)]
        lane += [] if local_ports is None else ["--local-ports", local_ports]
        return self._start(["gets", "--url", url, "--until-eof", *lane])

    def upload(self, url: str) -> dict:
        return self._start(["upload", "--url", url, "--file", self._blob()]).result()

    def download(self, url: str) -> dict:
        return self._start(["download", "--url", url, "--file", self._blob()]).result()

    def start_streams(self, url: str, count: int, *, silence: float | None = None) -> Running:
        """`silence`: after so many seconds without an event a stream counts as broken."""
        argv = ["streams", "--url", url, "--count", str(count)]
        return self._start(argv + ([] if silence is None else ["--silence", str(silence)]))

    def _blob(self) -> str:
        return str(self._lab.path("www", "50m"))

    def _start(self, argv: list[str]) -> Running:
        process = self._lab.popen(
            "client",
            [sys.executable, str(_PROGRAM), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        return Running(process)
