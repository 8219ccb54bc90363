"""Drives the real program: good runs, bad input, hostile submissions, killed runs.

Usage: cli_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
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

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
CHALLENGE = "fused_softmax_topk"

PLAIN = (ROOT / "submissions" / "textbook" / CHALLENGE / "submission.cpp").read_text()
SIGNATURE = r'''
extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits, int32_t* idx, float* prob,
                            float* lse)'''
INCLUDES = r'''
#include "abi.h"
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>
'''
UNUSED = "  (void)ctx; (void)p; (void)logits; (void)idx; (void)prob; (void)lse;\n"


def body(text):
    """An answer that does only this."""
    return f"{INCLUDES}{SIGNATURE} {{\n{UNUSED}{text}\n  return ASSAY_OK;\n}}\n"


def around_plain(text, includes=""):
    """An answer with this body, which may call the right one as honest()."""
    return f"{includes}\n#define softmax_topk honest\n{PLAIN}\n#undef softmax_topk\n{SIGNATURE} {{\n{text}\n}}\n"


def wire_constant(name):
    """A constant of the protocol between harness and worker."""
    found = re.search(rf"\b{name} = (\d+)\b", (ROOT / "src" / "wire" / "worker.h").read_text())
    return int(found[1])


def share_cache(root):
    """What is compiled under another root is kept with the repository's. Entries go by all that they are made from."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    (root / ".cache").symlink_to((ROOT / ".cache").resolve())


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-cli-"))
        self.submissions = self.folder / "submissions"
        self.results = self.folder / "results"

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def submit(self, model, source, challenge=CHALLENGE, name="submission.cpp"):
        path = self.submissions / model / challenge
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(source)
        return path

    def assay(self, *args, expect=0, root=ROOT, timeout=300):
        done = subprocess.run(
            [ASSAY, "--root", root, *map(str, args)], capture_output=True, text=True, timeout=timeout
        )
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def run_all(self, *args, **kwargs):
        return self.assay(
            "run", "--submissions", self.submissions, "--results", self.results, "--quick", *args, **kwargs
        )

    def board(self):
        return json.loads((self.results / "scoreboard.json").read_text())

    def evidence(self, results):
        """The evidence of every cell on the board, in the board's order."""
        board = json.loads((results / "scoreboard.json").read_text())
        return [json.loads((results / e["evidence"]["path"]).read_text()) for e in board["entries"]]

    def entry(self, model):
        found = [e for e in self.evidence(self.results) if e["cell"]["model"] == model]
        self.assertEqual(len(found), 1, model)
        return found[0]

    def show(self, model):
        return self.assay("show", model, CHALLENGE, "--results", self.results)


