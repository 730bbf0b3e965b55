# SPDX-License-Identifier: Apache-2.0
"""`tools/lab`: the lab from the command line."""

import argparse
import json
import os
import shlex
import signal
import sys

from labkit import namespaces, routing, state
from labkit.errors import LabError
from labkit.lab import DEFAULT_BUILD_DIR, Lab
from labkit.topology import Topology

_EPILOG = """\
examples:
  tools/lab up
  tools/lab exec client curl -s http://203.0.113.10/
  tools/lab exec b1 bash
  tools/lab down

the lab (addresses are the same in every lab):
"""


def main() -> int:
    arguments = _parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    try:
        return arguments.run(arguments) or 0
    except LabError as error:
        print(f"tools/lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/lab",
        description="A client, a router, load balancers and backends in network namespaces.",
        epilog=_EPILOG + Topology().drawing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run, text: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=text, description=text)
        found.set_defaults(run=run)
        found.add_argument("--name", help="the lab; default: hf, or the only one there is")
        return found

    up = command("up", _up, "raise a lab; it stays until `down`")
    up.add_argument("--build-dir", default=DEFAULT_BUILD_DIR, help="where the programs are built")
    up.add_argument("--bare", action="store_true", help="without holdfastd and holdfast-agent")
    up.add_argument(
        "--static-routes", action="store_true", help="the router has static routes, without BGP"
    )
    up.add_argument("--lbs", type=int, default=1, metavar="N", help="load balancers (1)")
    up.add_argument("--backends", type=int, default=3, metavar="N", help="backends (3)")
    up.add_argument("--queues", type=int, default=1, metavar="N", help="queues of each LB (1)")
    up.add_argument(
        "--encapsulation",
        default="ipip",
        choices=["ipip", "gre", "gue", "gue0"],
        help="how packets travel to the backends (ipip)",
    )

    down = command("down", _down, "remove a lab; does nothing when there is none")
    down.add_argument("--force", action="store_true", help="also one that a running test uses")

    status = command("status", _status, "show the labs that are up")
    status.add_argument("--json", action="store_true", help="one JSON object a lab")

    execute = command("exec", _exec, "run a command in a host of the lab")
    execute.add_argument("host", metavar="HOST", help="client, router, lb1, b1, ...")
    execute.add_argument("argv", metavar="CMD", nargs=argparse.REMAINDER)
    return parser.parse_args()


def _up(arguments) -> None:
    lab = Lab(
        arguments.name,
        build_dir=arguments.build_dir,
        bare=arguments.bare,
        static_routes=arguments.static_routes or arguments.bare,
        lbs=arguments.lbs,
        backends=arguments.backends,
        queues=arguments.queues,
        encapsulation=arguments.encapsulation,
        purpose="tools/lab up",
    )
    lab.up()
    lab.keep()
    if lab.name != state.DEFAULT_NAME and state.load(state.DEFAULT_NAME) is not None:
        print(f"lab {state.DEFAULT_NAME} is up already; this is a second one, {lab.name}\n")
    print(lab.topology.drawing())
    print(f"\nlab {lab.name} is up; files and logs: {lab.path()}")
    print_hints(lab)


def print_hints(lab: Lab) -> None:
    """What to try in a lab that is up."""
    name = f" --name {lab.name}" if lab.name != state.DEFAULT_NAME else ""
    print("try next:")
    if not lab.state.bare:
        print(f"  tools/lab exec{name} client curl -si http://{lab.topology.vip4}/")
        print(f"  tools/lab exec{name} client curl -si 'http://[{lab.topology.vip6}]/'")
        for rest in (["status"], ["pool", "show", "web"]):
            print(f"  {shlex.join(lab.holdfast_argv(rest))}")
        for lb in lab.topology.lbs:  # each drains for itself
            print(f"  {shlex.join(lab.holdfast_argv(['backend', 'drain', 'web/b1'], lb=lb.name))}")
        agent = [str(lab.program("holdfast-agent")), "status", "--pin-dir", str(lab.pin_dir("b1"))]
        print(f"  tools/lab exec{name} b1 {shlex.join(agent)}")
    if not lab.state.static_routes:
        gobgp = shlex.join(routing.gobgp_argv(lab, "lb1", ["global", "rib"]))
        print(f"  tools/lab exec{name} lb1 {gobgp}")
    print(f"  tools/lab exec{name} router birdc -s {lab.path('router', 'bird.ctl')} show route")
    print(f"  tools/lab down{name}")


