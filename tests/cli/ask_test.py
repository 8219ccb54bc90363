"""assay ask against a server of the protocol, over real sockets: how it handles every kind of reply.

Usage: ask_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path[:0] = [str(ROOT / "tests" / "ask"), str(ROOT / "tests" / "support")]
import server as chat  # noqa: E402

CHALLENGE, OTHER = "layer_norm_backward", "fused_softmax_topk"
KEY = "a-key-that-nobody-may-see"
PATIENCE = 300  # seconds


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-ask-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.submissions, self.temporary = self.folder / "submissions", self.folder / "tmp"
        self.temporary.mkdir()
        self.server = chat.ChatServer(key=KEY)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if k not in ("OPENAI_API_KEY", "ASSAY_ROOT")}
        return {**kept, "THE_KEY": KEY, "TMPDIR": str(self.temporary), **more}

    def command(self, model, *args, challenge=CHALLENGE, url=None):
        return [ASSAY, "--root", ROOT, "ask", "--url", url or self.server.url, "--model", model, "--key-env", "THE_KEY",
                "--submissions", self.submissions, "--retry-wait", "0.05",
                *(["--challenge", challenge] if challenge else []), *map(str, args)]

    def ask(self, model, *args, expect=0, environment=None, **options):
        done = subprocess.run(self.command(model, *args, **options), capture_output=True, text=True, timeout=PATIENCE,
                              env=environment or self.environment())
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, expect, f"{model} {args}\n{said}")
        self.assertNotIn(KEY, said)
        return said

    def wait_for_requests(self, number):
        for _ in range(PATIENCE * 50):
            if len(self.server.requests) >= number:
                return
            time.sleep(0.02)
        self.fail("nothing was asked")

    def attempt(self, model, number=1, challenge=CHALLENGE):
        return self.submissions / model / challenge / str(number)

    def record(self, *args, **options):
        return json.loads((self.attempt(*args, **options) / "attempt.json").read_text())

    def conversation(self, *args, **options):
        path = self.attempt(*args, **options) / "original" / "conversation.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def kinds(self, *args, **options):
        return [line["kind"] for line in self.conversation(*args, **options)]

    def tearDown(self):
        """The key is nowhere, and nothing is left over."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY.encode(), path.read_bytes(), path)
        self.assertEqual([p.name for p in self.temporary.iterdir()], self.left_over)

    left_over = []