class GoodRun(Case):
    def test_a_correct_submission_is_graded_shown_and_reported(self):
        self.submit("alice", PLAIN)
        output = self.run_all("--seed", 7)
        self.assertIn("alice", output)
        entry = self.entry("alice")
        self.assertEqual(entry["score"]["verdict"], "OK")
        self.assertEqual(entry["cell"]["seed"], "7")
        self.assertIn("alice", self.show("alice"))
        readme = self.folder / "README.md"
        readme.write_text("# x\n<!-- assay:begin -->\nold\n<!-- assay:end -->\ntail\n")
        report = ["report", "--readme", readme, "--results", self.results]
        self.assay(*report, "--check", expect=1)
        self.assay(*report)
        first = readme.read_bytes()
        self.assertIn(b"alice", first)
        self.assay(*report)
        self.assertEqual(readme.read_bytes(), first)
        self.assay(*report, "--check")

    def test_the_same_seed_gives_the_same_verdicts_and_errors(self):
        self.submit("alice", PLAIN)
        errors = []
        for attempt in ("a", "b"):
            results = self.folder / attempt
            self.assay("run", "--submissions", self.submissions, "--results", results, "--quick", "--seed", 3)
            cases = self.evidence(results)[0]["cell"]["cases"]
            errors.append([(c["name"], c["verdict"], c.get("error")) for c in cases if c["group"] != "timed"])
        self.assertEqual(*errors)

    def test_one_case_can_be_replayed_alone(self):
        self.submit("alice", PLAIN)
        spec = json.loads((ROOT / "challenges" / CHALLENGE / "spec.json").read_text())
        name = spec["cases"][0]["name"]
        output = self.assay(
            "rerun", "alice", CHALLENGE, "--case", name, "--seed", 7, "--submissions", self.submissions
        )
        self.assertIn(name, output)
        self.assertFalse(self.results.exists())

    def test_the_replay_line_that_is_shown_replays(self):
        """Runs the line as shown, in a shell, in the answer's folder."""
        root = self.folder / "root"
        root.mkdir()
        for name in ("challenges", "include"):
            (root / name).symlink_to((ROOT / name).resolve())
        share_cache(root)
        self.submissions, self.results = root / "submissions", root / "results"
        self.submit("bob", PLAIN.replace("return ASSAY_OK;", "if (lse != nullptr && p->rows > 0) lse[0] += 1;\n  return ASSAY_OK;"))
        self.run_all(root=root)
        shown = self.assay("show", "bob", CHALLENGE, root=root).replace("\n" + 14 * " ", " ")  # broken lines
        failed = re.findall(r"^  (\w+ \(\w+\)): (\w+) .*\n(?:    .*\n)*?    detail    (.*)\n(?:    .*\n)*?"
                            r"    replay    (.*)$", shown, re.M)
        self.assertGreater(len(failed), 1, shown)
        (root / "bin").mkdir()
        (root / "bin" / "assay").symlink_to(ASSAY.resolve())
        path = f"{root / 'bin'}:{os.environ['PATH']}"
        before = (self.results / "scoreboard.json").read_bytes()
        for name, verdict, detail, replay in failed[:2]:
            with self.subTest(replay):
                done = subprocess.run(["sh", "-c", replay], cwd=root, env=os.environ | {"PATH": path}, text=True,
                                      capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{name}: {verdict},", done.stdout)
                self.assertIn(f"  detail    {detail}\n", done.stdout)
        self.assertEqual((self.results / "scoreboard.json").read_bytes(), before)

    def test_attempts_are_separate_rows(self):
        for attempt in ("1", "2"):
            path = self.submissions / "alice" / CHALLENGE / attempt
            path.mkdir(parents=True)
            (path / "submission.cpp").write_text(PLAIN)
        self.run_all()
        self.assertEqual({e["cell"]["attempt"] for e in self.board()["entries"]}, {"1", "2"})

    def test_the_facts_of_the_code_are_kept_shown_and_exported(self):
        text = "  int unused;\n  for (int i = 0; i < 2; ++i)\n    if (i > 0 && p) return ASSAY_EINVAL;"
        self.submit("alice", body(text))
        self.run_all()
        lines = body(text).splitlines()
        begin = next(n for n, line in enumerate(lines, 1) if "softmax_topk(" in line)
        function = {"name": "softmax_topk", "file": "submission.cpp", "line": begin}
        code = self.evidence(self.results)[0]["cell"]["code"]
        warnings = code.pop("warnings")
        self.assertEqual(code, {
            "files": 1, "code_lines": len([line for line in lines if line.strip()]), "comment_lines": 0,
            "blank_lines": len([line for line in lines if not line.strip()]), "duplicated_lines": 0, "functions": 1,
            "longest": {**function, "value": len(lines) - begin + 1}, "deepest": {**function, "value": 2},
            "most_complex": {**function, "value": 4}})
        self.assertEqual((warnings["count"], warnings["cut"]), (1, False))
        self.assertIn("unused variable", warnings["first"][0])
        self.assertRegex(warnings["first"][0], r"^submission\.cpp:\d+:\d+: warning: ")
        shown = self.show("alice")
        self.assertIn("code, not scored:\n", shown)
        self.assertIn(f"  complexity up to 4: softmax_topk (submission.cpp:{begin})\n", shown)
        self.assertIn("  warnings   1 under -Wall -Wextra\n", shown)
        self.assertEqual(json.loads(self.assay("show", "alice", CHALLENGE, "--json", "--results", self.results))
                         ["cell"]["code"]["warnings"], warnings)
        export = ["export", "jsonl", "--table", "attempts", "--results", self.results]
        row = json.loads(self.assay(*export))
        self.assertEqual((row["functions"], row["highest_complexity"], row["compiler_warnings"]), (1, 4, 1))
        # Results from the cache are identical.
        self.run_all()
        again = self.evidence(self.results)[0]["cell"]
        self.assertTrue(again["build"]["cached"])
        self.assertEqual(again["code"]["warnings"], warnings)

    def test_json_summary(self):
        self.submit("alice", PLAIN)
        done = subprocess.run(
            [ASSAY, "--root", ROOT, "run", "--submissions", self.submissions, "--results", self.results,
             "--quick", "--json"], capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["cells"][0]["model"], "alice")


class Stale(Case):
    """What was measured under older rules is measured again, and nothing else."""

    def setUp(self):
        super().setUp()
        for model in ("alice", "bob"):
            self.submit(model, PLAIN + f"// {model}\n")
        self.run_all()

    def change(self, change):
        board = self.board()
        for entry in board["entries"]:
            if entry["cell"]["model"] == "alice":
                change(entry["cell"])
        (self.results / "scoreboard.json").write_text(json.dumps(board))

    def rows(self):
        return {e["cell"]["model"]: e for e in self.board()["entries"]}

    def test_nothing_is_stale_after_a_run(self):
        before = self.rows()
        self.assertEqual({r["cell"]["revision"] for r in before.values()}, {before["bob"]["cell"]["revision"]})
        self.assertIn("nothing to measure again", self.run_all("--stale"))
        done = json.loads(self.run_all("--stale", "--json"))
        self.assertEqual(done, {"run": None, "cells": []})
        self.assertEqual(self.rows(), before)

    def test_only_what_is_stale_is_measured_again(self):
        today = self.rows()
        for change in (lambda cell: cell.pop("revision"), lambda cell: cell.update(spec_hash="older")):
            self.change(change)
            before = self.rows()
            self.assertIn("stale, and compared with nothing", self.show("alice"))
            self.assertNotIn("stale", self.show("bob"))
            self.assertIn("nothing to measure again", self.run_all("--stale", "-m", "bob"))
            self.assertIn("nothing to measure again", self.run_all("--stale", "--device", "sim"))
            self.assertEqual(self.rows(), before)
            self.assertIn("1 submissions", self.run_all("--stale"))
            after = self.rows()
            self.assertEqual(after["bob"], before["bob"])
            for key in ("revision", "spec_hash"):
                self.assertEqual(after["alice"]["cell"][key], today["alice"]["cell"][key])
            self.assertNotIn("stale", self.show("alice"))

    def test_what_cannot_be_measured_here_is_told(self):
        self.change(lambda cell: cell.update(revision=1 << 20))
        before = self.rows()
        self.assertIn("1 results are of a newer assay", self.run_all("--stale"))
        self.change(lambda cell: cell.update(revision=0))
        shutil.rmtree(self.submissions / "alice")
        said = self.run_all("--stale")
        self.assertIn("1 stale results have no answer among the submissions", said)
        self.assertIn("no other result is stale", said)
        self.assertEqual(self.rows()["bob"], before["bob"])

    def test_a_resumed_run_measures_again_what_another_revision_measured(self):
        (record,) = (self.results / "runs").glob("*.jsonl")
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        self.assertEqual(lines.pop(), {"finished": True})
        for line in lines:
            if line.get("model") == "alice":
                del line["revision"]
        record.write_text("".join(json.dumps(line) + "\n" for line in lines))
        refused = self.assay("run", "--results", self.results, "--resume", "-m", "bob", "--device", "sim", expect=2)
        self.assertIn("begun with another --model, --device, and goes on as it was begun", refused)
        self.assertIn("1 submissions", self.assay("run", "--results", self.results, "--resume"))

    def test_a_rerun_that_was_killed_is_not_what_a_run_resumes(self):
        self.assay("rerun", "alice", CHALLENGE, "--submissions", self.submissions, "--results", self.results)
        record = max((self.results / "runs").glob("*.jsonl"))
        lines = record.read_text().splitlines(keepends=True)
        self.assertEqual(json.loads(lines[-1]), {"finished": True})
        record.write_text("".join(lines[:-1]))
        self.assertIn("nothing to resume", self.assay("run", "--results", self.results, "--resume", expect=2))

    def test_a_part_has_no_stale_results_of_its_own(self):
        self.assertIn("--stale excludes --shard", self.run_all("--stale", "--shard", "1/2", expect=2))


class BadSubmission(Case):
    """Each fault has its own verdict and message and affects no other answer: all are graded in one run."""

    FAULTS = {  # the answer, its verdict and its message
        "compile_error": ("""int f( {
#error \x1b[31mred
""", "CE", "submission.cpp:1"),
        "missing_symbol": (INCLUDES, "LE", "softmax_topk", "missing"),
        "wrong_type_of_symbol": (INCLUDES + 'extern "C" float softmax_topk(int) { return 0; }', "CE", "softmax_topk"),
        "hang": (body("  for (volatile int i = 0;; ++i) {}"), "TLE", "no reply within"),
        "sleep": (body("  for (;;) sleep(1000);"), "TLE-idle", "no reply within"),
        "crash": (body("  *(volatile int*)8 = 1;"), "RE", "Segmentation fault"),
        "writes_to_an_input": (body("  memset((void*)logits, 0, 4);"), "RE", "Segmentation fault"),
        "abort": (body("  std::abort();"), "RE", "Aborted"),
        "exception": (body("  throw 1;"), "RE", "Aborted"),
        "exit_inside_a_call": (body("  exit(0);"), "RE", "exited with status 0"),
        "exit_while_loading": ("#include <cstdlib>" + """
namespace { struct X { X() { exit(0); } } x; }
""" + body(""), "LE", "while loading"),
        "forbidden_system_call": (body("  if (fork() == 0) for (;;) {}"), "SV", "system call"),
        "flood_of_output": (body('  for (;;) if (write(1, "spam spam spam spam", 19) < 0) return 0;'), "OLE", "64 KiB"),
        # The libraries of C and C++ can be loaded; others cannot, such as one that assay itself is linked with.
        "installed_library": (around_plain(r"""
  if (dlopen("libcrypto.so.3", RTLD_NOW) || !dlopen("libm.so.6", RTLD_NOW)) abort();
  return honest(ctx, p, logits, idx, prob, lse);""", r"""
#include <cstdlib>
#include <dlfcn.h>"""), "OK"),
        "untouched_outputs": (body(""), "WA"),
        "forged_reply": (body(f'  if (write({wire_constant("kLineFd")}, "x", 1) < 0) return 1;'), "PV", "forged a reply"),
        "out_of_memory": (body("  std::vector<std::vector<char>> v; for (;;) v.emplace_back(64 << 20, 1);"),
                          ("MLE", "RE"), "memory"),
        "lazy_thread": (around_plain("""
  std::thread([=] { honest(ctx, p, logits, idx, prob, lse); }).detach();
  return 0;""", "#include <thread>"), ("WA", "RE")),
    }

    def test_all_together(self):
        self.submit("alice", PLAIN)
        for model, (source, *_) in self.FAULTS.items():
            self.submit(model, source)
        self.run_all(timeout=800)
        for model, (_, verdict, *messages) in self.FAULTS.items():
            with self.subTest(model):
                shown = self.show(model)
                self.assertIn(self.entry(model)["score"]["verdict"], [verdict] if isinstance(verdict, str) else verdict,
                              shown)
                for message in messages:
                    self.assertIn(message, shown)
                self.assertNotIn("\x1b[31m", shown)
        self.assertEqual(self.entry("alice")["score"]["verdict"], "OK")
        # The kernel reports it if answers have memory groups; otherwise the failed allocation does.
        groups = "cgroup version" in self.assay("doctor")
        self.assertEqual(self.entry("out_of_memory")["score"]["verdict"], "MLE" if groups else "RE")


class BadFolder(Case):
    def test_empty_submission_folder(self):
        (self.submissions / "bad" / CHALLENGE).mkdir(parents=True)
        self.run_all()
        self.assertEqual(self.entry("bad")["score"]["verdict"], "CE")
        self.assertIn("no source files", self.show("bad"))

    def test_symlink(self):
        path = self.submit("bad", PLAIN)
        (path / "secret.h").symlink_to("/etc/passwd")
        self.run_all()
        self.assertEqual(self.entry("bad")["score"]["verdict"], "CE")
        self.assertIn("secret.h", self.show("bad"))

    def test_response_file_name(self):
        path = self.submit("bad", PLAIN)
        (path / "@x.cpp").write_text("-fplugin=x.so")
        self.run_all()
        self.assertEqual(self.entry("bad")["score"]["verdict"], "CE")
        self.assertIn("@x.cpp", self.show("bad"))

    def test_no_submissions(self):
        self.assertIn("submissions", self.run_all(expect=2))


class BadUsage(Case):
    def test_unknown_model(self):
        self.submit("alice", PLAIN)
        self.assertIn("did you mean 'alice'", self.run_all("--model", "alicee", expect=2))

    def test_unknown_challenge(self):
        self.submit("alice", PLAIN)
        self.assertIn(f"did you mean '{CHALLENGE}'", self.run_all("--challenge", CHALLENGE + "s", expect=2))

    def test_unknown_option_and_command(self):
        self.assertIn("assay run: unknown option '--modle'; did you mean '--model'?\nSee assay run --help\n",
                      self.assay("run", "--modle=x", expect=2))
        self.assertIn("assay show: unknown option '--devise'; did you mean '--device'?",
                      self.assay("show", "--devise", "cpu", expect=2))
        self.assertIn("assay: unknown command 'raport'; did you mean 'report'?\nSee assay --help\n",
                      self.assay("raport", expect=2))
        self.assertIn("assay: no command is given", self.assay(expect=2))
        self.assertIn("assay show: CHALLENGE is required", self.assay("show", "x", expect=2))
        self.assertIn("assay show: too many arguments: 'c' 'd'", self.assay("show", "a", "b", "c", "d", expect=2))
        self.assertIn("assay: unknown command 'raport'; did you mean 'report'?",
                      self.assay("raport", "--check", expect=2))
        self.assertIn("assay: unknown option '--bogus'", self.assay("--bogus", "show", "a", "b", expect=2))
        self.assertIn("assay show: CHALLENGE is required", self.assay("show", "--", "a", expect=2))
        self.assertNotIn("did you mean", self.assay("diff", "-x", "a", expect=2))
        self.assertIn("'lots' is not a size", self.assay("doctor", "--cache-limit", "lots", expect=2))

    def test_an_empty_value_is_refused(self):
        """A variable of a shell that is not set would choose the default folder."""
        for command in (["compare", "a", "b", "--results", ""], ["remove", "textbook", "--results", ""],
                        ["merge", ""], ["board", "--out", ""], ["deploy", ""], ["merge", "--results=", "a", "b"],
                        ["show", "a", "b", "--gpu", ""], ["slurm", "--array", "2", "--", "--cache", ""]):
            with self.subTest(command):
                self.assertIn("an empty value", self.assay(*command, expect=2))

    def test_a_key_need_not_be_named(self):
        self.assertIn("POST http://a.b/v1", self.assay("ask", "--url", "http://a.b/v1", "--model", "m", "--key-env", "",
                                                       "--dry-run", "-c", CHALLENGE))

    def test_a_name_that_no_model_can_have_gets_no_folder(self):
        for name in ("../x", "a/b", ".hidden"):
            with self.subTest(name):
                said = self.assay("deploy", name, "-c", CHALLENGE, "--into", self.folder / "in", expect=2)
                self.assertIn(f"no model can have the name '{name}'", said)
        self.assertEqual([*self.folder.iterdir()], [])

    def test_options_that_could_change_nothing(self):
        shown = ["show", "textbook", CHALLENGE, "--device", "cpu"]
        self.assertIn("--gpu is for what was simulated", self.assay(*shown, "--gpu", "a100", expect=2))
        self.assertIn("--into is for `assay export harbor`", self.assay("export", "csv", "--into", "x", expect=2))

    def test_a_folder_that_is_not_there(self):
        missing = self.folder / "missing"
        for command in (["remove", "textbook"], ["show", "textbook", CHALLENGE], ["board"], ["report"]):
            with self.subTest(command):
                said = self.assay(*command, "--results", missing, expect=2)
                self.assertIn(f"no {missing}/scoreboard.json", said)
        self.assertIn(f"no folder {missing}", self.assay("list", "--submissions", missing, expect=2))
        self.assertFalse(missing.exists())

    def test_help(self):
        listed = self.assay("--help").split("\nSubcommands:\n")[1].split("\n\n")[0]
        commands = dict(re.findall(r"^  (\w+) +(\S.*)$", listed, re.M))
        self.assertEqual(self.commands_of_the_sources(), set(commands))
        for command, what in commands.items():
            with self.subTest(command):
                text = self.assay(command, "--help")
                self.assertTrue(text.lstrip().startswith(what), text[:200])
                self.assertRegex(text, rf"(?m)^Usage: \S+ {command}\b")
                self.assertRegex(text, r"(?m)^Exit status:")
                self.assertRegex(text, rf"(?m)^  assay {command}\b")  # an example of the command
                self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])

    def commands_of_the_sources(self):
        """The commands that the sources add with a description; hidden ones have none in --help."""
        added = set()
        for path in (ROOT / "src" / "cli").glob("*.cpp"):
            added |= set(re.findall(r'add_subcommand\(\s*"(\w+)"', path.read_text()))
        return added - {"man", "completion"}

    def test_show_what_was_not_measured(self):
        self.results.mkdir()
        (self.results / "scoreboard.json").write_text(
            '{"schema": 2, "kind": "scoreboard", "machines": {}, "models": {}, "entries": []}')
        shown = ["show", "textbook", CHALLENGE, "--results", self.results]
        run = f"run `assay run --model textbook --challenge {CHALLENGE}"
        self.assertIn(f"{run} --results {self.results}`", self.assay(*shown, expect=2))
        self.assertIn(f"{run} --device cuda --results {self.results}`",
                      self.assay(*shown, "--device", "cuda", expect=2))
        flawed = self.assay("show", "flawed", "kv_cache", "--results", self.results, "--device", "sim", expect=2)
        self.assertIn("flawed has no submission for kv_cache in CUDA", flawed)


