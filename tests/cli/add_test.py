"""`assay add`, from a model's reply to the board: extraction, attempts, facts about who answered.

Usage: add_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path.insert(0, str(ROOT / "tests" / "support"))
import tiny_answers  # noqa: E402

CHALLENGE = "fused_softmax_topk"
WHOLE = (ROOT / "submissions" / "textbook" / CHALLENGE / "submission.cpp").read_text()
TINY = tiny_answers.source_of(ROOT, CHALLENGE, "tiny")


def chat(code, info="cpp"):
    return f"<think>\nMaybe `x`?\n```cpp\nint wrong;\n</think>\nHere is my answer.\n\n```{info}\n{code}```\nIt is fast.\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-add-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.submissions, self.results = self.folder / "submissions", self.folder / "results"

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def assay(self, *args, expect=0, **options):
        done = subprocess.run([ASSAY, "--root", ROOT, *map(str, args)], capture_output=True, text=True, timeout=300,
                              **options)
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def add(self, *args, model="m", **options):
        return self.assay("add", model, CHALLENGE, *args, "--submissions", self.submissions, **options)

    def attempts(self, model="m"):
        folder = self.submissions / model / CHALLENGE
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def attempt(self, name, model="m"):
        return self.submissions / model / CHALLENGE / name

    def everything(self):
        return sorted(str(p.relative_to(self.submissions)) for p in self.submissions.rglob("*"))


class FromChatToBoard(Case):
    def run_all(self):
        return self.assay("run", "--submissions", self.submissions, "--results", self.results, "--quick")

    def board(self):
        return json.loads((self.results / "scoreboard.json").read_text())

    def cells(self):
        return {(e["cell"]["model"], e["cell"]["attempt"]): e for e in self.board()["entries"]}

    def report(self, *args, **options):
        return self.assay("report", "--results", self.results, "--submissions", self.submissions,
                          "--readme", self.folder / "R.md", *args, **options)

    def test_the_whole_way(self):
        self.add(self.file("answer.md", chat(WHOLE)), "--turns", "2", "--tokens-in", "900", "--tokens-out", "3100",
                 "--seconds", "61.5", "--cost", "0.05", "--finish-reason", "stop", "--asked-by", "a script",
                 "--asked-by-version", "1.2", "--hints", "yes")
        self.add(self.file("second.md", chat(TINY)), "--tokens-in", "100", "--hints", "no")
        self.add("--no-answer", "refused to answer")
        self.file("submissions/m/model.json", json.dumps({
            "name": "M <b> 1", "provider": "P|Q", "parameters": "7B", "link": "https://example.org/m"}))
        self.add(self.file("ref.cpp", TINY), model="r")
        self.file("submissions/r/model.json", '{"sample": true}')
        said = self.run_all()
        self.assertNotIn("warning", said)

        cells = self.cells()
        self.assertEqual(sorted(cells), [("m", "1"), ("m", "2"), ("m", "3"), ("r", "1")])
        self.assertEqual(cells["m", "1"]["score"]["verdict"], "OK")
        facts = dict(cells["m", "1"]["attempt"])
        self.assertRegex(facts.pop("date"), r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(facts, {"turns": 2, "tokens_in": 900, "tokens_out": 3100, "seconds": 61.5, "cost_usd": 0.05,
                                 "finish_reason": "stop", "command": "a script", "version": "1.2", "hints": True})
        none = cells["m", "3"]
        self.assertEqual((none["score"]["verdict"], none["score"]["total"], none["score"]["letter"]), ("NA", 0, "F"))
        self.assertEqual(none["reason"], "no answer: refused to answer")
        self.assertEqual(self.board()["models"]["m"]["name"], "M <b> 1")
        self.assertEqual(self.board()["models"]["r"], {"sample": True})

        shown = self.assay("show", "m", CHALLENGE, "--results", self.results, "--attempt", "1")
        shown = shown.replace("\n" + 12 * " ", " ")  # long lines are broken
        self.assertIn("  model     M <b> 1 (P|Q, 7B), https://example.org/m\n", shown)
        self.assertIn("  attempt   2 turns, 900 tokens in, 3100 tokens out, 61.5 s, $0.05, finished by stop, with hints, "
                      "asked by a script (1.2)", shown)
        shown = self.assay("show", "m", CHALLENGE, "--results", self.results, "--attempt", "3")
        self.assertIn("NA (no answer)", shown)
        shown = self.assay("show", "r", CHALLENGE, "--results", self.results)
        self.assertIn("a reference, not a model", shown)

        # Mean of the attempts: one without an answer counts as 0.
        totals = [cells["m", a]["score"]["total"] for a in "123"]
        mean = re.search(r"attempts: 3, mean ([\d.]+) \(", self.assay("show", "m", CHALLENGE, "--results", self.results))
        self.assertAlmostEqual(float(mean[1]), sum(totals) / 3, delta=0.051)

        readme = self.file("R.md", "<!-- assay:begin -->\n<!-- assay:end -->\n")
        self.report()
        text = readme.read_text()
        average = re.search(r"\| \S+ \| m \| ([\d.]+) \(", text)  # the mean of its attempts
        self.assertAlmostEqual(float(average[1]), sum(totals) / 3, delta=0.051)
        self.assertRegex(text, r"\| ref \| r \| ")
        self.assertIn("### Models tested", text)
        self.assertIn("| m | [M &lt;b&gt; 1](https://example.org/m) | P\\|Q | 7B | 3 (1 without an answer) | "
                      "at least 4100 | at least 1 min | at least $0.05 |", text)
        self.assertNotIn("| r | ", text.split("### Models tested")[1])
        self.assertIn("3: no answer", (self.results / "RANKINGS.md").read_text())
        self.report("--check")

        # A model's description may change. No cell becomes stale; the documents do, until the next report.
        self.file("submissions/m/model.json", '{"name": "Renamed"}')
        said = self.report("--check", expect=1)
        self.assertIn("scoreboard.json describes models as they were", said)
        self.report()
        self.report("--check")
        self.assertIn("| m | Renamed | ", readme.read_text())
        self.assertEqual(self.board()["models"]["m"], {"name": "Renamed"})
        self.assertEqual({k: e["cell"] for k, e in self.cells().items()}, {k: e["cell"] for k, e in cells.items()})
        # The description is merged along with the cells.
        other = self.folder / "other"
        self.assay("merge", self.results, "--results", other)
        merged = json.loads((other / "scoreboard.json").read_text())
        self.assertEqual(merged["models"], self.board()["models"])
        self.assay("remove", "m", "--results", other)
        self.assertEqual(list(json.loads((other / "scoreboard.json").read_text())["models"]), ["r"])

    def test_a_slip_in_a_description_costs_no_run(self):
        self.add("--no-answer", "x")
        broken = self.file("submissions/m/model.json", '{\n "name": "M",\n "sampel": true\n}')
        expected = f"warning: {broken}:3: sampel: unknown"
        self.assertIn(expected, self.run_all())
        self.assertEqual(len(self.cells()), 1)
        self.assertNotIn("models", self.board())
        self.assertIn(expected, self.assay("list", "models", "--submissions", self.submissions))
        self.file("R.md", "<!-- assay:begin -->\n<!-- assay:end -->\n")
        self.assertIn(expected, self.report())


class Extraction(Case):
    def test_the_original_is_kept_as_it_came(self):
        text = chat(TINY).replace("\n", "\r\n")
        said = self.add(self.file("reply.md", text))
        attempt = self.attempt("1")
        self.assertIn(str(attempt), said)
        self.assertEqual((attempt / "submission.cpp").read_bytes().decode(), TINY)
        self.assertEqual((attempt / "original" / "reply.md").read_bytes().decode(), text)
        record = json.loads((attempt / "attempt.json").read_text())
        self.assertEqual(record["language"], "cpp")
        self.assertIn("the fenced block at line 8, the only one with code", record["how"])
        self.assertIn(record["how"], said)

    def test_standard_input(self):
        self.add("-", input=chat(TINY, "cuda"))
        self.assertEqual((self.attempt("1") / "submission.cu").read_text(), TINY)
        self.assertTrue((self.attempt("1") / "original" / "answer.md").exists())

    def test_what_is_ambiguous_is_shown_and_a_number_decides(self):
        answer = self.file("a.md", chat(TINY) + chat(TINY + "// better\n").split("</think>")[1])
        said = self.add(answer, expect=2)
        self.assertIn("several blocks could be the answer: choose one with --block N", said)
        self.assertRegex(said, r"(?m)^ +1 +8 +cpp ")
        self.assertRegex(said, r"(?m)^ +2 +\d+ +cpp ")
        self.assertEqual(self.attempts(), [])
        self.add(answer, "--block", "2")
        self.assertTrue((self.attempt("1") / "submission.cpp").read_text().endswith("// better\n"))
        self.assertIn("there is no block 3", self.add(answer, "-b", "3", expect=2))

    def test_no_answer_says_how_to_count_it(self):
        said = self.add(self.file("a.md", "I cannot do that."), expect=2)
        self.assertIn(f"assay add m {CHALLENGE} --no-answer", said)
        self.assertEqual(self.attempts(), [])

    def test_a_cut_off_answer_is_said_to_be_one(self):
        self.assertIn("cut off", self.add("-", input="```cpp\n" + TINY))
        self.assertTrue(json.loads((self.attempt("1") / "attempt.json").read_text())["cut_off"])

    def test_a_folder_that_an_agent_worked_in(self):
        self.assay("deploy", "agent", "--challenge", CHALLENGE, "--into", self.folder)
        work = self.folder / "agent" / CHALLENGE
        (work / "submission.cpp").write_text(TINY)
        (work / "submission.so").write_bytes(b"\x7fELF")
        (work / "session.jsonl").write_text("{}")
        (work / "__pycache__").mkdir()
        (work / "__pycache__" / "x.pyc").write_bytes(b"\0\xff")
        said = self.add(work)
        self.assertIn("not part of the answer: __pycache__, session.jsonl\n", said)
        deployed, stored = (json.loads((folder / "attempt.json").read_text()) for folder in (work, self.attempt("1")))
        self.assertEqual({key: stored[key] for key in deployed}, deployed)
        (work / "attempt.json").write_text('{"prompt_sha256": 7}')
        self.assertIn("not part of the answer: __pycache__, attempt.json, session.jsonl\n", self.add(work))
        self.assertNotIn("prompt_sha256", json.loads((self.attempt("2") / "attempt.json").read_text()))
        self.assertEqual((self.attempt("1") / "original" / "__pycache__" / "x.pyc").read_bytes(), b"\0\xff")
        listed = self.assay("list", "models", "--submissions", self.submissions)
        self.assertNotIn("warning", listed)
        self.assertNotIn("rejected", listed)
        (work / "link.h").symlink_to("/etc/passwd")
        self.assertIn("link.h is a symbolic link", self.add(work, expect=2))

    def test_names_of_models_and_challenges(self):
        answer = self.file("a.md", chat(TINY))
        for model in ("../m", ".m", "a/b"):
            self.assertIn("no model can have the name", self.add(answer, model=model, expect=2))
        self.assertIn("did you mean", self.assay("add", "m", CHALLENGE[:-1], answer, "--submissions",
                                                 self.submissions, expect=2))
        self.assertIn("no such file", self.add(self.folder / "missing.md", expect=2))
        self.assertIn("name the answer", self.add(expect=2))
        self.assertFalse(self.submissions.exists())

    def test_a_dry_run_writes_nothing(self):
        self.assertIn("submission.cpp", self.add(self.file("a.md", chat(TINY)), "--dry-run"))
        self.assertIn("no answer: x", self.add("--no-answer", "x", "--dry-run"))
        self.assertFalse(self.submissions.exists())


class Attempts(Case):
    def test_an_answer_without_a_number_is_the_first(self):
        tiny_answers.submit(ROOT, self.submissions, ["m"], [CHALLENGE])
        self.add(self.file("a.md", chat(TINY)))
        self.assertEqual(self.attempts(), ["2", "submission.cpp"])
        only = json.loads(self.assay("list", "models", "--json", "--submissions", self.submissions))
        self.assertEqual(sorted(only), ["models", "submissions"])
        listed = json.loads(self.assay("list", "--json", "--submissions", self.submissions))
        self.assertEqual([s["attempt"] for s in listed["submissions"]], ["", "2"])

    def test_many_at_once(self):
        answer, many = self.file("a.md", chat(TINY)), 8
        processes = [subprocess.Popen([ASSAY, "--root", ROOT, "add", "m", CHALLENGE, answer, "--submissions",
                                       self.submissions], stdout=subprocess.PIPE, text=True) for _ in range(many)]
        said = [p.communicate(timeout=120)[0].splitlines()[0] for p in processes]
        self.assertEqual([p.returncode for p in processes], [0] * many)
        self.assertEqual(sorted(said), sorted(str(self.attempt(str(n + 1))) for n in range(many)))
        self.assertEqual([p.name for p in self.submissions.iterdir()], ["m"])

    def test_a_full_disk_leaves_nothing_behind(self):
        library = self.folder / "faulty_system.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                        ROOT / "tests" / "support" / "faulty_system.c", "-ldl"], check=True)
        answer = self.file("a.md", chat(TINY))
        self.add(answer)
        before = self.everything()
        said = self.add(answer, expect=2, env={**os.environ, "LD_PRELOAD": str(library),
                                               "FAULTS_FULL": str(self.submissions)})
        self.assertRegex(said, r"cannot write \S+: No space left on device; make room")
        self.assertEqual(self.everything(), before)
        self.add(answer)
        self.assertEqual(self.attempts(), ["1", "2"])


if __name__ == "__main__":
    unittest.main()
