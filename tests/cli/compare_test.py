"""`assay compare`, `diff`, `export` and `import` on copies of the shipped board.

Usage: compare_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library, and git where it
is installed.
"""
import collections
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path.insert(0, str(SOURCE / "tests" / "support"))
import shipped_board  # noqa: E402: from there
CHALLENGES = sorted(p.parent.name for p in SOURCE.glob("challenges/*/spec.json"))


class OnTheShippedBoard(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="assay-compare-test-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("challenges", "include", "submissions"):
            (self.root / folder).symlink_to(SOURCE / folder)
        shipped_board.copy_results(SOURCE, self.root / "results")
        self.board = self.root / "results" / "scoreboard.json"

    def assay(self, *arguments, expect=0):
        done = subprocess.run([ASSAY, "--root", self.root, *arguments], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 or done.stdout else done.stderr

    def told(self, *arguments):
        """What the command prints to stderr."""
        return subprocess.run([ASSAY, "--root", self.root, *arguments], cwd=self.root, capture_output=True, text=True,
                              check=True).stderr

    def change_board(self, change):
        board = json.loads(self.board.read_text())
        change(board["entries"])
        self.board.write_text(json.dumps(board))


def of(entries, model, challenge, device="cpu"):
    return next(e for e in entries if (e["cell"]["model"], e["cell"]["challenge"], e["cell"]["device"]) ==
                (model, challenge, device))


class Compare(OnTheShippedBoard):
    def test_two_models_are_compared_on_each_device_apart(self):
        said = self.assay("compare", "textbook", "flawed")
        self.assertIn("textbook against flawed: C++ on the CPU", said)
        self.assertIn("textbook against flawed: CUDA on the simulated GPU", said)
        self.assertIn("What decided", said)
        self.assertIn("core case", said)
        self.assertNotIn("simulated GPU", self.assay("compare", "textbook", "flawed", "--device", "cpu"))

    def test_the_json_agrees_with_the_board(self):
        [cpu, *_] = json.loads(self.assay("compare", "textbook", "flawed", "--json"))
        [pair] = cpu["pairs"]
        entries = json.loads(self.board.read_text())["entries"]
        self.assertEqual([c["challenge"] for c in pair["challenges"]], CHALLENGES)
        for c in pair["challenges"]:
            a, b = (of(entries, m, c["challenge"])["score"]["total"] for m in ("textbook", "flawed"))
            self.assertAlmostEqual(c["difference"]["value"], a - b, places=9)
            self.assertEqual(c["better"], "a" if a > b else "b")
        self.assertEqual(pair["wins"] + pair["ties"] + pair["losses"], len(CHALLENGES))

    def test_nothing_to_compare_is_an_error_in_either_form(self):
        board = json.loads(self.board.read_text())
        board["entries"] = [e for e in board["entries"]
                            if (e["cell"]["model"], e["cell"]["device"]) != ("flawed", "sim")]
        self.board.write_text(json.dumps(board))
        for form in ((), ("--json",)):
            said = self.assay("compare", "textbook", "flawed", "--device", "sim", *form, expect=2)
            self.assertIn("no two of these models were measured on the device 'sim'", said)

    def test_bytes_come_from_the_evidence_and_do_without_it(self):
        arguments = ("compare", "textbook", "flawed", "-c", "beam_search", "--device", "cpu", "--json")
        kinds = lambda: {f["kind"] for f in json.loads(self.assay(*arguments))[0]["pairs"][0]["challenges"][0]["facts"]}
        self.assertIn("resource", kinds())
        self.assertEqual(self.told(*arguments), "")
        shutil.rmtree(self.root / "results" / "cells" / "flawed")
        self.assertNotIn("resource", kinds())
        self.assertIn("core", kinds())
        self.assertIn("assay run --model flawed --challenge beam_search --device cpu", self.told(*arguments))

    def test_what_is_stale_is_marked_and_compared_with_nothing(self):
        def change(entries):
            of(entries, "flawed", "beam_search")["cell"]["revision"] = 0
            of(entries, "textbook", "kv_cache")["cell"]["spec_hash"] = "0"
        self.change_board(change)
        arguments = ("compare", "textbook", "flawed", "--device", "cpu")
        said = self.assay(*arguments)
        self.assertIn("(stale: older measurement revision)", said)
        self.assertIn("(stale: older spec)", said)
        self.assertRegex(self.told(*arguments), r"\b2 of \d+ results are stale")
        [cpu] = json.loads(self.assay(*arguments, "--json"))
        [pair] = cpu["pairs"]
        self.assertEqual(pair["wins"] + pair["ties"] + pair["losses"], len(CHALLENGES) - 2)
        self.assertEqual({c["challenge"] for c in pair["challenges"] if c.get("why_not") == "stale"},
                         {"beam_search", "kv_cache"})

    def test_mistakes_are_named(self):
        self.assertIn("did you mean 'textbook'", self.assay("compare", "textbok", "flawed", expect=2))
        self.assertIn("named twice", self.assay("compare", "flawed", "flawed", expect=2))
        self.assertIn("unknown goal", self.assay("compare", "textbook", "flawed", "--solved", "good", expect=2))
        self.assertIn("scoreboard.json", self.assay("compare", "a", "b", "--results", "nowhere", expect=2))
        self.assay("compare", "textbook", expect=2)

    def test_what_is_partial_is_told_and_not_counted(self):
        self.change_board(lambda entries: entries.append(
            json.loads(json.dumps(of(entries, "textbook", "ternary_training", "sim")))
            | {"cell": of(entries, "textbook", "ternary_training", "sim")["cell"] | {"model": "other"},
               "evidence": {"path": "cells/other/ternary_training/sim.json", "sha256": "0"}}))
        said = self.assay("compare", "textbook", "other")
        self.assertIn("Ternary training (partial)", said)
        self.assertIn("no whole challenge in common", said)


class Diff(OnTheShippedBoard):
    def setUp(self):
        super().setUp()
        self.old = self.root / "old"
        shutil.copytree(self.root / "results", self.old)

    def test_the_same_board_has_not_changed(self):
        cells = len(json.loads(self.board.read_text())["entries"])
        self.assertEqual(self.assay("diff", self.old), f"{cells} cells: {cells} same\n")

    def test_worse_gone_and_new_cells_and_the_exit_status(self):
        def change(entries):
            worse = of(entries, "tuned", "kv_cache")
            worse["score"]["total"] -= 20
            worse["score"]["interval"] = [x - 20 for x in worse["score"]["interval"]]
            worse["evidence"]["sha256"] = "0"
            entries.remove(of(entries, "flawed", "beam_search"))
        self.change_board(change)
        changes = json.loads(self.assay("diff", self.old, "--json", expect=1))
        kinds = {c["change"]: c for c in changes}
        self.assertEqual(set(kinds), {"worse", "gone", "same"})
        self.assertAlmostEqual(kinds["worse"]["difference"], -20)
        self.assertEqual(kinds["gone"]["after"], None)
        self.assertIn("worse", self.assay("diff", self.old, expect=1))
        self.assertIn("better", self.assay("diff", self.root / "results", self.old))
        self.assay("diff", self.old, "--model", "textbook")
        self.assertIn("on these boards: unknown model 'textbok'", self.assay("diff", self.old, "-m", "textbok", expect=2))
        self.assay("diff", self.old, "--least", "30", "--model", "tuned")

    def test_a_file_a_folder_and_a_project_name_a_board(self):
        for board in (self.old / "scoreboard.json", self.old, self.root):
            self.assertIn("same", self.assay("diff", board))
        self.assertIn("not a folder of results", self.assay("diff", "nowhere", expect=2))
        (self.root / "empty").mkdir()
        self.assertIn("no scoreboard.json", self.assay("diff", self.root / "empty", expect=2))

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_a_revision_names_a_board(self):
        def git(*arguments):
            subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments], cwd=self.root, check=True,
                           capture_output=True, env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"})
        git("init", "-q")
        git("add", "results/scoreboard.json")
        git("commit", "-qm", "board")
        self.change_board(lambda entries: entries.remove(of(entries, "flawed", "beam_search")))
        self.assertIn("1 gone", self.assay("diff", "HEAD", expect=1))
        self.assertIn("1 new", self.assay("diff", "results", "HEAD"))
        self.assertIn("a revision of a git", self.assay("diff", "HEAD~9", expect=2))
        self.assertIn("a revision of a git", self.assay("diff", "--", "--output=x", expect=2))


class Export(OnTheShippedBoard):
    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.assay("export", "csv", *arguments))))

    def test_tables_agree_with_the_board(self):
        entries = json.loads(self.board.read_text())["entries"]
        attempts = self.rows("--table", "attempts")
        self.assertEqual(len(attempts), len(entries))
        for row in attempts:
            entry = next(e for e in entries if all(
                e["cell"][k] == row[k] for k in ("model", "challenge", "device", "attempt")))
            self.assertEqual(float(row["score"]), entry["score"]["total"])
        cells = {(r["model"], r["challenge"], r["device"]): r for r in self.rows("--table", "cells")}
        self.assertEqual(cells["flawed", "fused_softmax_topk", "sim"]["attempts"], "4")
        # Learning is not graded in CUDA.
        self.assertEqual({k for k, r in cells.items() if r["partial"] == "true"},
                         {k for k in cells if k[1] == "ternary_training" and k[2] != "cpu"})
        self.assertIn(("textbook", "ternary_training", "sim"), cells)

    def test_cases_and_timings_come_from_the_evidence(self):
        evidence = json.loads((self.root / "results/cells/tuned/kv_cache/cpu.json").read_text())
        only = ("--model", "tuned", "--challenge", "kv_cache")
        cases = self.rows("--table", "cases", *only)
        self.assertTrue(cases)
        self.assertEqual([c["case"] for c in cases], [c["name"] for c in evidence["cell"]["cases"]])
        timings = [json.loads(line) for line in
                   self.assay("export", "jsonl", "--table", "timings", *only).splitlines()]
        self.assertEqual(len(timings), sum(len(c.get("samples", [])) for c in evidence["cell"]["cases"]))
        self.assertTrue(timings)
        self.assertTrue(all(t["submission_s"] is None or t["submission_s"] > 0 for t in timings))

    def test_a_file_is_written_whole(self):
        out = self.root / "t.csv"
        said = self.assay("export", "csv", "--table", "cells", "-c", "kv_cache", "-m", "tuned", "-m", "textbook", "-o", out)
        self.assertIn("wrote 6 rows", said)  # both in C++, on the simulator and on a GPU
        self.assertTrue(out.read_text().startswith("model,challenge,device,"))
        self.assertEqual(list(self.root.glob("*.tmp")), [])
        self.assay("export", "csv", "-o", self.root / "no" / "folder.csv", expect=2)
        (self.root / "taken" / "by").mkdir(parents=True)
        said = self.assay("export", "csv", "-c", "kv_cache", "-o", self.root / "taken", expect=2)
        self.assertIn(f"cannot replace {self.root / 'taken'}", said)
        self.assertEqual(list(self.root.glob("*.tmp")), [])


