# SPDX-License-Identifier: Apache-2.0
"""The checks of tools/lint. Each looks at the files that git knows (and new ones that it does not
ignore) and returns its findings, one a line; nothing found is a pass."""

import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from . import processes
from .processes import ROOT
from .results import Result, matches

MAX_LINES = 450
CXX = (".cc", ".h", ".c")
# Files without a place for a comment, and data that tests read byte by byte.
NO_SPDX_SUFFIXES = (".md", ".json", ".jsonl", ".pcap", ".txt", ".svg")
NO_SPDX_NAMES = ("LICENSE",)
DATA = "tests/fuzz/corpus/"
# Folders of one person's machine. Product, tests and documents work anywhere.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(home/\w|root/(?!\.)|Users/|mnt/\w)")


def tracked_files() -> list[str]:
    """Relative to the top; links left out."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True)
    names = sorted(set(listed.stdout.split("\0")) - {""})
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def _is_shell(name: str) -> bool:
    return name.endswith(".sh") or _first_line(name).startswith(("#!/bin/bash", "#!/bin/sh"))


def _is_python(name: str) -> bool:
    return name.endswith(".py") or "python3" in _first_line(name)


def _first_line(name: str) -> str:
    with open(ROOT / name, "rb") as stream:
        line = stream.readline(200)
    return line.decode(errors="replace").rstrip() if line.startswith(b"#!") else ""


def _tool(command: list[str], names: list[str]) -> list[str]:
    """The output of a checker that fails when it finds something."""
    if not names:
        return []
    if shutil.which(command[0]) is None:
        return [f"{command[0]} is not installed (tools/install-packages)"]
    done = processes.run([*command, *names], timeout=600, behind=True)
    return [] if done.ok else done.output.splitlines() or [done.why()]


class Skipped(Exception):
    """A check that means nothing on this machine; the text says why."""


def check_format(names: list[str]) -> list[str]:
    """C++ is formatted by .clang-format; `tools/lint --fix` does it."""
    version = processes.run(["clang-format", "--version"], timeout=30).output.strip()
    if "version 14." not in version:
        raise Skipped(f"releases of clang-format differ: the tree follows 14, here is {version}")
    sources = [name for name in names if name.endswith(CXX)]
    found = _tool(["clang-format", "--dry-run", "--Werror"], sources)
    return [line for line in found if "error:" in line or "installed" in line] if found else []


def check_shell(names: list[str]) -> list[str]:
    return _tool(["shellcheck"], [name for name in names if _is_shell(name)])


def check_python(names: list[str]) -> list[str]:
    sources = [name for name in names if _is_python(name)]
    found = []
    for name in sources:
        try:
            compile(_text(name), name, "exec")
        except SyntaxError as error:
            found.append(f"{name}:{error.lineno}: {error.msg}")
    # pyflakes cannot know "noqa"; those lines are imports behind a change of sys.path.
    return found or [line for line in _tool(["pyflakes3"], sources) if "redefinition" not in line]


def check_spdx(names: list[str]) -> list[str]:
    """Each file says its licence in its first lines."""
    found = []
    for name in names:
        if name.endswith(NO_SPDX_SUFFIXES) or name in NO_SPDX_NAMES or name.startswith(DATA):
            continue
        if not any("SPDX-License-Identifier:" in line for line in _text(name).splitlines()[:3]):
            found.append(f"{name}:1: no SPDX-License-Identifier in the first three lines")
    return found


def check_length(names: list[str]) -> list[str]:
    found = []
    for name in names:
        if name.endswith((*CXX, ".py")) or _is_shell(name):
            count = len(_text(name).splitlines())
            if count > MAX_LINES:
                found.append(f"{name}:{count}: {count} lines, more than {MAX_LINES}: is it still "
                             "about one thing?")
    return found


def check_machine_paths(names: list[str]) -> list[str]:
    """Nothing names a folder that exists on one machine only."""
    found = []
    for name in names:
        if name == "tools/testkit/lint.py" or name.startswith(DATA):
            continue
        for number, line in enumerate(_text(name).splitlines(), 1):
            if MACHINE_PATHS.search(line):
                found.append(f"{name}:{number}: a path of one machine: {line.strip()[:80]}")
    return found


def check_whitespace(names: list[str]) -> list[str]:
    found = []
    for name in names:
        if name.startswith(DATA) or name.endswith(".pcap"):
            continue
        text = _text(name)
        if text and not text.endswith("\n"):
            found.append(f"{name}: no line end at the end of the file")
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip() and not name.endswith(".md"):
                found.append(f"{name}:{number}: white space at the end of the line")
    return found


def check_tidy(names: list[str], *, seconds: float) -> list[str]:
    """clang-tidy with the short list of .clang-tidy, newest files first; what is not reached in
    `seconds` is left for another time."""
    database = ROOT / "build" / "compile_commands.json"
    if not database.exists():
        return ["build/ is not set up (meson setup build)"]
    known = database.read_text()
    sources = [name for name in names if name.endswith(".cc") and f"/{name}\"" in known]
    sources.sort(key=lambda name: -os.path.getmtime(ROOT / name))
    deadline = time.monotonic() + seconds
    command = ["clang-tidy", "--quiet", "-p", "build", "--extra-arg=-Wno-unknown-warning-option"]

    def tidy(name: str) -> list[str]:
        if time.monotonic() > deadline:
            return []
        found = _tool(command, [name])
        return [line.removeprefix(f"{ROOT}/") for line in found if "generated" not in line]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [line for found in pool.map(tidy, sources) for line in found]


CHECKS: dict[str, Callable[[list[str]], list[str]]] = {
    "format": check_format,
    "shell": check_shell,
    "python": check_python,
    "spdx": check_spdx,
    "length": check_length,
    "machine paths": check_machine_paths,
    "whitespace": check_whitespace,
}


def run(pattern: str | None, tidy_seconds: float) -> list[Result]:
    """One test case a check; clang-tidy is among them when it may take time."""
    names = tracked_files()
    checks = dict(CHECKS)
    if tidy_seconds > 0:
        checks["tidy"] = lambda files: check_tidy(files, seconds=tidy_seconds)
    results = []
    for title, check in checks.items():
        if not matches(f"lint: {title}", pattern):
            continue
        again = f"tools/lint {shlex.quote(title)}"
        try:
            found = check(names)
        except Skipped as reason:
            results.append(Result(f"lint: {title}", "skipped", str(reason), again))
            continue
        outcome = "failed" if found else "passed"
        results.append(Result(f"lint: {title}", outcome, "\n".join(found), again))
    return results


def fix(names: list[str]) -> None:
    sources = [name for name in names if name.endswith(CXX)]
    processes.run(["clang-format", "-i", *sources], timeout=300)


USAGE = """usage: tools/lint [CHECK...] [--fix]

Checks: {checks}, tidy (all unless named; tidy takes minutes and needs build/).
--fix formats the C++ files first."""


def main(arguments: list[str]) -> int:
    usage = USAGE.format(checks=", ".join(CHECKS))
    if "--help" in arguments or "-h" in arguments:
        print(usage)
        return 0
    wanted = [argument for argument in arguments if argument != "--fix"]
    unknown = [name for name in wanted if name not in (*CHECKS, "tidy")]
    if unknown:
        print(f"tools/lint: there is no check {unknown[0]!r}\n{usage}", file=sys.stderr)
        return 2
    if "--fix" in arguments:
        fix(tracked_files())
    results = [r for r in run(None, 3600.0 if not wanted or "tidy" in wanted else 0)
               if not wanted or r.name.removeprefix("lint: ") in wanted]
    for result in results:
        print(f"{result.outcome:7} {result.name.removeprefix('lint: ')}")
        for line in result.detail.splitlines():
            print(f"    {line}")
    return 1 if any(result.outcome == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
