# SPDX-License-Identifier: Apache-2.0
"""tools/quickstart: the whole demonstration once, and that it leaves nothing when it is stopped.
Installing and building are left out: the programs must be there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))

from labkit import Lab, state  # noqa: E402
from labkit.lab import DEFAULT_BUILD_DIR, find_program  # noqa: E402

needs_root = unittest.skipIf(os.geteuid() != 0, "needs root: makes network namespaces")
PROGRAMS = ("holdfastd", "holdfast", "holdfast-agent")
needs_programs = unittest.skipUnless(
    all(find_program(DEFAULT_BUILD_DIR, name) for name in PROGRAMS),
    f"needs the programs in {DEFAULT_BUILD_DIR.name}/",
)


def start(*argv: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "labkit.quickstart", *argv],
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job ignores Ctrl-C, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def labs_of(pid: int) -> list[str]:
    found = [state.load(name) for name in state.names()]
    return [one.name for one in found if one and one.owner and one.owner["pid"] == pid]


class Usage(unittest.TestCase):
    def run_it(self, *argv: str):
        return subprocess.run([TOOLS / "quickstart", *argv], capture_output=True, text=True)

    def test_unknown_arguments_are_refused(self):
        for argv, reason in (
            (["--bogus"], "unknown argument --bogus"),
            (["--report"], "--report needs a file"),
            (["--report", "/no/such/folder/file"], "/no/such/folder/file cannot be written"),
        ):
            with self.subTest(argv=argv):
                done = self.run_it(*argv)
                self.assertEqual(done.returncode, 2)
                self.assertIn(reason, done.stderr)

    def copy_with(self, folder: str, **tools: str) -> Path:
        """tools/quickstart in a folder of its own, with these shell scripts beside it."""
        place = Path(folder, "tools")
        place.mkdir()
        shutil.copy(TOOLS / "quickstart", place)
        for name, text in tools.items():
            script = place / name.replace("_", "-")
            script.write_text("#!/bin/sh\n" + text)
            script.chmod(0o755)
        return place / "quickstart"

    @needs_root
    def test_interrupted_before_there_is_a_lab_it_says_so(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name), tempfile.TemporaryDirectory() as folder:
                program = self.copy_with(folder, install_packages="echo installing; exec sleep 60")
                run = subprocess.Popen(
                    [program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    # bash cannot catch what was ignored when it began.
                    preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
                )
                self.addCleanup(run.kill)
                while "installing\n" != run.stdout.readline():
                    pass
                run.send_signal(number)
                _, errors = run.communicate(timeout=20)
                self.assertEqual(run.returncode, 128 + number)
                [line] = errors.splitlines()
                self.assertIn("quickstart: interrupted, removed nothing: ", line)

    @needs_root
    def test_an_earlier_report_does_not_outlive_a_run_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            program = self.copy_with(folder, install_packages="exit 1")
            report = Path(folder, "report.json")
            report.write_text('{"passed": true}')
            done = subprocess.run([program, "--report", report], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertFalse(report.exists())
            report.write_text('{"passed": true}')
            run = start("--build-dir", folder, "--report", str(report))
            run.communicate()
            self.assertEqual(run.returncode, 1)
            self.assertFalse(report.exists())
            os.mkfifo(report)  # like a device, nobody's old report
            subprocess.run([program, "--report", report], capture_output=True)
            self.assertTrue(report.is_fifo())

    @unittest.skipIf(os.geteuid() == 0, "for other users than root")
    def test_it_wants_root(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 2)
        self.assertIn("run it as root", done.stderr)


@needs_root
class Quickstart(unittest.TestCase):
    @needs_programs
    def test_all_claims_hold_and_the_kept_lab_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.json"
            run = start("--keep", "--report", str(file))
            output, errors = run.communicate()
            report = json.loads(file.read_text()) if file.exists() else {}
        for name in state.names():
            if f"lab {name} is kept" in output:
                lab = Lab.attach(name)
                self.addCleanup(lab.down)
                break
        else:
            self.fail(f"no lab was kept: {output}\n{errors}")
        failed = [claim for claim in report["claims"] if not claim["passed"]]
        self.assertEqual((run.returncode, failed), (0, []), output)
        self.assertTrue(report["passed"])
        self.assertGreater(len(report["claims"]), 22)
        self.assertEqual(report["figures"]["requests"]["IPv6"]["requests"], 300)
        self.assertEqual(lab.exec("client", ["curl", "-sS", lab.topology.vip4]).stdout[0], "b")
        self.assertIn("eligible", lab.holdfast(["pool", "show", "web"]).stdout)

    @needs_programs
    def test_stopped_in_the_middle_it_leaves_nothing(self):
        for number, step in ((signal.SIGINT, "300 requests"), (signal.SIGTERM, "is up")):
            with self.subTest(signal=number.name):
                run = start()
                for line in run.stdout:
                    if step in line:
                        break
                (name,) = labs_of(run.pid)
                namespaces = state.load(name).namespaces
                run.send_signal(number)
                _, errors = run.communicate()
                self.assertEqual(run.returncode, 128 + number)
                self.assertEqual(errors, "quickstart: interrupted, removed the lab\n")
                self.assertIsNone(state.load(name))
                for namespace in namespaces:
                    self.assertFalse(Path("/run/netns", namespace).exists())

    def test_without_programs_it_says_what_to_do_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as empty:
            run = start("--build-dir", empty)
            _, errors = run.communicate()
        self.assertEqual(run.returncode, 1)
        self.assertIn("is not built in", errors)
        self.assertEqual(labs_of(run.pid), [])


if __name__ == "__main__":
    unittest.main()