class Harbor(OnTheShippedBoard):
    def setUp(self):
        super().setUp()
        self.package = self.root / "assay.deb"
        self.package.write_bytes(b"a package\0")
        self.tasks = self.root / "tasks"

    def export(self, *arguments, expect=0):
        return self.assay("export", "harbor", "--into", self.tasks, "--package", self.package, *arguments, expect=expect)

    def test_a_task_has_all_its_files(self):
        import tomllib
        self.export("-c", "kv_cache")
        task = self.tasks / "kv_cache"
        self.assertEqual(
            {str(p.relative_to(task)) for p in task.rglob("*") if p.is_file()} >=
            {"instruction.md", "task.toml", "environment/Dockerfile", "environment/abi.h", "environment/submission.cpp",
             "tests/test.sh", "tests/assay.deb", "solution/solve.sh", "solution/submission.cpp"}, True)
        settings = tomllib.loads((task / "task.toml").read_text())
        self.assertEqual(settings["task"]["name"], "assay/kv_cache")
        self.assertGreaterEqual(settings["verifier"]["timeout_sec"], 1800)
        self.assertIn("/app/submission.cpp", (task / "instruction.md").read_text())
        for script in ("tests/test.sh", "solution/solve.sh"):
            self.assertTrue(os.access(task / script, os.X_OK), script)
            subprocess.run(["sh", "-n", task / script], check=True)
        self.assertIn("is there already", self.export("-c", "kv_cache", expect=2))
        self.assertIn("--package", self.assay("export", "harbor", expect=2))
        self.assertIn("--image", self.export("-c", "beam_search", "--language", "cuda", expect=2))

    def test_every_solution_compiles_in_one_folder(self):
        self.export()
        self.assertEqual(sorted(p.name for p in self.tasks.iterdir()), CHALLENGES)
        for task in sorted(self.tasks.iterdir()):
            app = self.root / "app" / task.name
            shutil.copytree(task / "environment", app)
            subprocess.run([task / "solution" / "solve.sh"], check=True, env=os.environ | {"HARBOR_APP": str(app)})
            done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-march=native", "-I", app, app / "submission.cpp"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def run_tests_of(self, task, grade, answered=True):
        """Runs the task's test.sh, with an assay that prints `grade`."""
        self.export("-c", task)
        fake, logs, app = self.root / "fake-assay", self.root / "logs", self.root / "app"
        app.mkdir(exist_ok=True)
        if answered:
            (app / "submission.cpp").touch()
        fake.write_text(f"#!/bin/sh\necho \"$@\" >{self.root}/asked\n{grade}\n")
        fake.chmod(0o755)
        done = subprocess.run([self.tasks / task / "tests" / "test.sh"], capture_output=True, text=True,
                              env=os.environ | {"ASSAY": str(fake), "HARBOR_LOGS": str(logs), "HARBOR_APP": str(app)})
        reward = logs / "reward.txt"
        return done.returncode, float(reward.read_text()) if reward.exists() else None

    def test_the_reward_is_the_score(self):
        self.assertEqual(self.run_tests_of("kv_cache", """echo '{"total": 81.25}'"""), (0, 0.8125))
        self.assertEqual((self.root / "asked").read_text(), f"grade {self.root}/app -c kv_cache --device cpu --json\n")

    def test_an_answer_that_is_not_there_has_the_reward_0(self):
        self.assertEqual(self.run_tests_of("kv_cache", """echo '{"total": 81.25}'""", answered=False), (0, 0))
        self.assertFalse((self.root / "asked").exists())

    def test_a_fault_of_the_harness_is_no_reward(self):
        for task, grade in (("kv_cache", "exit 2"), ("beam_search", """echo '{"total": null}'""")):
            self.assertEqual(self.run_tests_of(task, grade), (2, None))


