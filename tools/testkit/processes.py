# SPDX-License-Identifier: Apache-2.0
"""Runs commands in process groups of their own, so that a hung one can be ended with its children
and an interrupt reaches it as an interrupt (a lab then takes itself down)."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Finished:
    status: int  # negative: ended by that signal
    output: str  # both streams, in order
    timed_out: bool

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out

    def why(self) -> str:
        if self.timed_out:
            return "it took too long and was ended"
        if self.status < 0:
            return f"it was ended by {signal.Signals(-self.status).name}"
        return f"it exited with {self.status}"


_running: set[subprocess.Popen] = set()
_lock = threading.RLock()  # a signal handler takes it while its thread may hold it
_stopped = False


class Stopped(Exception):
    """No command is started any more: tools/test was interrupted."""


def run(
    command: list[str], *, timeout: float, env: dict[str, str] | None = None, behind: bool = False
) -> Finished:
    """Runs `command` at the top of the tree. `env` is added to the environment. `behind`: it gets only
    the time that others leave."""
    if behind:
        command = ["nice", "-n", "19", *command]
    if _stopped:
        raise Stopped
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with _lock:
            _running.add(process)
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            end(process)
        finally:
            with _lock:
                _running.discard(process)
        out.seek(0)
        text = out.read().decode(errors="replace")
    return Finished(process.returncode, text, timed_out)


def end(process: subprocess.Popen) -> None:
    """Asks with an interrupt first: tests clean up after themselves on it."""
    for sig, patience in ((signal.SIGINT, 20), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def stop() -> None:
    """For an interrupt: ends all that runs, without waiting here, and lets nothing new begin."""
    global _stopped
    _stopped = True
    with _lock:
        left = list(_running)
    for process in left:
        threading.Thread(target=end, args=(process,)).start()
