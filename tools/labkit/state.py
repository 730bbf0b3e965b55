# SPDX-License-Identifier: Apache-2.0
"""What labs exist on this machine: one folder a lab under /run/holdfast-lab, with a state file.

A lab is *kept* (made by `tools/lab up`: it stays until `tools/lab down`) or *owned* by a running
process (a test, the quickstart). An owned lab whose owner is gone is stale, and so is a kept lab of
an earlier boot: the next `up` removes it. Whatever a lab is about to make is written down before it
is made, so that a run killed at any moment leaves nothing that cannot be found.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import re
from pathlib import Path

from labkit.errors import LabError

ROOT = Path("/run/holdfast-lab")
DEFAULT_NAME = "hf"
_STATE_FILE = "state.json"
# Part of namespace names and of paths in bpffs, where a dot is refused; short, because a Unix
# socket's path has at most 107 bytes.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise LabError(
            f"{name!r} cannot name a lab: use up to 20 of a-z, 0-9 and '-', a letter first"
        )
    return name


@contextlib.contextmanager
def locked():
    """Held while labs are claimed or removed, so that two runs cannot take the same name. The
    root folder goes with the last lab."""
    while True:
        ROOT.mkdir(mode=0o755, exist_ok=True)
        path = ROOT / ".lock"
        try:
            lock = open(path, "w")
        except FileNotFoundError:
            continue  # the last lab went between the two lines
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_same_file(lock, path):
                continue  # it was removed while we waited: others lock a new one
            yield
            if not names():
                path.unlink()
                ROOT.rmdir()
            return


def _is_same_file(opened, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened.fileno()), path.stat())
    except FileNotFoundError:
        return False


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of `pid`; None when no such process runs (a dead one that
    nobody has waited for does not run). With the pid it names one process, however often pids are
    used again."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command in brackets may hold spaces and brackets: count from the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


@dataclasses.dataclass
class State:
    """The state file of one lab."""

    name: str
    purpose: str  # who made it, in words
    boot: str = dataclasses.field(default_factory=boot_id)
    owner: dict | None = None  # {"pid", "start"}; None: the lab is kept
    lbs: int = 1
    backends: int = 3
    queues: int = 1
    encapsulation: str = "ipip"
    build_dir: str | None = None
    bare: bool = False
    static_routes: bool = False
    # Name -> inode of the namespace; 0 while it is being made.
    namespaces: dict = dataclasses.field(default_factory=dict)
    mounts: list = dataclasses.field(default_factory=list)
    # "nginx@b1" -> {"pid", "start"}
    services: dict = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return ROOT / self.name

    def save(self) -> None:
        """Replaces the state file as a whole: a reader never sees half of it."""
        part = self.folder / (_STATE_FILE + ".part")
        part.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")
        part.rename(self.folder / _STATE_FILE)

    def set_owner(self, pid: int | None) -> None:
        self.owner = None if pid is None else {"pid": pid, "start": start_time(pid)}

    def owner_alive(self) -> bool:
        return self.owner is not None and start_time(self.owner["pid"]) == self.owner["start"]

    def stale(self) -> bool:
        return self.boot != boot_id() or (self.owner is not None and not self.owner_alive())


class NotUnderstood(LabError):
    """A state file that this version of the lab cannot read. Its lab may be up: nothing of it is
    touched."""

    def __init__(self, path: Path, reason: str):
        super().__init__(
            f"{path} is not understood: {reason}; another version of tools/lab may have made this "
            "lab: use that one, or remove its processes and namespaces, then its folder, by hand"
        )


def exists(name: str) -> bool:
    """There is such a lab, whether its state file is understood or not."""
    return (ROOT / name / _STATE_FILE).exists()


def load(name: str) -> State | None:
    """None when there is no lab of that name."""
    path = ROOT / name / _STATE_FILE
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotUnderstood(path, error.strerror) from None
    except ValueError:
        raise NotUnderstood(path, "it is not JSON") from None
    return _state_of(content, path)


def load_all() -> tuple[list[State], list[NotUnderstood]]:
    """All labs, and why the others are not among them."""
    found, faults = [], []
    for name in names():
        try:
            one = load(name)
        except NotUnderstood as fault:
            faults.append(fault)
            continue
        if one is not None:
            found.append(one)
    return found, faults


def _state_of(content, path: Path) -> State:
    if not isinstance(content, dict):
        raise NotUnderstood(path, "it is not a JSON object")
    fields = {field.name: field for field in dataclasses.fields(State)}
    if unknown := sorted(set(content) - set(fields)):
        raise NotUnderstood(path, f"it has the unknown key {unknown[0]!r}")
    # An earlier version may not have known the others: their defaults are what it did.
    for key in ("name", "purpose", "boot", "owner", "namespaces"):
        if key not in content:
            raise NotUnderstood(path, f"it has no {key!r}")
    for key, value in content.items():
        if not isinstance(value, fields[key].type):
            raise NotUnderstood(path, f"its {key!r} is of another type")
    if content["name"] != path.parent.name:
        raise NotUnderstood(path, f"it is of a lab {content['name']!r}")
    found = State(**content)
    for process in (*filter(None, [found.owner]), *found.services.values()):
        if not isinstance(process, dict) or set(process) != {"pid", "start"}:
            raise NotUnderstood(path, "a process in it has other keys than 'pid' and 'start'")
    return found


def names() -> list[str]:
    try:
        return sorted(entry.name for entry in ROOT.iterdir() if entry.is_dir())
    except FileNotFoundError:
        return []


def claim(state: State) -> None:
    """Makes the lab's folder and state file. Requires: the lock is held, the name is free."""
    # A folder without a state file is what a run killed right here left behind.
    state.folder.mkdir(mode=0o755, exist_ok=True)
    state.save()
