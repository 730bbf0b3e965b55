# SPDX-License-Identifier: Apache-2.0
"""tools/test itself: what it makes of reports, crashes, hangs, skips and broken files. A runner that
overlooks a failure is worse than none."""

import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from testkit import catch, lint, processes, pytests, results  # noqa: E402

PASSED = '<TestCase name="good"><OverallResult success="true" durationInSeconds="0.5"/></TestCase>'
FAILED = """<TestCase name="bad &amp; worse" filename="../tests/x.cc" line="4">
  <Section name="a part">
    <Info> seed 7 </Info>
    <Expression success="false" type="CHECK" filename="../tests/x.cc" line="9">
      <Original> one == two </Original><Expanded> 1 == 2 </Expanded>
    </Expression>
  </Section>
  <OverallResult success="false"/>
</TestCase>"""
SKIPPED = """<TestCase name="later"><Skip filename="x.cc" line="1"> no captures </Skip>
  <OverallResult success="true" skips="1"/></TestCase>"""

# A stand-in for a Catch2 program: it "runs" the tests it is asked for, and dies in the one named fatal.
PROGRAM = """\
#!/usr/bin/env python3
import os, sys
names = ["first, with a comma", "fatal", "last"]
if "--list-test-names-only" in sys.argv:
    print("\\n".join(names))
    sys.exit(3)
asked = sys.argv[-1].replace("\\\\,", "\\0").split(",") if sys.argv[-2] == "yes" else names
asked = [name.replace("\\0", ",") for name in asked if name != "yes"] or names
out = open(sys.argv[sys.argv.index("--out") + 1], "w")
out.write("<Catch>")
for name in asked if sys.argv[-1] != "yes" else names:
    out.write(f'<TestCase name="{name}">')
    if name == "fatal":
        print("stack overflow in fatal", flush=True)
        out.flush()
        os._exit(99)
    out.write('<OverallResult success="true"/></TestCase>')
out.write("</Catch>")
"""


class CatchReports(unittest.TestCase):
    def test_outcomes_and_times_are_read(self):
        found = catch.parse(f"<Catch>{PASSED}{FAILED}{SKIPPED}</Catch>")
        self.assertEqual([(name, outcome) for name, outcome, _, _ in found],
                         [("good", "passed"), ("bad & worse", "failed"), ("later", "skipped")])
        self.assertEqual(found[0][3], 0.5)
        self.assertEqual(found[2][2], "no captures")

    def test_a_failure_tells_place_claim_values_and_notes(self):
        detail = catch.parse(f"<Catch>{FAILED}")[0][2]
        self.assertEqual(detail, "tests/x.cc:9: CHECK( one == two )  in: a part\n"
                                 "  was: 1 == 2\n  note: seed 7")

    def test_a_test_that_could_not_run_is_skipped_with_catch2_2_too(self):
        case = PASSED.replace("<Overall", "<Warning> skipped: no captures </Warning><Overall", 1)
        found = catch.parse(f"<Catch>{case}</Catch>")
        self.assertEqual([(outcome, why) for _, outcome, why, _ in found],
                         [("skipped", "no captures")])

    def test_a_report_that_is_cut_off_yields_what_is_whole(self):
        whole = f"<Catch>{PASSED}{FAILED}"
        for cut in range(len(whole)):
            names = [name for name, *_ in catch.parse(whole[:cut])]
            self.assertIn(names, ([], ["good"]))

    def test_a_name_is_escaped_for_the_command_line(self):
        self.assertEqual(catch.escape('a, [b] "c" \\'), 'a\\, \\[b] \\"c\\" \\\\')

    def test_a_crash_costs_one_test_only(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            found = catch.run("t", str(program))
            chosen = catch.run("t", str(program), pattern="COMMA")
        outcomes = {result.name: result.outcome for result in found}
        self.assertEqual(outcomes, {"t: first, with a comma": "passed", "t: fatal": "failed",
                                    "t: last": "passed"})
        failed = next(result for result in found if result.outcome == "failed")
        self.assertIn("stack overflow in fatal", failed.detail)
        self.assertIn("exited with 99", failed.detail)
        self.assertEqual([result.name for result in chosen], ["t: first, with a comma"])

    def test_a_program_that_does_not_start_is_a_failure(self):
        found = catch.run("t", "/bin/false")
        self.assertEqual([result.outcome for result in found], ["failed"])


class PythonFiles(unittest.TestCase):
    def run_file(self, text: str, pattern: str | None = None) -> list[results.Result]:
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="made_") as folder:
            path = Path(folder) / "test_made.py"
            path.write_text("import os, unittest\n" + textwrap.dedent(text))
            relative = str(path.relative_to(processes.ROOT))
            return pytests.run(relative, pattern=pattern, env={})

    def outcomes(self, text: str, pattern: str | None = None) -> list[tuple[str, str]]:
        found = self.run_file(text, pattern)
        return [(result.name.split(": ", 1)[1], result.outcome) for result in found]

    MIXED = """
        class A(unittest.TestCase):
            def test_good(self): pass
            def test_bad(self): self.fail("why")
            def test_error(self): raise OSError("gone")
            @unittest.skip("not today")
            def test_skipped(self): pass
            def test_parts(self):
                for i in range(3):
                    with self.subTest(i=i): self.assertNotEqual(i, 1)
        """

    def test_each_kind_of_outcome(self):
        self.assertEqual(self.outcomes(self.MIXED),
                         [("A.test_bad", "failed"), ("A.test_error", "failed"),
                          ("A.test_good", "passed"), ("A.test_parts", "failed"),
                          ("A.test_skipped", "skipped")])

    def test_a_pattern_selects(self):
        self.assertEqual(self.outcomes(self.MIXED, "a.TEST_GO"), [("A.test_good", "passed")])

    def test_details_and_reasons_are_kept(self):
        found = {result.name.rsplit(".")[-1]: result for result in self.run_file(self.MIXED)}
        self.assertIn("AssertionError: why", found["test_bad"].detail)
        self.assertIn("OSError: gone", found["test_error"].detail)
        self.assertIn("(i=1)", found["test_parts"].detail)
        self.assertEqual(found["test_skipped"].detail, "not today")
        self.assertTrue(found["test_bad"].rerun.endswith(".A.test_bad"))

    def test_a_class_that_can_not_be_set_up_fails(self):
        found = self.outcomes("""
            class A(unittest.TestCase):
                @classmethod
                def setUpClass(cls): raise OSError("no lab")
                def test_one(self): pass
            """)
        self.assertEqual([outcome for _, outcome in found], ["failed"])

    def test_a_class_or_file_that_skips_itself_counts_each_of_its_tests(self):
        found = self.outcomes("""
            class A(unittest.TestCase):
                @classmethod
                def setUpClass(cls): raise unittest.SkipTest("no lab")
                def test_one(self): pass
                def test_two(self): pass
            class B(unittest.TestCase):
                def test_three(self): pass
            """)
        self.assertEqual([outcome for _, outcome in found], ["skipped", "skipped", "passed"])
        found = self.outcomes("""
            def setUpModule(): raise unittest.SkipTest("no lab")
            class A(unittest.TestCase):
                def test_one(self): pass
                def test_two(self): pass
            """)
        self.assertEqual([outcome for _, outcome in found], ["skipped", "skipped"])

    def test_a_file_that_can_not_be_imported_fails(self):
        self.assertEqual([outcome for _, outcome in self.outcomes("import no_such_module")],
                         ["failed"])

    def test_a_crash_is_told_and_what_ran_before_counts(self):
        found = self.outcomes("""
            class A(unittest.TestCase):
                def test_a(self): pass
                def test_b(self): os.abort()
                def test_c(self): pass
            """)
        self.assertEqual(found, [("A.test_a", "passed"), ("A.test_b (the file did not end)", "failed")])


