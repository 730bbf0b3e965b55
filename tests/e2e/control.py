# SPDX-License-Identifier: Apache-2.0
"""The real control plane with made-up counters and no workers (control_under_test), in a temporary
folder and without root; and the real `holdfast` that asks it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HOLDFAST_BUILD", ROOT / "build"))
HOLDFAST = BUILD / "ctrl" / "holdfast"
CONTROL = BUILD / "tests" / "control_under_test"

CONFIG = """
[site]
name = "test"
[dataplane]
ports = [{{name = "p0", vdev = "net_null0"}}]
hash_seed_file = "seed"
tunnel_source_v4 = "192.0.2.9"
[control]
socket = "{socket}"
[[vip]]
address = "203.0.113.10"
[[vip]]
address = "2001:db8::10"
[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8::10"]
ports = "{port}"
pool = "web"
[[service]]
name = "dns"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "53"
pool = "dns"
[[pool]]
name = "web"
check = "connect"
table_size = 1009
backends = [
  {{name = "b1", address = "192.0.2.1", next_hop = {{port = "p0", mac = "02:00:00:00:01:01", mtu = 1600}}}},
  {{name = "b2", address = "192.0.2.2", next_hop = {{port = "p0", mac = "02:00:00:00:01:02", mtu = 1600}}}},
  {{name = "b3", address = "192.0.2.3", weight = 0, next_hop = {{port = "p0", mac = "02:00:00:00:01:03", mtu = 1600}}}},
]
[[pool]]
name = "dns"
table_size = 1009
backends = [
  {{name = "b1", address = "192.0.2.1", next_hop = {{port = "p0", mac = "02:00:00:00:01:01"}}}},
  {{address = "192.0.2.8", next_hop = {{port = "p0", mac = "02:00:00:00:01:08"}}}},
]
[[check]]
name = "connect"
kind = "tcp"
interval = "100ms"
timeout = "100ms"
rise = 2
fall = 2
"""
# control_under_test plays 192.0.2.N on 127.0.0.N.


class Listener:
    """Backends' port: accepts and closes, on all of 127/8 or on one address only."""

    def __init__(self, address="0.0.0.0", port=0):
        self.socket = socket.create_server((address, port), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                self.socket.accept()[0].close()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Daemon:
    """control_under_test with its folder."""

    def __init__(self, port, config=CONFIG):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-cli-")
        self.path = Path(self.folder.name)
        self.socket = str(self.path / "run" / "holdfast.sock")
        (self.path / "seed").write_text("00112233445566ff\n")
        self.config = self.path / "holdfast.toml"
        self.config.write_text(config.format(socket=self.socket, port=port))
        self.log = (self.path / "log").open("w+")
        self.process = subprocess.Popen(
            [CONTROL, self.config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log, text=True, bufsize=1)
        self.published = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            self.published.append(json.loads(line))
        else:
            raise AssertionError(self.logged())
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.published.append(json.loads(line))

    def say(self, line):
        self.process.stdin.write(line + "\n")

    def logged(self):
        return (self.path / "log").read_text()

    def run(self, *words, check=None, timeout=20):
        result = subprocess.run([HOLDFAST, "--socket", self.socket, *words], capture_output=True,
                                text=True, timeout=timeout)
        if check is not None:
            assert result.returncode == check, (words, result)
        return result

    def json(self, *words, check=0):
        lines = self.run("--json", *words, check=check).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def backend(self, pool, name):
        rows = self.json("pool", "show", pool)[-1]["backends"]
        return next(row for row in rows if row["name"] == name)

    def wait_for(self, pool, name, state, seconds=5):
        until = time.monotonic() + seconds
        while (row := self.backend(pool, name))["state"] != state:
            if time.monotonic() > until:
                raise AssertionError(f"{pool}/{name} is not {state}: {row}\n{self.logged()}")
            time.sleep(0.05)
        return row

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.stdin.close()
        code = self.process.wait(10)
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()
        return code


class WithDaemon(unittest.TestCase):
    """A daemon of its own for each test, whose checked backends are eligible."""

    def setUp(self):
        self.listener = Listener()
        self.daemon = Daemon(self.listener.port)
        self.daemon.wait_for("web", "b1", "eligible")
        self.daemon.wait_for("web", "b2", "eligible")

    def tearDown(self):
        self.listener.close()
        self.assertEqual(self.daemon.stop(), 0)