class Replies(Case):
    def test_an_answer_becomes_an_attempt(self):
        said = self.ask("tiny", "--temperature", 0.5, "--max-tokens", 5000, "--price-in", 1, "--price-out", 10)
        source = (self.attempt("tiny") / "submission.cpp").read_text()
        self.assertIn('extern "C" int', source)
        self.assertIn(source, (self.attempt("tiny") / "original" / "answer.md").read_text())
        headers, body = self.server.requests[0]
        self.assertEqual(headers["Authorization"], f"Bearer {KEY}")
        self.assertEqual((body["temperature"], body["max_tokens"], body["stream"]), (0.5, 5000, True))
        prompt = subprocess.run([ASSAY, "--root", ROOT, "prompt", CHALLENGE], capture_output=True, text=True).stdout
        self.assertEqual(body["messages"], [{"role": "user", "content": prompt}])
        self.assertEqual(self.kinds("tiny"), ["begin", "request", "reply"])
        self.assertEqual(self.conversation("tiny")[1]["body"], body)
        record = self.record("tiny")
        self.assertEqual((record["turns"], record["finish_reason"], record["language"]), (1, "stop", "cpp"))
        self.assertEqual(record["tokens_in"], len(prompt) // 4)
        self.assertAlmostEqual(record["cost_usd"], (record["tokens_in"] + 10 * record["tokens_out"]) * 1e-6)
        self.assertIn("1 answered, 0 without an answer\n", said)
        self.assertIn(f"{record['tokens_in']} tokens in, {record['tokens_out']} out, ", said)

    def test_plain_and_streamed_are_the_same_answer(self):
        self.ask("thinking", "--as", "streamed")
        self.ask("thinking", "--as", "plain", "--no-stream")
        self.assertNotIn("stream", self.server.requests[1][1])
        answers = [self.conversation(name)[-1]["reply"] for name in ("streamed", "plain")]
        self.assertEqual(answers[0], answers[1])
        self.assertIn("int thought", answers[0]["reasoning"])
        self.assertNotIn("int thought", (self.attempt("plain") / "submission.cpp").read_text())

    def test_what_passes_is_asked_again(self):
        for model, why in (("busy", "HTTP status 429: Rate limit reached"), ("failing", "HTTP status 500"),
                           ("cut", "cut off after"), ("stream-error", "upstream is gone"),
                           ("malformed", "not JSON of the protocol")):
            for name, args in ((model, []), (f"{model}-plain", ["--no-stream"])):
                with self.subTest(name):
                    self.server.counts.clear()
                    begin = time.monotonic()
                    said = self.ask(model, "--as", name, *args)
                    self.assertIn(why, said)
                    self.assertEqual(self.kinds(name), ["begin", "request", "failure", "reply"])
                    self.assertIn("1 replies, 1 requests failed", said)
                    if model == "busy":
                        self.assertGreaterEqual(time.monotonic() - begin, 1)

    def test_what_does_not_pass_ends(self):
        said = self.ask("down", "--retries", 2, expect=2)
        self.assertIn("HTTP status 503: <html><b>Service\\x1b[2J Unavailable</b></html> (tried 3 times)", said)
        said = self.ask("booked-out", expect=2)
        self.assertIn("You exceeded your current quota; run the same command again later", said)
        self.assertEqual(len(self.server.requests), 4)
        said = self.ask("silent", "--timeout", 0.2, "--retries", 1, expect=2)
        self.assertIn("(0.2 s, --timeout) (tried 2 times)", said)
        self.assertIn("redirects to http://elsewhere.invalid", self.ask("redirect", expect=2))
        self.assertEqual(list(self.submissions.glob("[!.]*/*/*")), [])

    def test_one_task_that_is_refused_does_not_end_the_others(self):
        said = self.ask("too-long", "--challenge", OTHER, expect=2)
        self.assertEqual(said.count("maximum context length is 4096"), 2)
        self.assertIn("the same command asks for what is missing", said)
        self.assertIn("2 not obtained", said)

    def test_no_answer_is_an_attempt_with_a_reason(self):
        for model, why in (("empty", "the reply holds no choice"), ("blank", "the reply is empty"),
                           ("refusal", "the model refused: I can't help"), ("prose", "")):
            with self.subTest(model):
                said = self.ask(model)
                self.assertIn("0 answered, 1 without an answer", said)
                self.assertIn(why, self.record(model)["no_answer"])
                self.assertFalse((self.attempt(model) / "submission.cpp").exists())
        self.assertNotIn("\u202e", said)
        self.assertEqual(len(self.server.requests), 4)

    def test_large_and_strange_answers_arrive_whole(self):
        self.ask("huge")
        self.assertGreater((self.attempt("huge") / "submission.cpp").stat().st_size, chat.HUGE)
        self.ask("unicode")
        self.assertIn("Grüße, 世界, 🚀", (self.attempt("unicode") / "submission.cpp").read_text())
        self.ask("slow")
        self.assertTrue((self.attempt("slow") / "submission.cpp").exists())

    def test_what_is_cut_off_is_said(self):
        self.ask("length")
        record = self.record("length")
        self.assertEqual(record["finish_reason"], "length")
        self.assertTrue(record["cut_off"])

    def test_tokens_that_are_not_told_are_not_guessed(self):
        said = self.ask("no-usage", "--price-in", 1, "--price-out", 1)
        self.assertIn("1 replies did not tell their tokens", said)
        self.assertNotIn("USD", said)
        self.assertFalse({"tokens_in", "tokens_out", "cost_usd"} & self.record("no-usage").keys())

    def test_an_answer_that_repeats_the_key_is_stored_without_it(self):
        self.ask("echoes-key")
        self.assertIn("[secret removed]", (self.attempt("echoes-key") / "submission.cpp").read_text())

    def test_what_is_unclear_is_left_to_a_person(self):
        said = self.ask("two-blocks", expect=1)
        self.assertEqual(list(self.submissions.glob("two-blocks/*/*")), [])
        add = re.search(r"choose with `assay (add .*)`", said)[1]
        self.assertEqual(len(self.server.requests), 1)
        self.assertIn("1 unclear", self.ask("two-blocks", expect=1))
        self.assertEqual(len(self.server.requests), 1)
        subprocess.run([ASSAY, "--root", ROOT, *shlex.split(add.replace("--block N", "--block 2"))], check=True,
                       capture_output=True)
        self.assertIn("// other", (self.attempt("two-blocks") / "submission.cpp").read_text())
        # The block that was added counts as the sample.
        self.assertIn("1 were there before", self.ask("two-blocks"))
        self.assertEqual(self.kinds("two-blocks"), ["begin", "request", "reply"])
        self.assertEqual(len(self.server.requests), 1)


class Endpoints(Case):
    def test_a_wrong_key_names_its_variable(self):
        said = self.ask("tiny", "--samples", 3, environment=self.environment(THE_KEY="a-wrong-key-of-mine"), expect=2)
        self.assertIn("HTTP status 401: Incorrect API key provided: [secret removed]", said)
        self.assertIn("the key comes from THE_KEY", said)
        self.assertNotIn("a-wrong-key", said)
        self.assertIn("3 not obtained", said)

    def test_a_missing_key_is_told_before_anything_is_sent(self):
        environment = self.environment()
        del environment["THE_KEY"]
        said = self.ask("tiny", url="https://api.example.invalid/v1", environment=environment, expect=2)
        self.assertIn("THE_KEY is not set", said)
        said = self.ask("tiny", environment=environment, expect=2)  # this test needs none on this machine
        self.assertIn("no key was sent: put it into THE_KEY", said)

    def test_who_is_not_there_is_told_at_once(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
            said = self.ask("tiny", "--samples", 5, url=url, expect=2)
        self.assertIn(f"{url}/chat/completions: ", said)
        self.assertIn("is the server running", said)
        self.assertEqual(said.count("failed: "), 1)

    def test_a_model_that_does_not_exist(self):
        said = self.ask("no/such-model", expect=2)
        self.assertIn("HTTP status 404: The model `no/such-model` does not exist", said)
        self.assertIn("(--model)", said)

    def test_wrong_words_are_told(self):
        for args, why in ((["--header", "nothing"], "expected NAME=VALUE"), (["--param", "n=3"], "assay's own"),
                          (["--as", "a/b"], "no model can have that name"), (["--challenge", "kv_cash"], "kv_cache")):
            self.assertIn(why, self.ask("tiny", *args, expect=2))
        self.assertIn("not a URL of an endpoint", self.ask("tiny", url="localhost:8000", expect=2))
        self.assertEqual(self.server.requests, [])

    def test_further_headers_and_parameters_are_sent(self):
        self.ask("tiny", "--header", f"X-Extra={KEY}", "--param", "top_p=0.5", "--param", "reasoning_effort=high")
        headers, body = self.server.requests[0]
        self.assertEqual(headers["X-Extra"], KEY)
        self.assertEqual((body["top_p"], body["reasoning_effort"]), (0.5, "high"))

    def test_dry_run_sends_nothing(self):
        said = self.ask("tiny", "--dry-run", "--samples", 2, "--seed", 5, "--max-tokens", 100, "--price-in", 2,
                        "--price-out", 8)
        self.assertEqual(self.server.requests, [])
        self.assertFalse(self.submissions.exists())
        self.assertIn("Authorization: Bearer $THE_KEY", said)
        bodies = [json.loads(b) for b in re.findall(r"^\{\n.*?^\}$", said, re.M | re.S)]
        self.assertEqual([b["seed"] for b in bodies], [5, 6])
        self.assertRegex(said, r"Estimated, at 4 bytes a token: \d+ tokens of prompts, 0\.\d+ USD")
        self.assertIn("at most 200 tokens of answers, 0.0016 USD", said)


class Samples(Case):
    def test_what_is_there_is_not_asked_again(self):
        self.ask("tiny", "--samples", 2, "--challenge", OTHER, "--seed", 10)
        self.assertEqual(len(self.server.requests), 4)
        for challenge in (CHALLENGE, OTHER):  # in the order of the samples, whichever was first
            for number in (1, 2):
                self.assertIn(f"seed {9 + number}",
                              (self.attempt("tiny", number, challenge) / "submission.cpp").read_text())
        said = self.ask("tiny", "--samples", 3, "--seed", 10)
        self.assertEqual(len(self.server.requests), 5)
        self.assertIn("2 were there before", said)
        self.assertIn("seed 12", (self.attempt("tiny", 3) / "submission.cpp").read_text())

    def test_other_settings_need_another_name(self):
        self.ask("tiny", "--temperature", 0)
        said = self.ask("tiny", "--temperature", 1, expect=2)
        self.assertIn("with other settings; temperature was 0.0 and is 1.0: give these a name of their own", said)
        said = self.ask("tiny", "--temperature", 1, challenge=OTHER, expect=2)
        self.assertIn(f"has samples of {CHALLENGE} (cpp) with other settings; temperature was 0.0 and is 1.0: give", said)
        self.ask("tiny", "--temperature", 0, challenge=OTHER)  # its prompt is another
        self.ask("tiny", "--temperature", 1, "--mixed")
        self.ask("tiny", "--temperature", 1, "--as", "warm")
        self.assertTrue(self.attempt("tiny", 2).exists())
        self.assertTrue(self.attempt("warm", 1).exists())

    def interrupted(self, how, requests, *args):
        process = subprocess.Popen(self.command(*args), env=self.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.wait_for_requests(requests)
        process.send_signal(how)
        said = process.communicate(timeout=PATIENCE)[1]
        return process.returncode, said

    def test_after_a_kill_it_goes_on(self):
        # One at a time: the first two are answered by the time the third is asked, and the kill comes before its
        # answer.
        args = ("stalls-at-3", "--samples", 4, "--parallel", 1, "--seed", 1)
        status, _ = self.interrupted(signal.SIGKILL, 3, *args)
        self.assertEqual(status, -signal.SIGKILL)
        self.ask(*args)
        asked = [body["seed"] for _, body in self.server.requests]
        self.assertEqual(sorted(set(asked)), [1, 2, 3, 4])
        self.assertEqual((asked.count(1), asked.count(2)), (1, 1))
        for number in range(1, 5):
            self.assertIn(f"seed {number}", (self.attempt("stalls-at-3", number) / "submission.cpp").read_text())

    def test_a_signal_stops_it_cleanly(self):
        status, said = self.interrupted(signal.SIGINT, 1, "silent")
        self.assertEqual(status, 130)
        self.assertIn("the same command goes on", said)

    def test_what_is_begun_is_no_answer_to_a_run(self):
        status, _ = self.interrupted(signal.SIGKILL, 1, "silent")
        self.assertEqual(status, -signal.SIGKILL)
        self.assertTrue(list(self.submissions.glob(".asking/silent/*.jsonl")))
        listed = subprocess.run([ASSAY, "--root", ROOT, "list", "models", "--submissions", self.submissions],
                                check=True, capture_output=True, text=True)
        self.assertNotIn("silent", listed.stdout + listed.stderr)
        self.assertNotIn("asking", listed.stdout + listed.stderr)

    def test_two_at_once_with_one_name(self):
        process = subprocess.Popen(self.command("silent"), env=self.environment(), stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for_requests(1)
        self.assertIn("another `assay ask` asks as silent", self.ask("silent", expect=2))


class FullDisk(Case):
    left_over = ["here"]

    def test_replies_survive_a_full_disk(self):
        library, marker, elsewhere = self.folder / "faulty.so", self.folder / "full", self.temporary / "here"
        elsewhere.mkdir()
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, ROOT / "tests" / "support" / "faulty_system.c",
                        "-ldl"], check=True)
        two = ("waits", "--samples", 2, "--parallel", 2)
        process = subprocess.Popen(
            self.command(*two), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=self.environment(LD_PRELOAD=str(library), FAULTS_FULL=str(self.submissions), FAULTS_WHEN=str(marker),
                                 TMPDIR=str(elsewhere)))
        self.wait_for_requests(2)
        marker.touch()
        self.server.may_answer.set()
        said = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 2, said)
        self.assertIn("No space left on device; make room", said)
        moves = re.findall(r"`(mv \S+ \S+)` and the same command", said)
        self.assertEqual(len(moves), 2, said)
        for move in moves:
            subprocess.run(shlex.split(move), check=True)
        self.ask(*two)
        self.assertEqual(len(self.server.requests), 2)
        for number in (1, 2):
            self.assertTrue((self.attempt("waits", number) / "submission.cpp").exists())


if __name__ == "__main__":
    unittest.main()
