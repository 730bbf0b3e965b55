# SPDX-License-Identifier: Apache-2.0
"""Outcomes of single test cases, and the report that counts them."""

import dataclasses
import sys
import time


@dataclasses.dataclass(frozen=True)
class Result:
    """One test case. `rerun` is a command for the shell at the top of the tree."""

    name: str  # "unit: a SYN on a draining backend is placed anew"
    outcome: str  # "passed", "failed" or "skipped"
    detail: str = ""  # why it failed, or the reason for which it was skipped
    rerun: str = ""
    seconds: float = 0.0


class Report:
    """Collects results, shows progress and, at the end, what failed."""

    MAX_DETAIL_LINES = 60

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._start = time.monotonic()

    def step(self, text: str) -> None:
        print(f"[{time.monotonic() - self._start:4.0f} s] {text}", flush=True)

    def add(self, results: list[Result]) -> None:
        self.results += results

    def count(self, outcome: str) -> int:
        return sum(result.outcome == outcome for result in self.results)

    def finish(self) -> int:
        """Prints failures, skips and the last line; returns the exit status."""
        sys.stdout.flush()
        for result in self.results:
            if result.outcome == "failed":
                self._print_failure(result)
        self._print_skips()
        passed, failed, skipped = (self.count(o) for o in ("passed", "failed", "skipped"))
        self.step("done")
        print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
        return 1 if failed else 0

    def _print_failure(self, result: Result) -> None:
        lines = result.detail.rstrip().splitlines()
        cut = len(lines) - self.MAX_DETAIL_LINES
        print(f"\nFAILED  {result.name}")
        if cut > 0:
            print(f"    ({cut} earlier lines are left out)")
        for line in lines[-self.MAX_DETAIL_LINES :]:
            print(f"    {line}")
        if result.rerun:
            print(f"  again: {result.rerun}")

    def _print_skips(self) -> None:
        by_reason: dict[str, list[str]] = {}
        for result in self.results:
            if result.outcome == "skipped":
                by_reason.setdefault(result.detail or "no reason given", []).append(result.name)
        for reason, names in by_reason.items():
            print(f"skipped {len(names)}: {reason} (such as {names[0]})")


def matches(name: str, pattern: str | None) -> bool:
    """Whether `pattern`, a part of a name in any case, selects this test. "fuzz:x" means "fuzz: x"."""
    return pattern is None or _plain(pattern) in _plain(name)


def _plain(text: str) -> str:
    return text.lower().replace(": ", ":")
