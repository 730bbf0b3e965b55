# SPDX-License-Identifier: Apache-2.0
"""bench/run: its arguments, its JSON, and that a missed goal is not overlooked. Nothing here asks how
fast anything is."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "bench/run"
BUILT = ROOT / os.environ.get("HOLDFAST_BUILD", "build") / "bench/holdfast_bench"

# A stand-in for the benchmark program: one row, whose goal is missed when the group is "slow".
PROGRAM = """\
#!/usr/bin/env python3
import json, sys
slow = "slow" in sys.argv
if "broken" in sys.argv:
    sys.exit(2)
row = {"name": "a/row", "median": 3 if slow else 1, "min": 1, "max": 3, "unit": "ratio",
       "goal": "<= 2", "met": not slow}
open(sys.argv[sys.argv.index("--json") + 1], "w").write(json.dumps({"rows": [row]}))
print("arguments", *[word for word in sys.argv[1:] if "/" not in word])
if slow and "--check" in sys.argv:
    print("goal missed: a/row", file=sys.stderr)
    sys.exit(1)
"""


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([RUN, *map(str, arguments)], text=True, capture_output=True, timeout=300)


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def test_wrong_usage_is_refused_before_anything_is_built(self):
        done = bench("--quik")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: bench/run", done.stderr)
        self.assertNotIn("building", done.stdout)

    def test_json_without_a_folder_is_refused_before_anything_is_built(self):
        done = bench("--json", self.folder / "no/such.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no folder", done.stderr)
        self.assertNotIn("building", done.stdout)

    def test_the_machine_is_said_and_written_beside_the_rows(self):
        file = self.folder / "figures.json"
        done = bench("--program", self.program, "--json", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(file.read_text())
        for fact in ("cpu", "cores", "caches", "kernel", "compiler", "dpdk", "load"):
            self.assertTrue(figures["machine"][fact], fact)
            self.assertIn(figures["machine"][fact], done.stdout)
        self.assertEqual([row["name"] for row in figures["rows"]], ["a/row"])

    def test_arguments_reach_the_program(self):
        done = bench("--program", self.program, "--quick", "maglev", "table")
        self.assertRegex(done.stdout, r"arguments --json maglev table --quick\n")

    def test_a_missed_goal_is_the_exit_status_and_its_rows_are_still_written(self):
        file = self.folder / "figures.json"
        done = bench("--program", self.program, "--check", "--json", file, "slow")
        self.assertEqual(done.returncode, 1)
        self.assertIn("goal missed: a/row", done.stderr)
        self.assertFalse(json.loads(file.read_text())["rows"][0]["met"])

    def test_without_check_a_missed_goal_is_no_failure(self):
        self.assertEqual(bench("--program", self.program, "slow").returncode, 0)

    def test_a_program_that_fails_is_a_failure(self):
        self.assertEqual(bench("--program", self.program, "broken").returncode, 2)
        self.assertEqual(bench("--program", self.folder / "none").returncode, 2)


@unittest.skipUnless(BUILT.exists(), "bench/holdfast_bench is not built")
class Program(unittest.TestCase):
    def test_an_unknown_group_is_refused_and_the_known_ones_are_named(self):
        done = bench("--program", BUILT, "nothing-of-ours")
        self.assertEqual(done.returncode, 2)
        self.assertIn("maglev", done.stdout + done.stderr)

    def test_rows_have_what_the_documentation_promises(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures.json"
            done = bench("--program", BUILT, "--quick", "--json", file, "maglev")
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(file.read_text())["rows"]
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertEqual(list(row), ["name", "median", "min", "max", "unit", "goal", "met"])
            self.assertLessEqual(row["min"], row["median"])
            self.assertLessEqual(row["median"], row["max"])
            self.assertEqual(row["goal"] is None, row["met"] is None)
            self.assertIn(row["name"], done.stdout)
        moved = [row for row in rows if row["name"].endswith("moved by the overlay")]
        self.assertGreater(len(moved), 5)
        self.assertTrue(all(row["met"] and row["max"] == 0 for row in moved))


if __name__ == "__main__":
    unittest.main()
