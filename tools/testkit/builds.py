# SPDX-License-Identifier: Apache-2.0
"""The build directories: what each is for, and how it is set up."""

import dataclasses
import json
import os
import shlex
import shutil
from pathlib import Path

from . import processes
from .processes import ROOT
from .results import Result

# Assertions are on. Sanitizers bring warnings of their own; -O1 and line numbers alone as debug
# information compile in half the time.
CHECKED = ("-Db_ndebug=false", "-Doptimization=1", "-Dwerror=false", "-Db_lundef=false")
SANITIZERS = ("-Db_sanitize=address,undefined", "-Dcpp_args=-g1 -fno-sanitize-recover=undefined")


@dataclasses.dataclass(frozen=True)
class Build:
    directory: str
    options: tuple[str, ...] = ()
    compiler: str = ""  # empty: the default, g++
    only: str = ""  # "tests", "fuzz" or "e2e": just the programs for those; empty: everything

    @property
    def _stamp(self) -> Path:
        """Holds the compiler and options that the directory was set up with."""
        return ROOT / self.directory / "testkit-options"

    def _stamped(self) -> str:
        return "\n".join([*([self.compiler] if self.compiler else []), *self.options])

    def _exists(self) -> bool:
        return (ROOT / self.directory / "build.ninja").exists()

    def _is_set_up(self) -> bool:
        had = self._stamp.read_text() if self._stamp.exists() else ""
        return self._exists() and had == self._stamped()

    def command(self) -> list[str]:
        again = ["--reconfigure"] if self._exists() else []
        return ["meson", "setup", *again, self.directory, *self.options]

    def _environment(self) -> dict[str, str]:
        if not self.compiler:
            return {}
        # Meson finds ccache by itself only for the default compiler.
        ccache = "ccache " if shutil.which("ccache") else ""
        return {"CXX": ccache + self.compiler}

    def make(self, *, behind: bool = False) -> Result:
        """Sets the directory up if needed and builds; one test case of its own. `behind`: with the time
        that tests leave meanwhile."""
        env = self._environment()
        prefix = "".join(f"{key}={shlex.quote(value)} " for key, value in env.items())
        setup = ""
        if not self._is_set_up():
            if self._stamp.exists():  # ours, set up otherwise; Meson keeps a directory's compiler
                shutil.rmtree(ROOT / self.directory)
            command = self.command()
            done = processes.run(command, timeout=300, env=env, behind=behind)
            setup = prefix + shlex.join(command)
            if not done.ok:
                return self._result(done, setup)
            self._stamp.write_text(self._stamped())
            setup += " && "
        ninja = ["ninja", "-C", self.directory, *self._targets()]
        # With these, builds of other folders and users share the cache.
        cache = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1",
                 # What its manual asks for where headers are precompiled.
                 "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
        done = processes.run(ninja, timeout=3600, env={**env, **cache}, behind=behind)
        return self._result(done, setup + shlex.join(ninja))

    def _targets(self) -> list[str]:
        if self.only == "tests":
            paths = [path for _, path in self.test_programs()]
        elif self.only == "fuzz":
            paths = self.fuzz_programs()
        else:
            return [self.only] if self.only else []
        return [os.path.relpath(path, self.directory) for path in paths]

    def _result(self, done: processes.Finished, rerun: str) -> Result:
        name = f"build: {self.directory}"
        if done.ok:
            return Result(name, "passed")
        return Result(name, "failed", f"{_errors_of(done.output)}\n{done.why()}", rerun)

    def test_programs(self) -> list[tuple[str, str]]:
        """(name, path) of the Catch2 programs that Meson knows as tests; of "e2e" those that builds
        with sanitizers do not have."""
        return [(test["name"], os.path.relpath(test["cmd"][0], ROOT))
                for test in self._introspect("--tests")
                if self.only != "e2e" or "holdfast:unsanitized" in test["suite"]]

    def fuzz_programs(self) -> list[str]:
        """Paths of the programs that tests/fuzz/meson.build defines."""
        defined_in = str(ROOT / "tests/fuzz/meson.build")
        return [os.path.relpath(target["filename"][0], ROOT)
                for target in self._introspect("--targets")
                if target["type"] == "executable" and target["defined_in"] == defined_in]

    def _introspect(self, what: str) -> list[dict]:
        done = processes.run(["meson", "introspect", what, self.directory], timeout=120)
        return json.loads(done.output) if done.ok else []


def _errors_of(output: str) -> str:
    """The part of a build's output that matters: from the first failure on."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("FAILED:")), 0)
    return "\n".join(lines[first : first + 50])


RELEASE = Build("build")
E2E = Build("build", only="e2e")
# Tests and fuzz targets share what both test; clang makes it faster than g++ does.
_ASAN = ("build-asan", ("-Dfuzz=true", *SANITIZERS, *CHECKED), "clang++")
ASAN = Build(*_ASAN, only="tests")
TSAN = Build("build-tsan", ("-Db_sanitize=thread", "-Dcpp_args=-g1", *CHECKED), only="tests")
# Without precompiled headers, so that a test that forgets an include is seen.
CLANG = Build("build-clang", ("-Db_pch=false",), "clang++")
FUZZ = Build(*_ASAN, only="fuzz")
