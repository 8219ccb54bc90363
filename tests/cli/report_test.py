"""`assay report` on copies of the shipped board: which files it writes, and which it refuses to write.

Usage: report_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path.insert(0, str(SOURCE / "tests" / "support"))
import shipped_board  # noqa: E402: from there
README = "# x\n<!-- assay:begin -->\nold\n<!-- assay:end -->\ntail\n"


class Report(unittest.TestCase):
    """A copied root, so that its README and results are the defaults."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="assay-report-test-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("challenges", "include"):
            (self.root / folder).symlink_to(SOURCE / folder)
        shipped_board.copy_results(SOURCE, self.root / "results")
        self.rankings = self.root / "results" / "RANKINGS.md"
        self.rankings.unlink()
        self.readme = self.root / "README.md"

    def report(self, *arguments, expect=0):
        done = subprocess.run([ASSAY, "--root", self.root, "report", *arguments], cwd=self.root,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, expect, done.stdout)
        return done.stdout

    def test_the_readme_gets_the_overall_tables_and_the_rankings_everything(self):
        self.readme.write_text(README)
        self.report()
        self.assertIn("| tuned |", self.readme.read_text())
        self.assertNotIn("### Head to head", self.readme.read_text())
        self.assertIn("(results/RANKINGS.md)", self.readme.read_text())
        self.assertIn("Head to head", self.rankings.read_text())
        self.assertIn("(../README.md)", self.rankings.read_text())

    def test_check_sees_either_file_stale_and_writes_neither(self):
        self.readme.write_text(README)
        self.report()
        self.report("--check")
        for file in (self.readme, self.rankings):
            text = file.read_text()
            file.write_text(text.replace("tuned", "turned"))
            self.assertIn(f"{file.name} is out of date", self.report("--check", expect=1))
            self.assertIn("turned", file.read_text())
            file.write_text(text)
        self.rankings.unlink()
        self.report("--check", expect=1)
        self.assertFalse(self.rankings.exists())

    def test_without_a_readme_the_rankings_are_written_alone(self):
        self.report()
        self.assertFalse(self.readme.exists())
        self.assertNotIn("](", self.rankings.read_text())
        self.report("--check")

    def test_evidence_changes_nothing(self):
        self.readme.write_text(README)
        self.report()
        shutil.rmtree(self.root / "results" / "cells")
        self.report("--check")

    def test_stale_rows_are_told_and_rank_nobody(self):
        self.readme.write_text(README)
        board = self.root / "results" / "scoreboard.json"
        rows = json.loads(board.read_text())
        key = ("tuned", "kv_cache", "cpu")
        [stale] = [e["cell"] for e in rows["entries"] if tuple(e["cell"][k] for k in ("model", "challenge", "device")) == key]
        del stale["revision"]
        board.write_text(json.dumps(rows))
        self.report()
        for text in (self.readme.read_text(), self.rankings.read_text()):
            self.assertIn(f"1 of {len(rows['entries'])} results is stale", text)
            self.assertIn("`assay run --stale`", text)
            self.assertIn("| 7 of 8 + 1 stale |", text)
        self.assertIn("(stale: older measurement revision)", self.rankings.read_text())

    def test_another_board_leaves_the_readme_alone(self):
        self.readme.write_text(README)
        other = self.root / "other"
        shutil.copytree(self.root / "results", other)
        self.report("--results", other)
        self.assertEqual(self.readme.read_text(), README)
        self.assertFalse(self.rankings.exists())
        self.assertTrue((other / "RANKINGS.md").exists())
        self.report("--results", other, "--readme", self.readme)
        self.assertIn("(other/RANKINGS.md)", self.readme.read_text())

    def test_files_can_be_named(self):
        (self.root / "X.md").write_text(README)
        self.report("--readme", "X.md", "--rankings", "deep/er/Y.md")
        self.assertIn("(deep/er/Y.md)", (self.root / "X.md").read_text())
        self.assertIn("(../../X.md)", (self.root / "deep" / "er" / "Y.md").read_text())

    def test_a_file_of_somebody_else_is_not_overwritten(self):
        notes = self.root / "notes.md"
        notes.write_text("mine\n")
        said = self.report("--rankings", notes, expect=2)
        self.assertIn("was not written by `assay report`", said)
        self.assertEqual(notes.read_text(), "mine\n")

    def test_a_readme_about_something_else_is_left_alone(self):
        self.readme.write_text("# x\n")
        self.assertIn("README.md is left alone", self.report())
        self.assertEqual(self.readme.read_text(), "# x\n")
        self.assertTrue(self.rankings.exists())

    def test_a_named_readme_without_markers_is_an_error_before_anything_is_written(self):
        self.readme.write_text("# x\n")
        said = self.report("--readme", self.readme, expect=2)
        self.assertIn("add the lines '<!-- assay:begin -->'", said)
        self.assertFalse(self.rankings.exists())

    def test_a_readme_with_one_marker_is_an_error(self):
        self.readme.write_text("# x\n<!-- assay:begin -->\n")
        self.assertIn("no line '<!-- assay:end -->'", self.report(expect=2))
        self.assertFalse(self.rankings.exists())

    def test_a_named_folder_without_a_board_is_an_error(self):
        said = self.report("--results", self.root / "nowhere", expect=2)
        self.assertIn("nowhere/scoreboard.json", said)
        self.assertFalse((self.root / "nowhere").exists())


if __name__ == "__main__":
    unittest.main()
