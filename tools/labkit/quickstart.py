# SPDX-License-Identifier: Apache-2.0
"""The second half of tools/quickstart: raise a lab, run the demonstration, report, clean up.
Installing and building come first, in tools/quickstart itself."""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from labkit import claims, demo, takeover, takeover_claims
from labkit.cli import print_hints
from labkit.errors import LabError
from labkit.lab import DEFAULT_BUILD_DIR, Lab


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/quickstart")
    parser.add_argument("--keep", action="store_true", help="leave the lab up at the end")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--build-dir", type=Path, default=DEFAULT_BUILD_DIR)
    parser.add_argument("--begun", type=float, default=time.time(), help=argparse.SUPPRESS)
    parser.set_defaults(kept=False)
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if arguments.report is not None and arguments.report.is_file():
        arguments.report.unlink()  # of an earlier run: it must not pass for this one's
    try:
        return _run(arguments)
    except LabError as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 1
    except _Interrupted as interrupted:
        rest = "the lab stays" if arguments.kept else "removed the lab"
        print(f"quickstart: interrupted, {rest}", file=sys.stderr)
        return 128 + interrupted.args[0]


class _Interrupted(BaseException):
    """Its argument is the signal's number."""


def _interrupt(number: int, _) -> None:
    raise _Interrupted(number)


def _run(arguments) -> int:
    def say(text: str) -> None:
        print(f"[{time.time() - arguments.begun:6.1f} s] {text}", flush=True)

    # The second balancer has no part in the drain; it joins later.
    lab = Lab(build_dir=arguments.build_dir, lbs=2, running_lbs=1, purpose="tools/quickstart")
    say("raising the lab")
    with lab:
        say(f"lab {lab.name} is up")
        figures = demo.run(lab, say)
        figures["takeover"] = takeover.run(lab, say)
        judged = [*claims.judge(figures), *takeover_claims.judge(figures["takeover"])]
        passed = all(claim.passed for claim in judged)
        report = {
            "passed": passed,
            "seconds": round(time.time() - arguments.begun, 1),
            "claims": [vars(claim) for claim in judged],
            "figures": figures,
        }
        if arguments.report is not None:
            arguments.report.write_text(json.dumps(report, indent=2) + "\n")
        if arguments.keep:
            lab.keep()
            arguments.kept = True
        drawing = lab.topology.drawing()
        name = lab.name
    print(f"\n{drawing}\n\n{report_text(judged)}\n")
    if arguments.report is not None:
        print(f"figures: {arguments.report}")
    if arguments.keep:
        print(f"lab {name} is kept; files and logs: {lab.path()}")
        print_hints(lab)
    good = sum(1 for claim in judged if claim.passed)
    print(f"{good} of {len(judged)} claims hold, {report['seconds']:.0f} s")
    return 0 if passed else 1


def report_text(judged: list[claims.Claim]) -> str:
    lines = []
    for claim in judged:
        lines.append(f"{'ok  ' if claim.passed else 'FAIL'}  {claim.text}")
        lines.append(f"        {claim.measured}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
