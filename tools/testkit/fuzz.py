# SPDX-License-Identifier: Apache-2.0
"""Runs the libFuzzer targets of build-asan, two at a time, for a bounded time together."""

import concurrent.futures
import tempfile

from . import processes
from .builds import FUZZ
from .processes import ROOT
from .results import Result, matches

AT_ONCE = 2
# Seconds of fuzzing: the sum over all targets in the short run, for each one in the full run.
TOGETHER, EACH = 80, 60


def run(pattern: str | None, full: bool) -> list[Result]:
    """One test case a target."""
    targets = [path for path in FUZZ.fuzz_programs() if matches(f"fuzz: {_name(path)}", pattern)]
    if not targets:
        return []
    seconds = EACH if full else max(5, TOGETHER // len(targets))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda target: _run_one(target, seconds), targets))


def _name(program: str) -> str:
    return program.rsplit("/", 1)[-1]


def _run_one(program: str, seconds: int) -> Result:
    target = _name(program)
    corpus = f"tests/fuzz/corpus/{target.removesuffix('_fuzz')}"
    crashes = ROOT / FUZZ.directory / "crashes" / target
    crashes.mkdir(parents=True, exist_ok=True)
    before = set(crashes.iterdir())
    (ROOT / corpus).mkdir(parents=True, exist_ok=True)
    # What is found in this run goes to a folder of its own, so that the kept corpus changes only by
    # somebody's decision.
    with tempfile.TemporaryDirectory() as found:
        command = [f"./{program}", f"-max_total_time={seconds}", "-timeout=10"]
        command += ["-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={crashes}/"]
        done = processes.run([*command, found, corpus], timeout=seconds + 120)
    name = f"fuzz: {target}"
    if done.ok:
        return Result(name, "passed")
    new = [str(path.relative_to(ROOT)) for path in set(crashes.iterdir()) - before]
    again = f"{program} {new[0] if new else corpus}"
    return Result(name, "failed", f"{_crash_report(done.output)}\n{done.why()}", again)


def _crash_report(output: str) -> str:
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if "==ERROR" in line or "runtime error" in line
                  or "libFuzzer:" in line), max(0, len(lines) - 40))
    return "\n".join(lines[first : first + 50])