class Processes(unittest.TestCase):
    def setUp(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a script's background

    def test_a_hang_ends_with_its_children(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = Path(folder) / "mark"
            child = f"trap 'echo interrupted > {mark}; exit 1' INT; sleep 60 & wait"
            done = processes.run(["bash", "-c", child], timeout=1)
            self.assertTrue(done.timed_out)
            self.assertFalse(done.ok)
            self.assertEqual(mark.read_text(), "interrupted\n")

    def test_a_signal_is_named(self):
        done = processes.run(["bash", "-c", "kill -SEGV $$"], timeout=10)
        self.assertEqual(done.why(), "it was ended by SIGSEGV")


class Lint(unittest.TestCase):
    def check(self, check, text: str, suffix: str = ".cc") -> list[str]:
        with tempfile.NamedTemporaryFile("w", suffix=suffix, dir=processes.ROOT) as stream:
            stream.write(text)
            stream.flush()
            return check([Path(stream.name).name])

    def test_a_missing_licence_line_is_found(self):
        self.assertTrue(self.check(lint.check_spdx, "int x;\n"))
        self.assertFalse(self.check(lint.check_spdx, "// SPDX-License-Identifier: Apache-2.0\n"))

    def test_a_path_of_one_machine_is_found(self):
        home = "/ho" + "me/me/x"  # in two parts, or this file would be found
        self.assertTrue(self.check(lint.check_machine_paths, f'#include "{home}"\n'))
        self.assertFalse(self.check(lint.check_machine_paths, f"see tests{home} and a{home}\n"))

    def test_bad_python_and_shell_are_found(self):
        self.assertTrue(self.check(lint.check_python, "def f(:\n", ".py"))
        self.assertTrue(self.check(lint.check_shell, "#!/bin/bash\nrm -rf $1/x\n", ".sh"))

    def test_white_space_is_found(self):
        self.assertTrue(self.check(lint.check_whitespace, "int x; \n"))
        self.assertTrue(self.check(lint.check_whitespace, "int x;"))
        self.assertFalse(self.check(lint.check_whitespace, "int x;\n"))

    def test_a_long_file_is_found(self):
        self.assertTrue(self.check(lint.check_length, "int x;\n" * (lint.MAX_LINES + 1)))
        self.assertFalse(self.check(lint.check_length, "int x;\n" * lint.MAX_LINES))


class WholeProgram(unittest.TestCase):
    def test_wrong_arguments_are_refused_before_anything_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = Path(folder, "tools")
            shutil.copytree(processes.ROOT / "tools" / "testkit", tools / "testkit")
            shutil.copy(processes.ROOT / "tools" / "test", tools)
            install = tools / "install-packages"
            install.write_text('#!/bin/sh\ntouch "$(dirname "$0")/installed"\nexit 9\n')
            install.chmod(0o755)
            for argv, status in ((["--bogus"], 2), (["a", "b"], 2), (["--help"], 0), (["x"], 9)):
                with self.subTest(argv=argv):
                    done = subprocess.run([tools / "test", *argv], capture_output=True, text=True)
                    self.assertEqual(done.returncode, status, done.stderr)
                    self.assertEqual((tools / "installed").exists(), status == 9)


if __name__ == "__main__":
    unittest.main()