class CopiedRoot(Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        shutil.copytree(ROOT / "challenges", self.root / "challenges")
        shutil.copytree(ROOT / "include", self.root / "include")
        share_cache(self.root)


class Pace(CopiedRoot):
    def budget_of(self, times, seconds):
        """The seconds that a small training got, with a pace set by par's time for a smaller one."""
        small = {"entry": "train", "config": {"V": 32, "L": 1, "ff": 128, "T": 32}, "n_docs": 64, "held_out": 4,
                 "corpus": {"kind": "lag", "lag": 1}}
        file = ROOT / "challenges" / "ternary_training" / "spec.json"
        spec = json.loads(file.read_text())
        cases = {c["name"]: c for c in spec["cases"]}
        cases["time_train"]["params"] = {**small, "max_tokens": 2048, "seconds": 20}
        cases["train_1"].update(quick=True, time_limit_s=seconds + 1, pace={"of": "time_train", "times": times})
        cases["train_1"]["params"] = {**small, "max_tokens": 10**9, "seconds": seconds}
        spec.pop("random", None)
        spec["cases"] = [cases[name] for name in ("blob_bytes", "train_1", "time_train")]
        spec["resources"] = [{**r, "case": "train_1"} for r in spec["resources"]]
        spec["capabilities"] = []
        (self.root / file.relative_to(ROOT)).write_text(json.dumps(spec))
        self.run_all("--challenge", "ternary_training", root=self.root)
        (case,) = [c for c in self.entry("alice")["cell"]["cases"] if c["name"] == "train_1"]
        self.assertEqual(case["verdict"], "OK")
        (budget,) = [m["value"] for m in case["metrics"] if m["name"] == "budget_s"]
        return budget

    def test_par_sets_the_time_budget_and_the_spec_its_most(self):
        source = ROOT / "submissions" / "textbook" / "ternary_training" / "submission.cpp"
        self.submit("alice", source.read_text(), challenge="ternary_training")
        budget = self.budget_of(times=20, seconds=60)
        self.assertGreater(budget, 0.01)
        self.assertLess(budget, 20)
        self.assertEqual(self.budget_of(times=1e6, seconds=1.5), 1.5)


class Together(CopiedRoot):
    """Answers to one challenge are timed in common rounds."""

    def timed(self, model):
        (case,) = [c for c in self.entry(model)["cell"]["cases"] if c["group"] == "timed"]
        return case

    def test_who_fails_in_a_round_leaves_the_others_whole(self):
        late = around_plain("""
  static int large = 0;
  if (p->V == 128256 && ++large == 3) __builtin_trap();
  return honest(ctx, p, logits, idx, prob, lse);""")
        self.submit("aaron", PLAIN + "// aaron\n")  # this one is timed alone
        self.submit("alice", PLAIN)
        self.submit("bad", late)
        self.submit("carol", PLAIN + "// carol\n")
        self.run_all()
        self.assertEqual(self.timed("bad")["verdict"], "RE")
        self.assertIn("repetition 2", self.timed("bad")["detail"])
        for model in ("alice", "carol"):
            case = self.timed(model)
            self.assertEqual(case["verdict"], "OK")
            self.assertEqual(len(case["samples"]), 3)
            self.assertTrue(all(par > 0 and own > 0 for _, par, own in case["samples"]))
        alice, carol = (self.timed(model)["samples"] for model in ("alice", "carol"))
        self.assertGreater(alice[0][0], 0)
        self.assertEqual([naive for naive, _, _ in alice], [naive for naive, _, _ in carol])
        self.assertNotEqual(alice[0][1], carol[0][1], "each has par beside it")

    def test_a_fault_of_par_is_nobody_elses(self):
        par = self.root / "challenges" / CHALLENGE / "baselines" / "par.cpp"
        par.write_text(f"""{par.read_text().replace("softmax_topk(", "honest(")}
{SIGNATURE} {{
{UNUSED}
  return ASSAY_EINVAL;
}}
""")
        self.submit("aaron", PLAIN + "// aaron\n")
        self.submit("alice", PLAIN)
        self.submit("bob", PLAIN + "// bob\n")
        self.run_all(root=self.root, expect=2)
        for model in ("aaron", "alice", "bob"):  # once timed alone, once together
            self.assertEqual(self.entry(model)["score"]["verdict"], "JE")
            self.assertIn("the par implementation failed", self.entry(model)["cell"]["build"]["log"])


class Memory(CopiedRoot):
    def test_what_an_answer_keeps_is_counted_whatever_ran_before(self):
        """The answer keeps a block from its first call on: after other cases in the same process it would not count as
        growth."""
        kept = around_plain("""
  static const std::vector<char> kept(16 << 20, 1);
  return kept[0] == 1 ? honest(ctx, p, logits, idx, prob, lse) : ASSAY_EINVAL;""", "#include <vector>")
        self.submit("alice", PLAIN)
        self.submit("keeper", kept)
        file = self.root / "challenges" / CHALLENGE / "spec.json"
        spec = json.loads(file.read_text())
        for case in spec["cases"]:
            case["quick"] = case["group"] in ("core", "resource")
        file.write_text(json.dumps(spec))
        self.run_all("--seed", 7, root=self.root)
        for case in ("scratch", "scratch_per_row"):
            alice, keeper = (self.scratch(model, case) for model in ("alice", "keeper"))
            self.assertLess(alice, 1 << 20)
            self.assertGreater(keeper, 15 << 20)

    def scratch(self, model, name):
        (case,) = [c for c in self.entry(model)["cell"]["cases"] if c["name"] == name]
        self.assertEqual(case["verdict"], "OK")
        (metric,) = [m["value"] for m in case["metrics"] if m["name"] == "scratch_bytes"]
        return metric


class OwnTests(CopiedRoot):
    """Tests that a submission ships run on the challenge's implementations, right and wrong."""

    CURIOUS = """
#include "abi.h"
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>
extern "C" int assay_self_test(assay_ctx*) {
#if __has_include("wrong_secret.cpp")
  return 1;
#elif __has_include("naive.cpp")
  return 2;
#endif
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&assay_self_test), &self) == 0) return 3;
  std::ifstream in(self.dli_fname, std::ios::binary);
  const std::string library{std::istreambuf_iterator<char>(in), {}};
  if (library.size() < 4096) return 4;
  const std::string name = std::string("wrong") + "_secret";  // or this would find itself
  return library.find(name) != library.npos ? 5 : 0;
}
"""

    def verdicts_of(self, tests):
        """Each model's tests on naive, par and wrong_secret, which is naive plus a local symbol."""
        challenge = self.root / "challenges" / "layer_norm_backward"
        spec = json.loads((challenge / "spec.json").read_text())
        spec.pop("random", None)
        spec["cases"] = [c for c in spec["cases"] if c["name"] in ("basic", "memory", "time_8192x768")]
        spec["capabilities"] = []
        (challenge / "spec.json").write_text(json.dumps(spec))
        shutil.rmtree(challenge / "examples")
        (challenge / "examples").mkdir()
        (challenge / "examples" / "wrong_secret.cpp").write_text(
            """// fails: basic
#include "naive.cpp"
namespace { [[gnu::used]] void wrong_secret() {} }
""")
        source = (ROOT / "submissions" / "tuned" / "layer_norm_backward" / "submission.cpp").read_text()
        for model, test in tests.items():
            self.submit(model, source, challenge="layer_norm_backward")
            self.submit(model, test, challenge="layer_norm_backward", name="test.cpp")
        self.assay("run", "--submissions", self.submissions, "--results", self.results, root=self.root)
        return {model: {m["subject"]: m["verdict"] for m in self.entry(model)["cell"]["mutants"]} for model in tests}

    def test_earn_nothing_by_anything_but_behaviour(self):
        programs = ROOT / "tests" / "cells" / "programs" / "own_tests"
        hostile = {path.stem: path.read_text() for path in programs.glob("*.cpp")}
        self.assertGreater(len(hostile), 3)
        found = self.verdicts_of({"curious": self.CURIOUS, "broken": '#include "abi.h"\n#include "naive.cpp"\n', **hostile})
        self.assertEqual(found.pop("curious"), dict.fromkeys(("naive", "par", "wrong_secret"), "accepted"))
        self.assertEqual(found.pop("broken"), dict.fromkeys(("naive", "par", "wrong_secret"), "not_built"))
        for model, verdicts in found.items():
            with self.subTest(model):
                self.assertNotIn("not_built", verdicts.values())
                rights = {verdicts["naive"], verdicts["par"]}
                self.assertFalse(rights == {"accepted"} and verdicts["wrong_secret"] == "rejected", verdicts)


class BadSpec(CopiedRoot):
    def setUp(self):
        super().setUp()
        self.spec = self.root / "challenges" / CHALLENGE / "spec.json"
        self.submit("alice", PLAIN)

    def test_malformed(self):
        lines = self.spec.read_text().splitlines()
        lines.insert(3, "  oops")
        self.spec.write_text("\n".join(lines))
        output = self.run_all(root=self.root, expect=2)
        self.assertIn("spec.json:4", output)

    def test_wrong_type(self):
        document = json.loads(self.spec.read_text())
        document["cases"][2]["weight"] = "heavy"
        self.spec.write_text(json.dumps(document))
        output = self.run_all(root=self.root, expect=2)
        self.assertIn("/cases/2/weight", output)


class Storage(Case):
    def test_results_folder_that_cannot_be_written(self):
        self.submit("alice", PLAIN)
        self.results.write_text("a file, not a folder")
        self.assertIn(str(self.results), self.run_all(expect=2))

    def test_board_of_a_newer_version(self):
        self.submit("alice", PLAIN)
        self.results.mkdir()
        text = json.dumps({"schema": 99, "entries": []})
        (self.results / "scoreboard.json").write_text(text)
        self.assertIn("newer", self.run_all(expect=2))
        self.assertEqual((self.results / "scoreboard.json").read_text(), text)

    def test_full_disk_loses_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        self.submit("alice", PLAIN)
        self.results.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", self.results])
        if mounted.returncode != 0:
            self.skipTest("mount is not permitted here")
        try:
            self.run_all()
            before = self.board()
            (self.results / "filler").write_bytes(b"x" * self.free_bytes())
            self.submit("bob", PLAIN)
            output = self.run_all(expect=2)
            self.assertIn("No space left", output)
            self.assertEqual(self.board(), before)
        finally:
            subprocess.run(["umount", "-l", self.results], check=True)

    def test_a_full_disk_under_the_compiler_is_nobodys_compile_error(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        cache = self.folder / "cache"
        cache.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", cache])
        if mounted.returncode != 0:
            self.skipTest("mount is not permitted here")
        try:
            self.submit("alice", PLAIN)
            self.run_all("--cache", cache)
            (cache / "filler.tmp").write_bytes(b"x" * (self.free_bytes(cache) - (1 << 20)))
            table = ",".join(map(str, range(200000)))
            self.submit("bob", PLAIN + f'extern "C" const int table[] = {{{table}}};\n')
            said = self.run_all("--cache", cache, expect=2)
            self.assertIn("1 submission could not be measured", said)
            self.assertIn("run --resume", said)
            self.assertEqual(self.entry("bob")["score"]["verdict"], "JE")
            self.assertIn(str(cache), self.show("bob"))
            self.assertEqual(self.entry("alice")["score"]["verdict"], "OK")
            measured = self.entry("alice")["cell"]["finished_at"]
            (cache / "filler.tmp").unlink()
            self.assay("run", "--resume", "--submissions", self.submissions, "--results", self.results, "--cache", cache)
            self.assertEqual(self.entry("bob")["score"]["verdict"], "OK")
            self.assertEqual(self.entry("alice")["cell"]["finished_at"], measured, "what was measured is not again")
            (cache / "filler2.tmp").write_bytes(b"x" * self.free_bytes(cache))
            self.run_all("--cache", cache)  # with no room left, the work is done elsewhere
            self.assertEqual(self.entry("bob")["score"]["verdict"], "OK")
        finally:
            subprocess.run(["umount", "-l", cache], check=True)

    def test_the_cache_has_a_limit(self):
        self.submit("alice", PLAIN)
        cache = self.folder / "cache"
        self.run_all("--cache", cache)
        libraries = lambda: len(list(cache.glob("*.so")))
        self.assertGreater(libraries(), 2)
        self.assertIn(str(cache), self.assay("doctor", "--cache", cache))
        self.run_all("--cache", cache, "--cache-limit", "0")
        self.assertEqual(libraries(), 0)
        self.assertEqual(self.entry("alice")["score"]["verdict"], "OK")
        self.assertIn("--cache-limit", self.run_all("--cache-limit", "much", expect=2))

    def free_bytes(self, folder=None):
        status = os.statvfs(folder or self.results)
        return status.f_bavail * status.f_frsize

    def by_cell(self):
        return {(e["cell"]["model"], e["cell"]["challenge"]): e for e in self.board()["entries"]}

    def test_shards_are_measured_apart_and_merged(self):
        for model in ("alice", "bob", "carol"):
            self.submit(model, f"{model} is no C++\n")
        parts = [self.results / "part1", self.results / "part2"]
        for number, part in enumerate(parts, 1):
            self.assay("run", "--submissions", self.submissions, "--results", part, "--quick", "--shard", f"{number}/2")
        found = [{e["cell"]["model"] for e in json.loads((part / "scoreboard.json").read_text())["entries"]}
                 for part in parts]
        self.assertEqual(sorted(map(len, found)), [1, 2])
        self.assay("merge", *parts, "--results", self.results)
        self.assertEqual({model for model, _ in self.by_cell()}, {"alice", "bob", "carol"})
        none = self.assay("run", "--submissions", self.submissions, "--results", self.results / "part3",
                          "--costs", self.results, "--quick", "--shard", "4/4")
        self.assertIn("shard 4/4 has no submission", none)
        refused = self.assay("run", "--submissions", self.submissions, "--results", self.results, "--costs", self.results,
                             "--shard", "1/2", expect=2)
        self.assertIn("assay merge", refused)
        self.assertIn("I/N", self.assay("run", "--results", parts[0], "--shard", "3/2", expect=2))

    def test_killed_run_is_resumed(self):
        for model in ("alice", "bob"):
            for challenge in (CHALLENGE, "layer_norm_backward"):
                source = ROOT / "submissions" / "textbook" / challenge / "submission.cpp"
                self.submit(model, source.read_text() + f"// {model}\n", challenge)
        process = subprocess.Popen(
            [ASSAY, "--root", ROOT, "run", "--submissions", self.submissions, "--results", self.results,
             "--quick", "--jobs", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not (self.results / "scoreboard.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # A cell may be stored but not yet on the board: the run completes it.
        done = self.by_cell()
        self.assertGreaterEqual(len(done), 1)
        self.assertLess(len(done), 4)
        output = self.assay("run", "--results", self.results, "--resume")
        self.assertRegex(output, f"[{3 - len(done)}{4 - len(done)}] submissions")
        finished = self.by_cell()
        self.assertEqual(len(finished), 4)
        for cell, entry in done.items():
            self.assertEqual(finished[cell], entry)
        self.assertEqual(len({e["cell"]["seed"] for e in finished.values()}), 1)
        self.assertIn("nothing to resume", self.assay("run", "--results", self.results, "--resume", expect=2))


if __name__ == "__main__":
    unittest.main()