class Import(OnTheShippedBoard):
    def test_the_shipped_grades_contradict_their_ranking(self):
        said = self.assay("import", self.root / "results/published/llm_programming_tests.json", "--dry-run")
        self.assertIn("GLM-5 is ranked 1, above Opus 4.7 (2), but averages 3.64 (A-) against 3.75 (A-)", said)
        self.assertIn("Opus 4.7 is said to have 7/8 challenges; it has 8 grades.", said)
        self.assertIn("None of these models has been measured here.", said)

    def test_grades_are_stored_and_get_a_page(self):
        table = self.root / "mine.csv"
        table.write_text("model,challenge,grade\nTuned,kv_cache,A\n<b>x</b>,kv_cache,C\n")
        self.assertIn("--source", self.assay("import", table, expect=2))
        self.assertIn("wrote", self.assay("import", table, "--source", "a friend"))
        stored = json.loads((self.root / "results/published/mine.json").read_text())
        self.assertEqual(stored["source"], "a friend")
        before = self.board.read_bytes()
        self.assay("report")
        self.assertEqual(self.board.read_bytes(), before)
        page = (self.root / "analysis/published/mine.md").read_text()
        self.assertIn("| tuned | Key/value cache | A |", page)
        self.assertNotIn("<b>", page)
        self.assay("report", "--check")
        self.assertIn("cannot name a file", self.assay("import", table, "--source", "s", "--name", "../x", expect=2))


