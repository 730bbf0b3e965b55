# SPDX-License-Identifier: Apache-2.0
"""Runs Python test files (unittest), one process a file: `run` starts it, and this file as a program
is what is started. The child writes a line of JSON as soon as a test has ended, so that a hang or a
crash costs only the test that it happened in."""

import json
import os
import re
import shlex
import sys
import tempfile
import traceback
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(TOOLS))

from testkit import processes  # noqa: E402
from testkit.processes import ROOT  # noqa: E402
from testkit.results import Result, matches  # noqa: E402

TIMEOUT = 600.0  # seconds a file


def files() -> list[str]:
    """Every Python test of the tree, relative to its top."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/*/test_*.py"))


def run(file: str, *, pattern: str | None, env: dict[str, str]) -> list[Result]:
    """The test cases of one file, named "e2e/test_lab.py: OneLab.test_it_comes_up"."""
    title = file.removeprefix("tests/")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results"
        command = [sys.executable, str(Path(__file__)), file, str(out), title, pattern or ""]
        done = processes.run(command, timeout=TIMEOUT, env=env)
        lines = out.read_text().splitlines() if out.exists() else []
    results = []
    begun = finished = None
    for line in map(json.loads, lines):
        begun = line.get("begun", begun)
        finished = line.get("finished", finished)
        if "outcome" in line:
            rerun = _rerun(file, line["test"], env)
            name = f"{title}: {line['test']}"
            seconds = line.get("seconds", 0.0)
            results.append(Result(name, line["outcome"], line["detail"], rerun, seconds))
    if finished is None:
        where = f"{title}: {begun}" if begun else title
        detail = f"{done.output}\n{done.why()} in or after {where}"
        results.append(Result(f"{where} (the file did not end)", "failed", detail,
                              _rerun(file, begun, env)))
    return results


def list_names(file: str) -> list[str]:
    """The names of a file's test cases."""
    title = file.removeprefix("tests/")
    command = [sys.executable, str(Path(__file__)), file, "/dev/stdout", title, "", "--list"]
    done = processes.run(command, timeout=60)
    return done.output.splitlines()


def _rerun(file: str, test: str | None, env: dict[str, str]) -> str:
    module = file.removesuffix(".py").replace("/", ".")
    prefix = "".join(f"{key}={shlex.quote(value)} " for key, value in env.items())
    return f"{prefix}python3 -m unittest {module}{'.' + test if test else ''}"


class _Writer(unittest.TestResult):
    """Writes each test's outcome as it is known; of several failures in a test the first counts."""

    def __init__(self, out, names: list[str]) -> None:
        super().__init__()
        self._out = out
        self._waiting = names  # of tests that have not begun
        self._outcome = "passed"
        self._details: list[str] = []

    def write(self, **line) -> None:
        print(json.dumps(line), file=self._out, flush=True)

    def startTest(self, test) -> None:
        super().startTest(test)
        self._outcome, self._details = "passed", []
        self._waiting.remove(_name(test))
        self.write(begun=_name(test))

    def stopTest(self, test) -> None:
        super().stopTest(test)
        self.write(test=_name(test), outcome=self._outcome, detail="\n".join(self._details))

    def _fail(self, error, label: str = "") -> None:
        self._outcome = "failed"
        self._details.append(label + "".join(traceback.format_exception(*error)))

    def _outside(self, test, outcome: str, detail: str) -> None:
        """setUpClass or setUpModule failed or skipped: there is no start and stop. A skip is one of
        each test that does not begin because of it."""
        skipped = re.fullmatch(r"setUp(Class|Module) \((.*)\)", str(test))
        names = [str(test)]
        if outcome == "skipped" and skipped:
            whose = skipped[2].rsplit(".", 1)[-1] + "." if skipped[1] == "Class" else ""
            names = [name for name in self._waiting if name.startswith(whose)]
            self._waiting = [name for name in self._waiting if name not in names]
        for name in names:
            self.write(test=name, outcome=outcome, detail=detail)

    def addError(self, test, err) -> None:
        super().addError(test, err)
        if isinstance(test, unittest.TestCase):
            self._fail(err)
        else:
            self._outside(test, "failed", "".join(traceback.format_exception(*err)))

    def addFailure(self, test, err) -> None:
        super().addFailure(test, err)
        self._fail(err)

    def addSubTest(self, test, subtest, err) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(err, f"{subtest._subDescription()}\n")

    def addSkip(self, test, reason) -> None:
        super().addSkip(test, reason)
        if isinstance(test, unittest.TestCase):
            if self._outcome == "passed":
                self._outcome = "skipped"
            self._details.append(reason)
        else:
            self._outside(test, "skipped", reason)

    def addExpectedFailure(self, test, err) -> None:
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test) -> None:
        super().addUnexpectedSuccess(test)
        self._outcome = "failed"
        self._details.append("it was expected to fail, and passed")


def _name(test: unittest.TestCase) -> str:
    """Class and method; the loader's stand-in for a file that can not be imported has no class of
    its own."""
    return f"{type(test).__qualname__}.{test.id().rsplit('.', 1)[-1]}"


def _selected(suite, title: str, pattern: str | None):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _selected(item, title, pattern)
        elif matches(f"{title}: {_name(item)}", pattern):
            yield item


def main(file: str, out: str, title: str, pattern: str, mode: str = "") -> int:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    module = file.removesuffix(".py").replace("/", ".")
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    chosen = unittest.TestSuite(_selected(suite, title, pattern or None))
    if mode == "--list":
        for test in _selected(suite, title, None):
            print(f"{title}: {_name(test)}")
        return 0
    with open(out, "w", encoding="utf-8") as stream:
        writer = _Writer(stream, [_name(test) for test in _selected(chosen, title, None)])
        chosen.run(writer)
        writer.write(finished=True)
    return 0 if writer.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
