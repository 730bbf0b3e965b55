# SPDX-License-Identifier: Apache-2.0
"""The documents by themselves: their links lead somewhere, and what must be complete is."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", CODE_BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Docs(unittest.TestCase):
    def test_every_link_to_a_file_leads_there(self):
        count = 0
        for page in PAGES:
            links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", CODE_BLOCK.sub("", page.read_text()))
            for path, anchor in links:
                count += 1
                with self.subTest(page=page.name, link=f"{path}#{anchor}"):
                    target = (page.parent / path).resolve() if path else page
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))
        self.assertGreater(count, 50)

    def test_operators_are_told_of_every_drop_reason_and_of_no_other(self):
        header = (ROOT / "lib" / "model" / "drop_reason.h").read_text()
        reasons = re.findall(r"^  X\((\w+),", header, re.MULTILINE)
        self.assertGreater(len(reasons), 30)
        page = (ROOT / "docs" / "operations.md").read_text()
        (table,) = re.findall(r"^\| reason \| usual cause .*\n((?:\|.*\n)+)", page, re.MULTILINE)
        told = re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines()))
        self.assertEqual(sorted(told), sorted(reasons))

    def test_every_decision_is_listed(self):
        folder = ROOT / "docs" / "decisions"
        listed = re.findall(r"^\| \[([\w-]+\.md)\]", (folder / "README.md").read_text(), re.MULTILINE)
        there = [page.name for page in folder.glob("*.md") if page.name != "README.md"]
        self.assertEqual(listed, sorted(there))


if __name__ == "__main__":
    unittest.main()
