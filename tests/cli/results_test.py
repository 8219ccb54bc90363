"""Drives the commands that read and change results, on handmade boards: nothing is measured.

Usage: results_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import copy
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
CHALLENGE, OTHER = "fused_softmax_topk", "layer_norm_backward"
MACHINE = {"cpu": "a cpu", "kernel": "6.1", "os": "an os", "compiler": "g++", "cores": 2, "memory_bytes": 1 << 30,
           "l3_bytes": 1 << 20, "copy_bytes_per_s": 1e10, "fma_flops_per_s": 1e11}
VERSION = {"version": "0.1.0", "commit": "0123"}


def cell_of(model, challenge=CHALLENGE, attempt="", at="2026-01-01", sources="s", revision=None):
    """A measured cell: one core case that passed. Without a revision it is like a cell in an old file."""
    return {**({} if revision is None else {"revision": revision}), "model": model, "challenge": challenge, "attempt": attempt, "device": "cpu", "spec_hash": "spec",
            "isolation": "none", "seed": "1", "finished_at": at,
            "build": {"verdict": "OK", "source_hash": sources, "command": "g++", "seconds": 0.0, "cached": True},
            "cases": [{"name": "a_case", "group": "core", "verdict": "OK", "seed": "1", "seconds": 0.5}], "mutants": []}


def score_of(total, flags=()):
    dimension = {"name": "correctness", "points": total, "max": 100.0, "interval": [total, total], "why": "so it is"}
    return {"verdict": "OK", "total": total, "interval": [total, total], "letter": "B", "capped": False,
            "dimensions": [dimension], "speeds": [], "flags": [{"kind": flag, "text": flag} for flag in flags]}


def write(path, document):
    text = json.dumps(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def tree(folder):
    """Every file and its contents, except the lock."""
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-results-"))
        self.ours, self.theirs = self.folder / "ours", self.folder / "theirs"
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def assay(self, *args, expect=0, env=()):
        done = subprocess.run([ASSAY, "--root", ROOT, *map(str, args)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **dict(env)})
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def make(self, results, *cells):
        """A results folder with the cells, each (cell, total) or (cell, total, flags)."""
        entries = []
        for cell, total, *flags in cells:
            attempt = cell["attempt"] + "." if cell["attempt"] else ""
            path = f"cells/{cell['model']}/{cell['challenge']}/{attempt}cpu.json"
            score = score_of(total, *flags)
            sha256 = write(results / path, {"schema": 2, "kind": "cell", "run_id": "r", "assay": VERSION,
                                            "machine": MACHINE, "score": score, "cell": cell})
            keys = ("model", "challenge", "attempt", "device", "spec_hash", "isolation", "seed", "finished_at")
            entries.append({
                "cell": {**{k: cell[k] for k in keys}, **{k: cell[k] for k in cell if k == "revision"}, "source_hash": cell["build"]["source_hash"], "seconds": 0.5},
                "score": score, "reason": "full marks", "failed": {}, "assay": VERSION, "machine": "m",
                "evidence": {"path": path, "sha256": sha256}})
        write(results / "scoreboard.json", {"schema": 2, "kind": "scoreboard", "machines": {"m": MACHINE}, "entries": entries})

    def totals(self, results):
        board = json.loads((results / "scoreboard.json").read_text())
        return {(e["cell"]["model"], e["cell"]["challenge"], e["cell"]["attempt"]): e["score"]["total"]
                for e in board["entries"]}

    def check_evidence(self, results, missing=()):
        """Every row has the evidence that its score came from, except the rows of the models in `missing`."""
        for e in json.loads((results / "scoreboard.json").read_text())["entries"]:
            path = results / e["evidence"]["path"]
            if e["cell"]["model"] in missing:
                self.assertFalse(path.exists())
                continue
            self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), e["evidence"]["sha256"])
            self.assertEqual(json.loads(path.read_text())["score"], e["score"])

    def merge(self, *args, **kwargs):
        return self.assay("merge", *args, "--results", self.ours, **kwargs)


class Merge(Case):
    def test_into_an_empty_folder(self):
        self.make(self.theirs, (cell_of("a"), 80.0), (cell_of("a", attempt="2"), 81.0), (cell_of("b", OTHER), 60.0))
        before = tree(self.theirs)
        self.assertIn("3 cells: 3 new", self.merge(self.theirs))
        self.assertEqual(self.totals(self.ours), self.totals(self.theirs))
        self.check_evidence(self.ours)
        self.assertEqual(tree(self.theirs), before, "nothing is written there")

    def test_the_newest_counts(self):
        self.make(self.ours, (cell_of("a", at="2026-01-02"), 80.0), (cell_of("b", at="2026-01-02"), 80.0),
                  (cell_of("mine"), 1.0))
        self.make(self.theirs, (cell_of("a", at="2026-01-03"), 70.0), (cell_of("b", at="2026-01-01"), 70.0),
                  (cell_of("new"), 2.0))
        output = self.merge(self.theirs)
        self.assertIn("3 cells: 1 new, 1 replaced ours, 1 older than ours", output)
        self.assertEqual(self.totals(self.ours), {("a", CHALLENGE, ""): 70.0, ("b", CHALLENGE, ""): 80.0,
                                                  ("mine", CHALLENGE, ""): 1.0, ("new", CHALLENGE, ""): 2.0})
        self.check_evidence(self.ours)
        again = tree(self.ours)
        self.assertIn("2 already here, 1 older than ours", self.merge(self.theirs))
        self.assertEqual(tree(self.ours), again)

    def test_theirs_and_ours_may_be_preferred(self):
        ours = [(cell_of("a", at="2026-01-02"), 80.0), (cell_of("b", at="2026-01-01"), 80.0)]
        self.make(self.theirs, (cell_of("a", at="2026-01-01"), 70.0), (cell_of("b", at="2026-01-02"), 70.0),
                  (cell_of("c"), 70.0))
        for prefer, totals in {"theirs": [70.0, 70.0, 70.0], "ours": [80.0, 80.0, 70.0]}.items():
            shutil.rmtree(self.ours, ignore_errors=True)
            self.make(self.ours, *ours)
            self.merge("--prefer", prefer, self.theirs)
            self.assertEqual(list(self.totals(self.ours).values()), totals, prefer)
            self.check_evidence(self.ours)
        self.merge("--prefer", "loudest", self.theirs, expect=2)

    def test_a_newer_revision_replaces_an_older_one_and_never_the_other_way(self):
        new, old = cell_of("a", at="2026-01-01", revision=2), cell_of("a", at="2026-01-09", revision=1)
        self.make(self.ours, (old, 80.0))
        self.make(self.theirs, (new, 70.0))
        self.assertIn("1 replaced ours", self.merge(self.theirs))
        self.make(self.theirs, (old, 80.0))
        for prefer in ("newest", "theirs"):
            self.assertIn("1 older than ours", self.merge("--prefer", prefer, self.theirs))
            self.assertEqual(self.totals(self.ours), {("a", CHALLENGE, ""): 70.0})
        self.make(self.theirs, (cell_of("a", at="2027-01-01"), 90.0))
        self.assertIn("1 older than ours", self.merge(self.theirs))
        self.check_evidence(self.ours)

    def test_a_quick_result_does_not_displace_a_full_one(self):
        self.make(self.ours, (cell_of("a", at="2026-01-01"), 80.0))
        self.make(self.theirs, (cell_of("a", at="2026-01-02"), 90.0, ["quick"]))
        self.assertIn("1 lesser than ours", self.merge(self.theirs))
        self.assertEqual(self.totals(self.ours), {("a", CHALLENGE, ""): 80.0})
        self.check_evidence(self.ours)

    def test_several_folders(self):
        third = self.folder / "third"
        self.make(self.theirs, (cell_of("a", at="2026-01-01"), 1.0))
        self.make(third, (cell_of("a", at="2026-01-02"), 2.0), (cell_of("b"), 3.0))
        self.merge(self.theirs, third)
        self.assertEqual(self.totals(self.ours), {("a", CHALLENGE, ""): 2.0, ("b", CHALLENGE, ""): 3.0})
        self.check_evidence(self.ours)

    def test_what_cannot_be_read_is_refused_before_anything_is_written(self):
        self.make(self.ours, (cell_of("a"), 80.0))
        self.make(self.theirs, (cell_of("b"), 70.0))
        bad = self.folder / "bad"
        board = json.loads((self.theirs / "scoreboard.json").read_text())
        before = tree(self.ours)
        unknown, wrong, elsewhere = (copy.deepcopy(board) for _ in range(3))
        unknown["entries"][0]["score"]["charm"] = 1
        wrong["entries"][0]["cell"]["seed"] = 1
        elsewhere["entries"][0]["evidence"]["path"] = "../../ours/cells/a.json"
        for document, message in ((unknown, "at /entries/0/score/charm: unknown"),
                                  (wrong, "at /entries/0/cell/seed: expected"),
                                  (elsewhere, "should lie in cells/b/"),
                                  ({"schema": 9}, "newer assay")):
            write(bad / "scoreboard.json", document)
            output = self.merge(self.theirs, bad, expect=2)
            self.assertIn(message, output)
            self.assertIn(str(bad / "scoreboard.json"), output)
            self.assertEqual(tree(self.ours), before)
        self.assertIn("holds no results", self.merge(self.theirs, self.folder / "none", expect=2))
        self.assertEqual(tree(self.ours), before)

    def test_missing_and_foreign_evidence_is_said(self):
        self.make(self.ours, (cell_of("a", at="2026-01-01"), 80.0))
        self.make(self.theirs, (cell_of("a", at="2026-01-02"), 70.0), (cell_of("b"), 70.0), (cell_of("c"), 70.0))
        (self.theirs / "cells" / "a" / CHALLENGE / "cpu.json").unlink()
        (self.theirs / "cells" / "b" / CHALLENGE / "cpu.json").write_text("{}")
        self.assertIn("of 2 the evidence is missing", self.merge(self.theirs))
        self.assertEqual(len(self.totals(self.ours)), 3)
        self.check_evidence(self.ours, missing=("a", "b"))

    def test_a_board_of_schema_1(self):
        entry = {"cell": cell_of("a"), "score": score_of(80.0), "assay": VERSION, "machine": MACHINE}
        write(self.theirs / "scoreboard.json", {"schema": 1, "kind": "scoreboard", "entries": [entry]})
        before = tree(self.theirs)
        self.assertIn("1 new", self.merge(self.theirs))
        self.assertEqual(tree(self.theirs), before)
        self.assertEqual(self.totals(self.ours), {("a", CHALLENGE, ""): 80.0})
        self.check_evidence(self.ours)


class Remove(Case):
    def setUp(self):
        super().setUp()
        self.make(self.ours, (cell_of("alice"), 80.0), (cell_of("alice", OTHER), 81.0),
                  (cell_of("alice", OTHER, attempt="2"), 82.0), (cell_of("bob"), 60.0))

    def remove(self, *args, **kwargs):
        return self.assay("remove", *args, "--results", self.ours, **kwargs)

    def test_a_model(self):
        self.assertIn("removed 3 results of alice", self.remove("alice"))
        self.assertEqual(self.totals(self.ours), {("bob", CHALLENGE, ""): 60.0})
        self.assertEqual([p.name for p in (self.ours / "cells").iterdir()], ["bob"])
        self.check_evidence(self.ours)

    def test_a_challenge_of_a_model(self):
        self.assertIn("removed 2 results of alice for " + OTHER, self.remove("alice", OTHER))
        self.assertEqual(self.totals(self.ours), {("alice", CHALLENGE, ""): 80.0, ("bob", CHALLENGE, ""): 60.0})
        self.check_evidence(self.ours)

    def test_what_a_journal_holds_too(self):
        other = self.folder / "other"
        self.make(other, (cell_of("alice", at="2027"), 90.0))
        board = json.loads((other / "scoreboard.json").read_text())
        line = {"schema": 2, **board["entries"][0], "machine": MACHINE}
        (self.ours / "scoreboard.journal").write_text(json.dumps(line) + "\n")
        self.remove("alice", CHALLENGE)
        self.assertNotIn(("alice", CHALLENGE, ""), self.totals(self.ours))
        self.assertFalse((self.ours / "scoreboard.journal").exists())

    def test_unknown_names(self):
        before = tree(self.ours)
        self.assertIn("did you mean 'alice'", self.remove("alicee", expect=2))
        self.assertIn(f"did you mean '{CHALLENGE}'", self.remove("bob", CHALLENGE + "s", expect=2))
        self.assertIn("bob has no results for it", self.remove("bob", OTHER, expect=2))
        self.assertEqual(tree(self.ours), before)

    def test_the_last_one(self):
        self.remove("alice")
        self.remove("bob")
        self.assertEqual(self.totals(self.ours), {})
        self.assertIn("there are none", self.remove("bob", expect=2))


class Show(Case):
    def setUp(self):
        super().setUp()
        self.make(self.ours, (cell_of("alice"), 80.0))
        self.evidence = self.ours / "cells" / "alice" / CHALLENGE / "cpu.json"

    def show(self, *args, **kwargs):
        shown = self.assay("show", "alice", CHALLENGE, "--results", self.ours, *args, **kwargs)
        return shown.replace("\n" + 12 * " ", " ")  # long lines are broken

    def test_evidence_is_shown(self):
        shown = json.loads(self.show("--json"))
        expected = json.loads(self.evidence.read_text())
        expected["cell"]["revision"] = 0  # old files do not have it
        self.assertEqual(shown, expected)
        self.assertNotIn("the board knows", self.show())

    def test_without_evidence_the_board_speaks(self):
        self.evidence.unlink()
        output = self.show()
        for text in ("B 80.0", "so it is", "reason    full marks", "This is what the board knows", f"{self.evidence} is missing",
                     f"`assay run --model alice --challenge {CHALLENGE} --device cpu --results {self.ours}`"):
            self.assertIn(text, output)
        self.assertIn("is missing", self.show("--json", expect=2))

    def test_what_is_stale_is_said_with_its_reasons(self):
        self.assertIn("stale, and compared with nothing: older measurement revision, older spec; `assay run --stale`",
                      self.show())
        self.evidence.unlink()
        self.assertIn("stale, and compared with nothing: older measurement revision, older spec", self.show())

    def test_evidence_of_another_measurement_is_noticed(self):
        document = json.loads(self.evidence.read_text())
        document["score"]["total"] = 99.0
        write(self.evidence, document)
        output = self.show()
        self.assertIn("is not the file that this score came from", output)
        self.assertNotIn("99", output)


class Journal(Case):
    """Every command counts the cells that a killed run left in the journal as on the board."""

    def setUp(self):
        super().setUp()
        self.make(self.ours, (cell_of("alice"), 80.0))
        board = json.loads((self.ours / "scoreboard.json").read_text())
        entry = board["entries"].pop()
        write(self.ours / "scoreboard.json", board)
        line = json.dumps({"schema": 2, **entry, "machine": MACHINE}) + "\n"
        self.journal = self.ours / "scoreboard.journal"
        self.journal.write_text(line + line[: len(line) // 2])

    def test_show_and_report(self):
        self.assertIn("B 80.0", self.assay("show", "alice", CHALLENGE, "--results", self.ours))
        readme = self.folder / "README.md"
        readme.write_text("<!-- assay:begin -->\n<!-- assay:end -->\n")
        self.assay("report", "--readme", readme, "--results", self.ours)
        self.assertIn("| alice |", readme.read_text())
        (self.ours / "scoreboard.json").unlink()
        self.assay("report", "--readme", readme, "--results", self.ours, "--check")

    def test_who_writes_the_board_takes_it_in(self):
        self.make(self.theirs, (cell_of("bob"), 70.0))
        self.merge(self.theirs)
        self.assertEqual(len(self.totals(self.ours)), 2)
        self.assertFalse(self.journal.exists())


class Migration(Case):
    def setUp(self):
        super().setUp()
        entry = {"cell": cell_of("alice"), "score": score_of(80.0), "assay": VERSION, "machine": MACHINE}
        write(self.ours / "scoreboard.json", {"schema": 1, "kind": "scoreboard", "entries": [entry]})

    def test_happens_once_and_is_said(self):
        output = self.assay("show", "alice", CHALLENGE, "--results", self.ours)
        self.assertIn("was of schema 1", output)
        self.assertIn("B 80.0", output)
        self.check_evidence(self.ours)
        self.assertNotIn("schema 1", self.assay("show", "alice", CHALLENGE, "--results", self.ours))

    def test_a_folder_that_cannot_be_written_is_only_read(self):
        library = self.folder / "faulty_system.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                        ROOT / "tests" / "support" / "faulty_system.c", "-ldl"], check=True)
        before = tree(self.ours)
        output = self.assay("show", "alice", CHALLENGE, "--results", self.ours,
                            env={"LD_PRELOAD": str(library), "FAULTS_READ_ONLY": str(self.ours)})
        self.assertRegex(output, "the board stays as it is: .*Read-only file system")
        self.assertIn("B 80.0", output)
        self.assertEqual(tree(self.ours), before)


if __name__ == "__main__":
    unittest.main()
