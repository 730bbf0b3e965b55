# SPDX-License-Identifier: Apache-2.0
"""tools/test after the installation: what runs, in which order, for how long."""

import argparse
import concurrent.futures
import os
import signal
import sys

from . import builds, catch, fuzz, lint, processes, pytests
from .processes import ROOT
from .results import Report, Result, matches

# Seconds. The short run, the installation and all builds included, stays under 15 minutes on two cores.
TIDY_SHORT, TIDY_FULL = 30, 3600

# Tests with these before their names repeat others or look at everything; a pattern selects them
# only when it begins so.
SPECIAL = ("asan", "tsan", "clang", "fuzz", "lint")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/test",
        description="Installs what is missing (as root; otherwise it is only named), builds, and runs "
        "the tests. The last line counts single test cases; the exit status is 0 if none failed.",
        epilog="example: tools/test 'drain' runs the unit, pipeline and e2e tests with \"drain\" in "
        "their name; 'asan:', 'fuzz:' and 'lint:' select those.",
    )
    parser.add_argument("pattern", nargs="?", metavar="NAME-PATTERN",
                        help="only tests whose name has this part, in any case")
    parser.add_argument("--full", action="store_true",
                        help="also the optimised unit and pipeline tests, a build with clang, "
                        "ThreadSanitizer and longer fuzzing")
    parser.add_argument("--list", action="store_true", help="builds, then only names the tests")
    parser.add_argument("--only-arguments", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def captures() -> dict[str, str]:
    """Where sample captures lie beside this checkout, if they do."""
    folder = ROOT.parent / "shared" / "captures"
    return {"HOLDFAST_CAPTURES": os.path.relpath(folder, ROOT)} if folder.is_dir() else {}


class Run:
    def __init__(self, report: Report, pattern: str | None, full: bool) -> None:
        self.report = report
        self.pattern = pattern
        self.full = full
        lower = (pattern or "").lower()
        self.special = next((kind for kind in SPECIAL if lower.startswith(f"{kind}:")), None)

    def wants(self, kind: str) -> bool:
        return self.special == kind or self.pattern is None

    def everything(self) -> None:
        # Compiling the Catch2 programs takes most of a first run: the short one has them with
        # sanitizers only.
        release = builds.RELEASE if self.full or self.pattern else builds.E2E
        if self.special is None and self.build(release):
            self.programs(release, "", env=captures())
            # End-to-end tests mostly wait; two cores build the next programs and look at the sources
            # meanwhile.
            with concurrent.futures.ThreadPoolExecutor(1) as behind:
                ahead = behind.submit(self.ahead)
                self.python_files()
                self.report.add(ahead.result())
        elif self.wants("lint"):
            self.report.add(self.lint())
        self.sanitized()
        if self.wants("fuzz"):
            self.fuzz()

    def build(self, build: builds.Build) -> bool:
        self.report.step(f"building {build.directory}")
        result = build.make()
        if result.outcome == "failed" or self.pattern is None:
            self.report.add([result])
        return result.outcome == "passed"

    def ahead(self) -> list[Result]:
        """What goes wrong in a build is reported when its turn comes."""
        if self.pattern is not None:
            return []
        builds.ASAN.make(behind=True)
        builds.FUZZ.make(behind=True)
        return self.lint()

    def lint(self) -> list[Result]:
        self.report.step("running tools/lint")
        return lint.run(self.pattern, TIDY_FULL if self.full else TIDY_SHORT)

    def programs(self, build: builds.Build, label: str, **env: dict[str, str]) -> None:
        """The Catch2 programs of `build`, two at a time."""

        def one(program: tuple[str, str]) -> list[Result]:
            name, path = program
            return catch.run(f"{label}{name}", path, pattern=self.pattern, **env)

        self.report.step(f"running the tests of {build.directory}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for results in pool.map(one, build.test_programs()):
                self.report.add(results)

    def python_files(self) -> None:
        env = {"HOLDFAST_BUILD": builds.RELEASE.directory, **captures()}
        for file in pytests.files():
            if self.pattern is None:
                self.report.step(f"running {file}")
            self.report.add(pytests.run(file, pattern=self.pattern, env=env))

    def sanitized(self) -> None:
        if self.wants("asan") and self.build(builds.ASAN):
            quiet = {"UBSAN_OPTIONS": "print_stacktrace=1"}
            self.programs(builds.ASAN, "asan: ", env=captures(), quiet_env=quiet)
        full = self.full or self.special is not None
        if full and self.wants("clang") and self.build(builds.CLANG):
            self.programs(builds.CLANG, "clang: ", env=captures())
        if full and self.wants("tsan") and self.build(builds.TSAN):
            # A race must end the program: only then is it the fault of one test.
            env = {"TSAN_OPTIONS": "halt_on_error=1", **captures()}
            self.programs(builds.TSAN, "tsan: ", env=env)

    def fuzz(self) -> None:
        if self.build(builds.FUZZ):
            self.report.step("fuzzing")
            self.report.add(fuzz.run(self.pattern, self.full))


def name_tests(run: Run) -> int:
    if builds.RELEASE.make().outcome != "passed":
        print("the build fails: tools/test shows why", file=sys.stderr)
        return 1
    for title, program in builds.RELEASE.test_programs():
        for name in catch.list_names(program):
            if matches(f"{title}: {name}", run.pattern):
                print(f"{title}: {name}")
    for file in pytests.files():
        for name in pytests.list_names(file):
            if matches(name, run.pattern):
                print(name)
    return 0


def on_signal(*_) -> None:
    processes.stop()
    raise KeyboardInterrupt


def main() -> int:
    # Also where an interrupt was ignored (in the background of a script): labs must be asked to take
    # themselves down.
    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    options = arguments()
    if options.only_arguments:
        return 0
    report = Report()
    run = Run(report, options.pattern, options.full)
    try:
        if options.list:
            return name_tests(run)
        run.everything()
    except (KeyboardInterrupt, processes.Stopped):
        report.step("interrupted")
        report.finish()
        return 130
    if options.pattern and not report.results:
        print(f"no test has {options.pattern!r} in its name (tools/test --list)", file=sys.stderr)
        return 2
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
