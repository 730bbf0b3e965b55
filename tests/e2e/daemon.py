# SPDX-License-Identifier: Apache-2.0
"""The real holdfastd in a folder of its own, for tests: writes its config, starts and stops it, and
asks it through the CLI."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import state  # noqa: E402

BUILD = Path(os.environ.get("HOLDFAST_BUILD", Path(__file__).resolve().parents[2] / "build"))
DAEMON = BUILD / "lb" / "holdfastd"
CLI = BUILD / "ctrl" / "holdfast"
NOBODY = 65534
_FOLDER = "holdfast-test-"
_libc = ctypes.CDLL(None)


def _end_with_parent() -> None:
    """In a child before it becomes the daemon: when the test is killed, so is the daemon."""
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _remove_stale_folders() -> None:
    """What test runs left behind that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        found = re.match(rf"{_FOLDER}(\d+)-", path.name)
        if found and state.start_time(int(found[1])) is None:
            with contextlib.suppress(OSError):
                shutil.rmtree(path)


def wait_for(condition, what: str, seconds: float = 15.0):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.02)
    return value


class Daemon:
    """One holdfastd. `config` is TOML; {folder} in it stands for the daemon's folder, where also
    `seed` is; its [control] socket is to be {folder}/holdfast.sock. `prefix` is put before the command, such as ["ip", "netns", "exec", NAME]."""

    def __init__(self, config: str, *, prefix=(), user: int | None = None):
        _remove_stale_folders()
        self._temporary = tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-")
        self.folder = Path(self._temporary.name)
        self.prefix = list(prefix)
        self._user = user
        (self.folder / "seed").write_text("00112233445566ff\n")
        (self.folder / "tmp").mkdir(exist_ok=True)
        self.config_path = self.folder / "holdfast.toml"
        self.config_path.write_text(config.replace("{folder}", str(self.folder)))
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "Daemon":
        return self.start()

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        self._temporary.cleanup()

    def _popen(self, *arguments: str) -> subprocess.Popen:
        if self._user is not None:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, self._user, self._user)
        # TMPDIR: so that a test sees what the daemon leaves in it.
        environment = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        with open(self.folder / "stderr", "wb") as stderr:
            return subprocess.Popen(
                [*self.prefix, str(DAEMON), "--config", str(self.config_path), *arguments],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
                env=environment,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user is not None else None,
                preexec_fn=_end_with_parent,
            )

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def start(self, *arguments: str) -> "Daemon":
        """Returns when it forwards."""
        self.process = self._popen(*arguments)

        def running():
            if self.process.poll() is not None:
                raise AssertionError(f"holdfastd ended with {self.process.returncode}: {self.stderr}")
            return "running:" in self.stderr

        wait_for(running, "holdfastd to run")
        return self

    def ask(self, *words: str) -> dict:
        """The result of a command of the CLI."""
        command = [str(CLI), "--socket", str(self.folder / "holdfast.sock"), "--json", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        if done.returncode != 0:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def stats_after(self, received: int) -> dict:
        """`stats` when so many packets have been received and dealt with."""

        def complete():
            stats = self.ask("stats")
            whole = stats["packets"]["received"] >= received and stats["identity"]["holds"]
            return stats if whole else None

        return wait_for(complete, f"{received} packets to be dealt with")

    def run_to_end(self, *arguments: str, seconds: float = 20.0) -> tuple[int, str]:
        """For faults at the start: the exit status and standard error."""
        self.process = self._popen(*arguments)
        status = self.process.wait(seconds)
        return status, self.stderr

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def cpu_seconds(self) -> float:
        """Of the whole process so far. Requires: no prefix that forks."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
