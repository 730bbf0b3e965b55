# SPDX-License-Identifier: Apache-2.0
"""The programs of a lab: nginx with its application, holdfast-agent, holdfastd; routing.py has BIRD
and gobgpd.

Each `start_*` writes the program's configuration under the lab's folder, starts it in its
namespace and returns once it is ready to serve; what it prints goes to a log beside its
configuration.
"""

import dataclasses
import hashlib
import os
import random
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

from labkit import config_files, topology
from labkit.errors import LabError

BLOB_BYTES = 50 * 1024 * 1024
_TCP_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp


@dataclasses.dataclass
class Service:
    """One running program. `key` is "name@host"."""

    key: str
    process: subprocess.Popen
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def require_alive(self) -> None:
        if self.process.poll() is not None:
            raise LabError(f"{self.key} ended with {self.process.returncode}: {self.last_words()}")

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-5:]) if lines else "it said nothing"


def wait_until(condition, what: str, services: list[Service] = (), timeout: float = 10.0) -> None:
    """Polls `condition`; fails early when one of `services` ends."""
    deadline = time.monotonic() + timeout
    while not condition():
        for service in services:
            service.require_alive()
        if time.monotonic() > deadline:
            words = "; ".join(f"{s.key} said: {s.last_words()}" for s in services)
            raise LabError(f"{what}: not so after {timeout:.0f} s. {words}")
        time.sleep(0.02)


def write_blob(folder: Path) -> str:
    """The file for downloads and uploads, `50m`; returns its SHA-256. The bytes are the same in
    every lab, but look random: a byte lost or out of place changes the sum."""
    content = random.Random(50).randbytes(BLOB_BYTES)
    (folder / "50m").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def start_web(lab, backend: topology.Host, blob_sha256: str) -> list[Service]:
    folder = lab.path(backend.name)
    (folder / "tmp").mkdir(exist_ok=True)
    app_socket = folder / "app.sock"
    app_socket.unlink(missing_ok=True)
    program = Path(__file__).with_name("app.py")
    app = lab.start_service(
        "app", backend.name, [sys.executable, str(program), str(app_socket), backend.name]
    )
    _nginx_config(folder).write_text(
        config_files.nginx(backend, folder, lab.path("www"), blob_sha256, app_socket)
    )
    return [app, start_nginx(lab, backend)]


def start_nginx(lab, backend: topology.Host) -> Service:
    """With the configuration that `start_web` wrote."""
    folder = lab.path(backend.name)
    argv = ["nginx", "-p", str(folder), "-e", str(folder / "nginx-error.log")]
    return lab.start_service("nginx", backend.name, [*argv, "-c", str(_nginx_config(folder))])


def _nginx_config(folder: Path) -> Path:
    return folder / "nginx.conf"


def web_ready(lab, backend: topology.Host, web: list[Service]) -> bool:
    """True when nginx listens in both families and the application behind it answers."""
    app_socket = lab.path(backend.name) / "app.sock"
    nginx = web[-1]
    wanted = {config_files.WEB_PORT, config_files.WEB6_PORT}
    return (
        unix_socket_answers(app_socket)
        and wanted <= _listening_ports(nginx.pid, "tcp")
        and wanted <= _listening_ports(nginx.pid, "tcp6")
    )


def agent_argv(lab, backend: topology.Host) -> list[str]:
    argv = [str(lab.program("holdfast-agent")), "attach", topology.INTERFACE]
    argv += ["--pin-dir", str(lab.pin_dir(backend.name))]
    for vip in lab.topology.vips:
        argv += ["--vip", vip]
    for lb in lab.topology.lbs:
        argv += ["--lb", lb.v4, "--lb", lb.v6]
    return argv


def attach_agent(lab, backend: topology.Host) -> None:
    """The agent's program stays on the interface until the namespace goes. Once more: it is
    replaced."""
    done = lab.exec(backend.name, agent_argv(lab, backend), check=False)
    if done.returncode != 0:
        raise LabError(f"holdfast-agent on {backend.name}: {(done.stderr or done.stdout).strip()}")


def write_holdfast_config(lab, lb: topology.Host) -> Path:
    """One placement seed for all balancers of a lab: they must place alike."""
    seed_file = lab.path("seed")
    if not seed_file.exists():
        handle = os.open(seed_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w") as file:
            file.write(secrets.token_hex(8) + "\n")
    config = lab.path(lb.name) / "holdfast.toml"
    gobgp = None if lab.state.static_routes else lab.gobgp_socket(lb.name)
    config.write_text(
        config_files.holdfast(
            lab.topology,
            lb,
            seed_file,
            lab.holdfast_socket(lb.name),
            gobgp,
            lab.state.encapsulation,
        )
    )
    return config


def start_holdfastd(lab, lb: topology.Host, config: Path) -> Service:
    argv = [str(lab.program("holdfastd")), "--config", str(config)]
    return lab.start_service("holdfastd", lb.name, argv)


def unix_socket_answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _listening_ports(pid: int, table: str) -> set[int]:
    """Ports with a listening socket in the network namespace of `pid`; `table`: "tcp", "tcp6"."""
    try:
        lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    except OSError:
        return set()
    rows = (line.split() for line in lines)
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _TCP_LISTEN}