class Pages(OnTheShippedBoard):
    def test_pages_of_models_that_are_gone_are_removed(self):
        self.assay("report")
        page = self.root / "analysis/models/flawed.md"
        self.assertTrue(page.exists())
        mine = self.root / "analysis/notes.md"
        mine.write_text("mine\n")
        self.assay("remove", "flawed")
        self.assertIn("flawed.md is no longer needed", self.assay("report", "--check", expect=1))
        self.assay("report")
        self.assertFalse(page.exists())
        self.assertTrue(mine.exists())
        self.assay("report", "--check")

    def test_a_page_of_somebody_else_is_not_overwritten(self):
        (self.root / "analysis").mkdir()
        (self.root / "analysis/README.md").write_text("mine\n")
        self.assertIn("--analysis", self.assay("report", expect=2))

    def test_the_figure_is_named(self):
        self.assay("report", "--by", "best")
        self.assertIn("Ranked by the best attempt", (self.root / "results/RANKINGS.md").read_text())
        self.assay("report", "--by", "best", "--check")
        self.assay("report", "--check", expect=1)

    def test_a_board_of_before_gets_its_failed_cases_from_the_evidence(self):
        def failed():
            return {entry["evidence"]["path"]: entry.get("failed") for entry in json.loads(self.board.read_text())["entries"]
                    if (self.root / "results" / entry["evidence"]["path"]).exists()}

        def failed_in_evidence(path):
            cases = collections.defaultdict(list)
            for case in json.loads((self.root / "results" / path).read_text())["cell"]["cases"]:
                if case["verdict"] != "OK":
                    cases[case["verdict"]].append(case["name"])
            return dict(cases)

        self.assay("remove", "tuned")  # writes the board line by line, as the program does
        lines = self.board.read_text().split("\n")
        self.board.write_text("\n".join(line for line in lines if not line.startswith('   "failed": ')))
        self.assertFalse(any(failed().values()))
        self.assay("report")
        self.assertTrue(any(failed().values()))
        self.assertEqual(failed(), {path: failed_in_evidence(path) for path in failed()})


if __name__ == "__main__":
    unittest.main()
