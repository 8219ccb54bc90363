"""The whole way: models with canned answers of varying quality are asked, graded and ranked.

Usage: ask_to_board_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path[:0] = [str(ROOT / "tests" / "ask"), str(ROOT / "tests" / "support")]
import server as chat  # noqa: E402

CHALLENGE = "layer_norm_backward"
PATIENCE = 600  # seconds


class AskToBoard(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-board-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.submissions = self.folder / "submissions"
        self.server = chat.ChatServer()
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)

    def assay(self, *args):
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENAI_API_KEY", "ASSAY_ROOT")}
        done = subprocess.run([ASSAY, "--root", ROOT, *map(str, args), "--submissions", self.submissions],
                              capture_output=True, text=True, timeout=PATIENCE, env=environment)
        self.assertEqual(done.returncode, 0, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def ask(self, model, *args):
        return self.assay("ask", "--url", self.server.url, "--model", model, "--challenge", CHALLENGE, *args)

    def test_from_the_endpoint_to_the_board(self):
        for model in ("textbook", "flawed", "broken", "refusal"):
            self.ask(model)
        self.ask("textbook", "--samples", 2)
        self.assay("run", "--quick", "--device", "cpu", "--results", self.folder / "results", "--cache",
                   self.folder / "cache")
        rows = json.loads((self.folder / "results" / "scoreboard.json").read_text())["entries"]
        scores = {(r["cell"]["model"], r["cell"]["attempt"]): r["score"] for r in rows}
        self.assertEqual(sorted(scores), [("broken", "1"), ("flawed", "1"), ("refusal", "1"), ("textbook", "1"),
                                          ("textbook", "2")])
        totals = {key: score["total"] for key, score in scores.items()}
        self.assertGreater(totals["textbook", "1"], totals["flawed", "1"])
        self.assertGreater(totals["flawed", "1"], totals["broken", "1"])
        self.assertEqual(totals["broken", "1"], 0)
        self.assertEqual(totals["refusal", "1"], 0)
        self.assertEqual(scores["broken", "1"]["verdict"], "CE")

    def test_turns_are_fed_with_what_the_check_finds(self):
        self.ask("learner", "--turns", 4)
        attempt = self.submissions / "learner" / CHALLENGE / "1"
        told = [body["messages"][-1]["content"] for _, body in self.server.requests[1:]]
        self.assertEqual(len(told), 2)  # the third answer passes
        self.assertIn("Reply with the whole of submission.cpp", told[0])
        lines = [json.loads(line) for line in (attempt / "original" / "conversation.jsonl").read_text().splitlines()]
        feedback = [line for line in lines if line["kind"] == "feedback"]
        self.assertEqual([f["passed"] for f in feedback], [False, False, True])
        self.assertEqual(feedback[1]["text"], told[1])
        self.assertGreater(len(told[1]), 40)
        shipped = ROOT / "submissions" / "textbook" / CHALLENGE / "submission.cpp"
        self.assertEqual((attempt / "submission.cpp").read_text(), shipped.read_text())
        record = json.loads((attempt / "attempt.json").read_text())
        self.assertEqual((record["turns"], record["hints"]), (3, True))
        first = self.server.requests[0][1]["messages"][0]["content"]
        self.assertEqual((record["prompt_sha256"], record["prompt_hints"]),
                         (hashlib.sha256(first.encode()).hexdigest(), False))
        self.assertEqual(sorted(p.name for p in (attempt / "original" / "turns").iterdir()), ["1.md", "2.md", "3.md"])


if __name__ == "__main__":
    unittest.main()