def _down(arguments) -> None:
    if os.geteuid() != 0:
        raise LabError("a lab is removed as root")
    name = _chosen(arguments.name, for_down=True)
    if name is None:
        print(f"no lab {arguments.name} is up" if arguments.name else "no lab is up")
        return
    lab = Lab.attach(name)
    if lab.state.owner_alive() and not arguments.force:
        raise LabError(
            f"lab {name} belongs to a running process, {lab.state.owner['pid']} "
            f"({lab.state.purpose}): end that, or use --force"
        )
    lab.down()
    print(f"lab {name} is removed")


def _status(arguments) -> None:
    if arguments.name is not None:
        found, faults = [Lab.attach(state.check_name(arguments.name)).state], []
    else:
        found, faults = state.load_all()
    for one in found:
        try:
            status = _status_of(one)
        except LabError as error:
            faults.append(error)
            continue
        if arguments.json:
            print(json.dumps(status))
        else:
            _print_status(status)
    if faults:
        raise LabError("\n".join(map(str, faults)))
    if not found and not arguments.json:
        print("no lab is up: `tools/lab up` raises one")


def _status_of(one: state.State) -> dict:
    if one.stale():
        kind = "left behind by a killed run; the next `up` removes it"
    elif one.owner is None:
        kind = "kept until `down`"
    else:
        kind = f"belongs to process {one.owner['pid']}"
    lab = Lab.of(one)
    lbs = [lb.name for lb in lab.topology.lbs]
    return {
        "name": one.name,
        "purpose": one.purpose,
        "lifetime": kind,
        "folder": str(one.folder),
        "sockets": {} if one.bare else {lb: str(lab.holdfast_socket(lb)) for lb in lbs},
        "drawing": lab.topology.drawing(),
        "namespaces": {
            name: namespaces.inode(name) == inode for name, inode in one.namespaces.items()
        },
        "services": {
            key: state.start_time(service["pid"]) == service["start"]
            for key, service in one.services.items()
        },
    }


def _print_status(status: dict) -> None:
    print(f"lab {status['name']} ({status['purpose']}): {status['lifetime']}")
    for namespace, there in status["namespaces"].items():
        host = namespace.removeprefix(status["name"] + "-")
        running = [
            f"{key.partition('@')[0]}{'' if alive else ' (ended)'}"
            for key, alive in status["services"].items()
            if key.partition("@")[2] == host
        ]
        print(f"  {host:<8} {'' if there else 'namespace is gone; '}{', '.join(running)}".rstrip())
    print(f"  files and logs: {status['folder']}")
    for lb, socket in status["sockets"].items():
        print(f"  holdfast --socket {socket} ...   asks {lb}")
    print(f"\n{status['drawing']}")


def _exec(arguments) -> None:
    if not arguments.argv:
        raise LabError("exec needs a command: tools/lab exec client curl -s http://203.0.113.10/")
    if os.geteuid() != 0:
        raise LabError("exec needs root")
    lab = Lab.attach(_chosen(arguments.name))
    argv = ["ip", "netns", "exec", lab.namespace(arguments.host), *arguments.argv]
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError:
        raise LabError("`ip` is not installed: run tools/install-packages") from None


def _chosen(name: str | None, *, for_down: bool = False) -> str | None:
    """The lab that a command without --name means: `hf`, or the only one. None when there is
    nothing that `down` could remove."""
    labs = [one for one in state.names() if state.exists(one)]
    if name is not None:
        if name in labs:
            return state.check_name(name)
        if for_down:
            return None
        raise LabError(f"there is no lab {name!r}: `tools/lab up --name {name}` raises it")
    if len(labs) == 1:
        return labs[0]
    if state.DEFAULT_NAME in labs:
        return state.DEFAULT_NAME
    if labs:
        raise LabError(f"several labs are up; choose one with --name: {', '.join(labs)}")
    if for_down:
        return None
    raise LabError("no lab is up: `tools/lab up` raises one")
