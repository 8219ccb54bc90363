"""assay solve with small agents, among them some that misbehave.

Usage: solve_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path.insert(0, str(ROOT / "tests" / "support"))
import processes  # noqa: E402
import tiny_answers  # noqa: E402

CHALLENGE, OTHER = "layer_norm_backward", "fused_softmax_topk"
SECRET = "what-the-agent-may-know-and-no-file"
PATIENCE = 300  # seconds


class Solve(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-solve-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.submissions, self.temporary = self.folder / "submissions", self.folder / "tmp"
        self.temporary.mkdir()
        for challenge in (CHALLENGE, OTHER):
            (self.folder / f"{challenge}.cpp").write_text(tiny_answers.source_of(ROOT, challenge, "by an agent"))

    def command(self, *agent, args=(), challenges=(CHALLENGE,)):
        named = [word for c in challenges for word in ("--challenge", c)]
        return [ASSAY, "--root", ROOT, "solve", "--as", "agent", "--submissions", self.submissions, "--grace", "0.2", *named,
                *map(str, args), "--", *map(str, agent)]

    def environment(self, **more):
        return {**os.environ, "TMPDIR": str(self.temporary), "FOLDER": str(self.folder), "AGENT_TOKEN": SECRET, **more}

    def solve(self, *agent, expect=0, args=(), challenges=(CHALLENGE,)):
        done = subprocess.run(self.command(*agent, args=args, challenges=challenges), capture_output=True, text=True,
                              timeout=PATIENCE, env=self.environment())
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, expect, said)
        self.assertEqual(processes.orphans(), [])
        return said

    def attempt(self, number=1, challenge=CHALLENGE):
        return self.submissions / "agent" / challenge / str(number)

    def record(self, **options):
        return json.loads((self.attempt(**options) / "attempt.json").read_text())

    def log(self, **options):
        return (self.attempt(**options) / "original" / "session.log").read_text()

    def test_what_it_leaves_is_the_answer(self):
        said = self.solve("sh", "-c", 'cp "$FOLDER/$ASSAY_CHALLENGE.cpp" submission.cpp; echo notes >NOTES; '
                          'sh ./build.sh; mkdir sub; echo "int x;" >helper.h; ln -s /etc/passwd link.h; '
                          'head -1 "$ASSAY_PROMPT"; echo done "$ASSAY_LANGUAGE"',
                          challenges=(CHALLENGE, OTHER))
        self.assertIn("2 answers, 0 without an answer", said)
        for challenge in (CHALLENGE, OTHER):
            attempt = self.attempt(challenge=challenge)
            self.assertEqual(sorted(p.name for p in attempt.iterdir()),
                             ["attempt.json", "helper.h", "original", "submission.cpp"])
            self.assertIn("by an agent", (attempt / "submission.cpp").read_text())
            prompt = subprocess.run([ASSAY, "--root", ROOT, "prompt", challenge], capture_output=True,
                                    text=True).stdout
            self.assertEqual(self.log(challenge=challenge).splitlines(), [prompt.splitlines()[0], "done cpp"])
            record = self.record(challenge=challenge)
            self.assertEqual(record["finish_reason"][:13], "exited with 0")
            self.assertEqual(record["prompt_sha256"], hashlib.sha256(prompt.encode()).hexdigest())
            self.assertFalse(record["prompt_hints"])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_words_of_the_command(self):
        self.solve("sh", "-c", 'echo "$@"; head -c 20 "$1"; cp "$FOLDER/$4.cpp" "$2/submission.cpp"', "agent", "{prompt}", "{dir}",
                   "{language}{x}", "{challenge}")
        folder = re.search(r"^(\S+)/PROMPT.md (\S+) cpp\{x\} " + CHALLENGE + "$", self.log(), re.M)
        self.assertEqual(folder[1], folder[2])

    def test_the_prompt_as_input(self):
        self.solve("sh", "-c", 'cat >>submission.cpp; echo "// */" >>submission.cpp', args=["--prompt-stdin"])
        self.assertIn("## Rules", (self.attempt() / "submission.cpp").read_text())
        self.assertNotIn("## Hints", (self.attempt() / "submission.cpp").read_text())
        self.solve("sh", "-c", 'cat >got; echo "// $(wc -c <got)" >>submission.cpp')
        self.assertTrue((self.attempt(2) / "submission.cpp").read_text().endswith("// 0\n"))
        self.solve("sh", "-c", 'cat >>submission.cpp; echo "// */" >>submission.cpp', args=["--prompt-stdin", "--hints"])
        self.assertIn("## Hints", (self.attempt(3) / "submission.cpp").read_text())
        self.assertTrue(self.record(number=3)["prompt_hints"])

    def test_secrets_stay_out_of_the_log(self):
        key = "sk-ant-" + "a1B2" * 10
        self.solve("sh", "-c", f'echo "token: $AGENT_TOKEN, {key}"; env; cp "$FOLDER/{CHALLENGE}.cpp" submission.cpp')
        self.assertIn("token: [secret removed], [secret removed]\n", self.log())
        for path in self.submissions.rglob("*"):
            if path.is_file():
                self.assertNotIn(SECRET, path.read_text())
                self.assertNotIn(key, path.read_text())

    def test_nothing_done_is_no_answer(self):
        said = self.solve("true")
        self.assertIn("0 answers, 1 without an answer", said)
        self.assertEqual(self.record()["no_answer"], "the skeleton is as it was")
        self.solve("rm", "submission.cpp")
        self.assertEqual(self.record(number=2)["no_answer"], "submission.cpp is missing")
        self.solve("sh", "-c", 'rm -r "$PWD"')
        self.assertIn("removed its folder", self.record(number=3)["no_answer"])
        self.solve("sh", "-c", "ln -sf /etc/passwd submission.cpp")
        self.assertEqual(self.record(number=4)["no_answer"], "submission.cpp is missing")

    def test_an_agent_that_fails_is_no_attempt(self):
        said = self.solve("sh", "-c", 'echo "please log in with $AGENT_TOKEN" >&2; exit 3', expect=2)
        self.assertRegex(said, r"exited with 3 after \S+ s, and changed nothing: not taken in; its output is in (\S+)")
        self.assertIn("please log in with [secret removed]", said)
        self.assertEqual(list(self.submissions.glob("*/*")), [])
        log = pathlib.Path(re.search(r"its output is in (\S+)", said)[1])
        self.assertEqual(log.read_text(), "please log in with [secret removed]\n")

    def test_an_agent_that_fails_after_its_work_is_one(self):
        self.solve("sh", "-c", 'cp "$FOLDER/$ASSAY_CHALLENGE.cpp" submission.cpp; exit 3')
        self.assertIn("exited with 3", self.record()["finish_reason"])

    def test_the_time_limit_takes_what_is_there(self):
        begin = time.monotonic()
        said = self.solve("sh", "-c", 'cp "$FOLDER/$ASSAY_CHALLENGE.cpp" submission.cpp; trap "" TERM; setsid sleep 1000 & '
                          'while :; do sleep 0.1; done', args=["--time", "1s"])
        self.assertLess(time.monotonic() - begin, 500)
        self.assertIn("ended at the time limit after", said)
        self.assertEqual(self.record()["finish_reason"], "time limit")
        self.assertIn("by an agent", (self.attempt() / "submission.cpp").read_text())

    def test_a_command_that_is_not_there(self):
        self.assertIn("cannot start 'no-such-agent': No such file", self.solve("no-such-agent", expect=2))
        self.assertEqual(list(self.submissions.glob("*/*")), [])
        self.assertIn("no command: name the agent's after --", self.solve(expect=2))

    def test_several_samples_at_once(self):
        self.solve("sh", "-c", 'cp "$FOLDER/$ASSAY_CHALLENGE.cpp" submission.cpp', args=["--samples", 3, "--parallel", 3])
        self.assertEqual(sorted(p.name for p in self.attempt().parent.iterdir()), ["1", "2", "3"])

    def test_into_a_folder_that_is_kept(self):
        into = self.folder / "into"
        agent = ("sh", "-c", 'cp "$FOLDER/$ASSAY_CHALLENGE.cpp" submission.cpp; echo x >NOTES')
        self.solve(*agent, args=["--into", into])
        self.assertTrue((into / CHALLENGE / "NOTES").exists())
        self.assertIn("is there already", self.solve(*agent, args=["--into", into], expect=2))

    def test_a_signal_stops_it_and_keeps_the_work(self):
        process = subprocess.Popen(self.command("sh", "-c", 'echo "// half" >>submission.cpp; echo $$ >"$FOLDER/pid"; sleep 1000'),
                                   env=self.environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while not ((self.folder / "pid").exists() and (self.folder / "pid").read_text()):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertFalse(pathlib.Path("/proc", (self.folder / "pid").read_text().strip()).exists())
        kept = pathlib.Path(re.search(r"what it had done lies in (\S+)", said)[1])
        self.assertIn("// half", (kept / "submission.cpp").read_text())
        self.assertEqual(list(self.submissions.glob("*/*")), [])
        self.assertEqual(processes.orphans(), [])


processes.adopt_orphans()
if __name__ == "__main__":
    unittest.main()
