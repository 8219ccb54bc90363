"""Stops the real program with signals and closed pipes: it ends cleanly, says what is kept, and can be resumed.

Usage: stop_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tests" / "support"))
import processes  # noqa: E402
import tiny_answers  # noqa: E402

CHALLENGES = ["fused_softmax_topk", "layer_norm_backward"]
MODELS = ["alice", "bob", "carol"]
CELLS = len(CHALLENGES) * len(MODELS)
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PATIENCE = 120  # seconds, for what should take one: the machine may be busy


def nvcc():
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="assay-stop-"))
        cls.submissions, cls.cache = cls.shared / "submissions", cls.shared / "cache"
        tiny_answers.submit(ROOT, cls.submissions, MODELS, CHALLENGES)
        tiny_answers.warm_cache(ASSAY, ROOT, CHALLENGES, cls.cache)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared, ignore_errors=True)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))
        self.results = self.folder / "results"

    def start(self, *args, root=("--root", ROOT), **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        process = subprocess.Popen([ASSAY, *root, *args], **options)
        self.addCleanup(process.kill)
        return process

    def run_options(self, cache=None):
        return ["--results", self.results, "--cache", cache or self.cache]

    def start_run(self, *args, cache=None, **options):
        return self.start("run", "--submissions", self.submissions, "--quick", "-j", "1", *self.run_options(cache), *args,
                          **options)

    def wait_for(self, process, text):
        """Waits for the text on stderr; returns what was printed there up to and including its line."""
        said = ""
        for line in process.stderr:
            said += line
            if text in line:
                return said
        self.fail(f"ended without '{text}':\n{said}")

    @contextlib.contextmanager
    def locked(self, results):
        """While this is held, nothing can be stored in the folder; gives what waits until somebody tries."""
        results.mkdir()
        with open(results / ".lock", "w") as lock, processes.Opens(results / ".lock") as opens:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lambda: self.assertTrue(opens.wait(PATIENCE), "nobody tried to store anything")

    def finish(self, process, expect):
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, expect, f"{output}\n{errors}")
        self.assertEqual(processes.orphans(), [])
        return (output or "") + (errors or "")

    def board(self):
        board = self.results / "scoreboard.json"
        return json.loads(board.read_text())["entries"] if board.exists() else []

    def records(self):
        return set(self.results.glob("runs/*.jsonl"))

    def check_no_remains(self):
        left = [p for folder in (self.results, self.cache) for p in folder.rglob("*")
                if p.name.endswith((".tmp", ".o.lock", ".so.lock")) or p.name.startswith("assay-work-")]
        self.assertEqual(left, [])
        for path in self.results.rglob("*.json"):
            json.loads(path.read_text())
        for path in [*self.results.rglob("*.jsonl"), *self.results.rglob("*.journal")]:
            for line in path.read_text().splitlines():
                json.loads(line)


class Signals(Case):
    def test_a_stopped_run_keeps_what_it_finished_and_goes_on(self):
        for sent in SIGNALS:
            with self.subTest(sent.name):
                self.results = self.folder / sent.name
                process = self.start_run()
                self.wait_for(process, "[2/")
                process.send_signal(sent)
                said = self.finish(process, 128 + sent)
                self.assertIn("assay: stopping", said)
                kept = re.search(rf"stopped by {sent.name}: (\d+) of {CELLS} results are stored in (\S+); "
                                 rf"continue with\n  assay (.*)\n", said)
                self.assertTrue(kept, said)
                stored = self.board()
                self.assertEqual(len(stored), int(kept[1]))
                self.assertGreaterEqual(len(stored), 2)
                self.assertEqual(pathlib.Path(kept[2]), self.results)
                self.check_no_remains()
                self.finish(self.start(*shlex.split(kept[3]), root=()), 0)
                self.assertEqual(len(self.board()), CELLS)
                for row in stored:
                    self.assertIn(row, self.board())

    def test_at_any_moment(self):
        began = time.monotonic()
        self.finish(self.start_run(), 0)
        longest = time.monotonic() - began
        moments, statuses = 6, []
        for n in range(moments):
            self.results = self.folder / f"stopped-{n}"
            process = self.start_run(cache=self.folder / f"cache-{n}" if n % 2 else None)  # with all still to build
            time.sleep(longest * (n + 1) / moments)
            process.send_signal(SIGNALS[n % 3])
            output, errors = process.communicate(timeout=PATIENCE)
            statuses.append(process.returncode)
            if process.returncode == -SIGNALS[n % 3]:
                self.assertEqual(output + errors, "", "it had begun, so it should have handled the signal")
                continue
            self.assertIn(process.returncode, (0, 128 + SIGNALS[n % 3]), output + errors)
            self.assertEqual(processes.orphans(), [])
            if process.returncode != 0:
                self.assertIn("stopped by", errors)
            self.assertNotIn("JE", output + errors, "no fault is made of a request to stop")
            self.check_no_remains()
        self.assertGreater(max(statuses), 128, statuses)

    def test_a_second_signal_ends_at_once(self):
        with self.locked(self.results) as wait_until_it_stores:
            process = self.start_run()
            wait_until_it_stores()
            process.send_signal(signal.SIGINT)
            self.wait_for(process, "assay: stopping")
            time.sleep(1)  # sooner, it would count as the same request
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=30), 128 + signal.SIGTERM)
            self.assertEqual(processes.orphans(), [])

    def test_two_in_a_moment_are_one_request(self):
        process = self.start_run()
        self.wait_for(process, "[1/")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)  # as timeout(1) does
        self.assertIn("stopped by SIGTERM", self.finish(process, 128 + signal.SIGTERM))

    def test_an_ignored_signal_stays_ignored(self):
        process = self.start_run("-m", "alice", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for(process, "submissions, seed")
        process.send_signal(signal.SIGHUP)
        self.finish(process, 0)
        self.assertEqual(len(self.board()), len(CHALLENGES))

    def test_a_stopped_rerun_leaves_the_board_and_nothing_to_resume(self):
        self.finish(self.start_run("-m", "alice"), 0)
        for _ in range(5):  # a rerun may be faster than the signal
            before, records = self.board(), self.records()
            process = self.start("rerun", "alice", CHALLENGES[0], "--submissions", self.submissions,
                                 *self.run_options())
            while process.poll() is None and self.records() == records:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(processes.orphans(), [])
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 130, output + errors)
        self.assertEqual(self.board(), before)
        self.assertIn("nothing to resume", self.finish(self.start_run("--resume"), 2))

    def test_selftest(self):
        process = self.start("selftest", "-c", CHALLENGES[1], "-j", "1", "--cache", self.cache)
        self.wait_for(process, "[1/")
        process.send_signal(signal.SIGINT)
        self.assertRegex(self.finish(process, 130), r"stopped by SIGINT after \d+ of \d+ examples")
        self.check_no_remains()

    def test_mutants_of_a_challenge_that_was_done_keep_their_score(self):
        process = self.start("selftest", *(a for c in CHALLENGES for a in ("-c", c)), "--mutants", "1", "-j", "1",
                             "--record", *self.run_options())
        self.wait_for(process, "[1/2]")
        process.send_signal(signal.SIGTERM)
        said = self.finish(process, 143)
        self.assertRegex(said, r"stopped by SIGTERM after 1 of 2 mutants")
        scores = json.loads((self.results / "mutants.json").read_text())["scores"]
        self.assertEqual([score["challenge"] for score in scores], CHALLENGES[:1])

    def test_merge(self):
        self.finish(self.start_run("-m", "alice"), 0)
        theirs, cells = self.folder / "theirs", 3
        board = json.loads((self.results / "scoreboard.json").read_text())
        first = board["entries"][0]
        board["entries"] = []
        for n in range(cells):
            row = json.loads(json.dumps(first))
            row["cell"]["model"] = f"m{n}"
            row["evidence"]["path"] = f"cells/m{n}/{row['cell']['challenge']}/cpu.json"
            board["entries"].append(row)
        theirs.mkdir()
        (theirs / "scoreboard.json").write_text(json.dumps(board))
        ours = self.folder / "ours"
        with self.locked(ours) as wait_until_it_stores:
            process = self.start("merge", theirs, "--results", ours)
            wait_until_it_stores()
            process.send_signal(signal.SIGTERM)
            self.wait_for(process, "assay: stopping")
        said = self.finish(process, 143)
        self.assertIn("stopped by SIGTERM", said)
        self.results = ours
        self.check_no_remains()
        again = self.finish(self.start("merge", theirs, "--results", ours), 0)
        self.assertIn("1 already here", again)
        self.assertEqual(len(self.board()), cells)

    @unittest.skipUnless(nvcc(), "nvcc is not installed")
    def test_a_simulated_program_gets_the_signal_and_its_report_still_comes(self):
        def spinning(name):
            program = self.folder / f"{name}.cu"
            program.write_text("#include <cstdio>\n// " + f"{name} of {self.folder}" + "\nint main() { puts(\"spinning\"); "
                               "fflush(stdout); for (;;) { volatile int x = 0; (void)x; } }\n")
            return program

        temporary = self.folder / "tmp"
        temporary.mkdir()
        process = self.start("sim", spinning("first"), env={**os.environ, "TMPDIR": str(temporary)})
        self.assertEqual(process.stdout.readline(), "spinning\n")
        process.send_signal(signal.SIGTERM)
        self.finish(process, 143)
        self.assertEqual(list(temporary.iterdir()), [])
        # Another, since the program of the first is kept.
        process = self.start("sim", spinning("second"), env={**os.environ, "TMPDIR": str(temporary)})
        while process.poll() is None and not any(temporary.rglob("*.ii")) and not any(temporary.rglob("*.c")):
            time.sleep(0.01)  # until nvcc is at work
        process.send_signal(signal.SIGTERM)
        self.finish(process, 143)
        self.assertEqual(list(temporary.iterdir()), [])


class Pipes(Case):
    def closed_pipe(self):
        read, write = os.pipe()
        os.close(read)
        self.addCleanup(os.close, write)
        return write

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        for command in (["list"], ["list", "--json"], ["show", "textbook", CHALLENGES[0], "--device", "cpu"],
                        ["doctor", "--json"]):
            with self.subTest(command):
                process = self.start(*command, stdout=self.closed_pipe())
                self.assertEqual(self.finish(process, 141), "")

    def test_a_full_disk_behind_stdout_is_an_error(self):
        with open("/dev/full", "w") as full:
            said = self.finish(self.start("list", stdout=full), 2)
        self.assertIn("standard output: No space left on device; make room", said)

    def test_a_run_that_nobody_listens_to_loses_nothing(self):
        process = self.start_run("-m", "alice", stdout=self.closed_pipe(), stderr=self.closed_pipe())
        self.finish(process, 141)  # its summary was not delivered
        self.assertEqual(len(self.board()), len(CHALLENGES))
        process = self.start_run("-m", "bob", stderr=self.closed_pipe())
        self.finish(process, 0)
        self.assertEqual(len(self.board()), 2 * len(CHALLENGES))

    def test_standard_files_that_are_closed_are_nobody_else_s(self):
        def close_all():
            for fd in (0, 1, 2):
                os.close(fd)

        process = self.start_run("-m", "alice", preexec_fn=close_all)
        self.finish(process, 0)
        self.assertEqual(len(self.board()), len(CHALLENGES))
        self.check_no_remains()

    def test_what_a_stranger_s_file_holds_moves_no_cursor(self):
        theirs = self.folder / "theirs"
        theirs.mkdir()
        (theirs / "scoreboard.json").write_text('{"schema": 2, "kind": "scoreboard", "machines": {}, "entries": [], '
                                                '"\\u001b[2J": 1}')
        said = self.finish(self.start("merge", theirs, "--results", self.results), 2)
        self.assertIn("\\x1b[2J", said)
        self.assertNotIn("\x1b", said)


if __name__ == "__main__":
    processes.adopt_orphans()
    unittest.main()
