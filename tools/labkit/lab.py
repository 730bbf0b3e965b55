# SPDX-License-Identifier: Apache-2.0
"""The `Lab` class: raises a lab, runs commands in it, removes it."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

from labkit import raising, removal, routing, services, state
from labkit.errors import LabError
from labkit.topology import Topology

DEFAULT_BUILD_DIR = Path(__file__).resolve().parents[2] / "build"


class Lab:
    """One lab. As a context manager it is raised on entry and removed at the end; it belongs to
    this process, and when the process is killed the next `up` of any lab removes what is left.

    name       part of all names outside the lab's namespaces; default: `hf`, or the next one free
    build_dir  where holdfastd, holdfast and holdfast-agent are
    bare       namespaces, BIRD and nginx only; the VIPs are then reached after `route_vips_to`
    static_routes  the router has static routes to the balancers; else holdfastd announces the VIPs
               to it, by the gobgpd beside it. Default: as `bare`, where nothing would announce
    lbs, backends, queues  see Topology
    encapsulation  of both pools
    running_lbs  of the balancers so many have a holdfastd at first; default: all
    purpose    who made it, for `tools/lab status`

    Not for several threads at once, `exec` and `popen` excepted.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        build_dir: Path | str = DEFAULT_BUILD_DIR,
        bare: bool = False,
        static_routes: bool | None = None,
        lbs: int = 1,
        backends: int = 3,
        queues: int = 1,
        encapsulation: str = "ipip",
        running_lbs: int | None = None,
        purpose: str = "a test",
    ):
        self._static_routes = bare if static_routes is None else static_routes
        self.topology = Topology(
            lb_count=lbs,
            backend_count=backends,
            lb_queues=queues,
            static_routes=self._static_routes,
        )
        self._wanted_name = name and state.check_name(name)
        self._build_dir = Path(build_dir).resolve()
        self._bare = bare
        self._encapsulation = encapsulation
        self._running_lbs = running_lbs
        self._purpose = purpose
        self._state: state.State | None = None
        self.services: dict[str, services.Service] = {}  # "nginx@b1" -> what this process started

    @classmethod
    def attach(cls, name: str) -> "Lab":
        """A lab that is up already, raised by another process."""
        found = state.load(name)
        if found is None:
            raise LabError(f"there is no lab {name!r}: `tools/lab up` raises one")
        return cls.of(found)

    @classmethod
    def of(cls, found: state.State) -> "Lab":
        """The lab that this state file describes."""
        lab = cls(
            found.name,
            build_dir=found.build_dir,
            bare=found.bare,
            static_routes=found.static_routes,
            lbs=found.lbs,
            backends=found.backends,
            queues=found.queues,
            encapsulation=found.encapsulation,
            purpose=found.purpose,
        )
        lab._state = found
        return lab

    # Names and places.

    @property
    def state(self) -> state.State:
        if self._state is None:
            raise LabError("the lab is not up")
        return self._state

    @property
    def name(self) -> str:
        return self.state.name

    def namespace(self, host: str) -> str:
        if host not in self.topology.host_names:
            self.topology.host(host)  # says which hosts there are
        return f"{self.name}-{host}"

    def path(self, *parts: str) -> Path:
        """A place in the lab's folder; its first part is a host's name or a shared folder's."""
        return self.state.folder.joinpath(*parts)

    def pin_dir(self, host: str) -> Path:
        """A folder of `host` in the lab's own bpffs. It is mounted outside /sys, because
        `ip netns exec` mounts /sys anew."""
        return self.path("bpf", host)

    def program(self, name: str) -> Path:
        """A built program, wherever in the build folder it is."""
        found = find_program(self._build_dir, name)
        if found is None:
            raise LabError(
                f"{name} is not built in {self._build_dir}: run tools/quickstart once, or "
                f"`meson compile -C {self._build_dir}`"
            )
        return found

    def holdfast_socket(self, lb: str = "lb1") -> Path:
        return self.path(lb, "holdfast.sock")

    def gobgp_socket(self, lb: str = "lb1") -> Path:
        return self.path(lb, "gobgpd.sock")

    # Raising and removing.

    def __enter__(self) -> "Lab":
        self.up()
        return self

    def __exit__(self, *_) -> None:
        if self._state is not None and self._state.owner is not None:
            self.down()

    def up(self) -> None:
        """Raises the lab; when that fails, nothing of it is left."""
        if os.geteuid() != 0:
            raise LabError("a lab needs root: it makes network namespaces")
        if self._state is not None:
            raise LabError(f"lab {self.name} is up already")
        try:
            wanted = state.State(
                name="",  # settled by claim()
                purpose=self._purpose,
                lbs=self.topology.lb_count,
                backends=self.topology.backend_count,
                queues=self.topology.lb_queues,
                encapsulation=self._encapsulation,
                build_dir=str(self._build_dir),
                bare=self._bare,
                static_routes=self._static_routes,
            )
            self._state = raising.claim(wanted, self._wanted_name, self.topology)
            raising.make_network(self)
            self._start_services()
        except BaseException:
            if self._state is not None:
                self.down()
            raise

    def keep(self) -> None:
        """The lab stays when this process ends, until `tools/lab down`."""
        self.state.set_owner(None)
        self.state.save()

    def down(self) -> None:
        """Removes the lab: processes, namespaces, mounts, files. Does nothing when it is gone."""
        if self._state is None:
            return
        with removal.undisturbed(), state.locked():
            removal.remove(self._state)
        for service in self.services.values():
            service.process.wait()
        self.services.clear()
        self._state = None

    def _start_services(self) -> None:
        routing.start_bird(self)
        if not self._static_routes:
            for lb in self.topology.lbs:
                self.start_gobgpd(lb.name)
        blob_sha256 = services.write_blob(self.path("www"))
        web = {b: services.start_web(self, b, blob_sha256) for b in self.topology.backends}
        if self._static_routes:
            self.wait_routes(*(lb.name for lb in self.topology.lbs))
        for backend, started in web.items():
            services.wait_until(
                lambda b=backend, s=started: services.web_ready(self, b, s),
                f"nginx on {backend.name} serves",
                started,
            )
        if self._bare:
            return
        raising.mount_bpffs(self)
        for backend in self.topology.backends:
            services.attach_agent(self, backend)
        running = [lb.name for lb in self.topology.lbs[: self._running_lbs]]
        for lb in running:
            self.start_holdfastd(lb)
        for lb in running:
            self.wait_eligible(lb)
        if not self._static_routes:
            self.wait_routes(*running)

    # Running things in it.

    def exec(
        self, host: str, argv: list[str], *, check: bool = True, **options
    ) -> subprocess.CompletedProcess:
        """Runs a command in `host` and waits; output is captured as text. With `check` a failure
        is a LabError with what the command said."""
        options = {"capture_output": True, "text": True} | options
        done = subprocess.run(self._argv(host, argv), **options)
        if check and done.returncode != 0:
            said = ((done.stderr or "") + (done.stdout or "")).strip()
            raise LabError(f"`{' '.join(argv)}` on {host} ended with {done.returncode}: {said}")
        return done

    def popen(self, host: str, argv: list[str], **options) -> subprocess.Popen:
        """Starts a command in `host`; text mode. It ends with the lab at the latest."""
        return subprocess.Popen(self._argv(host, argv), **({"text": True} | options))

    def _argv(self, host: str, argv: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.namespace(host), *argv]

    def start_service(self, name: str, host: str, argv: list[str]) -> services.Service:
        """Starts a program of the lab. It has its own session: Ctrl-C reaches us, not it."""
        key = f"{name}@{host}"
        log = self.path(host, f"{name}.log")
        with open(log, "a") as output:
            process = self.popen(
                host,
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.services[key] = services.Service(key, process, log)
        self.state.services[key] = {"pid": process.pid, "start": state.start_time(process.pid)}
        self.state.save()
        return self.services[key]

    def stop_service(self, key: str, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends a program that this process started ("holdfastd@lb1"); its exit status."""
        service = self.services.pop(key)
        service.process.send_signal(how)
        status = service.process.wait(timeout=15)
        del self.state.services[key]
        self.state.save()
        return status

    def kill_service(self, key: str) -> None:
        """kill -9 of a program that this process started, and of all that it started."""
        service = self.services.pop(key)
        os.killpg(service.pid, signal.SIGKILL)  # each has a session, so a group, of its own
        service.process.wait(timeout=15)
        del self.state.services[key]
        self.state.save()

    # The network.

    def set_link(self, host: str, up: bool) -> None:
        """Takes the router's end of the link to `host` down or up; the host loses its carrier."""
        interface = self.topology.host(host).router_interface
        self.exec("router", ["ip", "link", "set", interface, "up" if up else "down"])

    def start_gobgpd(self, lb: str = "lb1") -> services.Service:
        """Starts the BGP speaker beside `lb` and waits until its API answers."""
        host = self.topology.host(lb)
        speaker = routing.start_gobgpd(self, host)
        socket = self.gobgp_socket(lb)
        services.wait_until(
            lambda: services.unix_socket_answers(socket), f"gobgpd on {lb} answers", [speaker]
        )
        return speaker

    def wait_routes(self, *lbs: str, timeout: float = 15.0) -> None:
        """Waits until the router has the VIPs of both families by way of exactly these balancers."""
        known = [self.services[key] for key in ("bird@router",) if key in self.services]
        services.wait_until(
            lambda: all(routing.gateways(self, vip) == set(lbs) for vip in self.topology.vips),
            f"the router has the VIPs by way of {', '.join(lbs) or 'nobody'}",
            known,
            timeout,
        )

    def route_vips_to(self, host: str) -> None:
        """Puts plain routes to the VIPs before BIRD's, straight to one host: what the lab does
        without a balancer."""
        target = self.topology.host(host)
        for vip, gateway in ((self.topology.vip4, target.v4), (self.topology.vip6, target.v6)):
            self.exec("router", ["ip", "route", "replace", vip, "via", gateway, "metric", "1"])

    # Holdfast.

    def start_holdfastd(self, lb: str = "lb1", config: Path | None = None) -> services.Service:
        """Starts the daemon, by default with the lab's own configuration, and waits until its
        socket answers."""
        host = self.topology.host(lb)
        if config is None:
            config = services.write_holdfast_config(self, host)
        daemon = services.start_holdfastd(self, host, config)
        socket = self.holdfast_socket(lb)
        services.wait_until(
            lambda: services.unix_socket_answers(socket), f"holdfastd on {lb} answers", [daemon]
        )
        return daemon

    def holdfast(
        self, argv: list[str], *, lb: str = "lb1", check: bool = True, **options
    ) -> subprocess.CompletedProcess:
        """Runs the CLI against the daemon of `lb`."""
        return self.exec(lb, self.holdfast_argv(argv, lb=lb), check=check, **options)

    def holdfast_argv(self, argv: list[str], *, lb: str = "lb1") -> list[str]:
        return [str(self.program("holdfast")), "--socket", str(self.holdfast_socket(lb)), *argv]

    def pool(self, name: str, *, lb: str = "lb1") -> dict:
        """`holdfast pool show NAME --json`."""
        return json.loads(self.holdfast(["pool", "show", name, "--json"], lb=lb).stdout)

    def stats(self, *, lb: str = "lb1") -> dict:
        """`holdfast stats --json`."""
        return json.loads(self.holdfast(["stats", "--json"], lb=lb).stdout)

    def wait_eligible(self, lb: str = "lb1", timeout: float = 10.0) -> None:
        """Waits until every backend of every pool may receive new flows."""

        def all_eligible() -> bool:
            return all(
                backend["state"] == "eligible"
                for pool in ("web", "web6")
                for backend in self.pool(pool, lb=lb)["backends"]
            )

        daemon = self.services.get(f"holdfastd@{lb}")  # None: another process started it
        services.wait_until(
            all_eligible, f"all backends are eligible on {lb}", [daemon] if daemon else [], timeout
        )


def find_program(build_dir: Path, name: str) -> Path | None:
    """By what Meson wrote down about its targets; a folder with the bare programs does as well."""
    places = [build_dir / name]
    with contextlib.suppress(FileNotFoundError):
        targets = json.loads((build_dir / "meson-info" / "intro-targets.json").read_text())
        places += [Path(t["filename"][0]) for t in targets if t["name"] == name]
    return next((place for place in places if place.is_file()), None)
