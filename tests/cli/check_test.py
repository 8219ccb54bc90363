"""assay check and assay grade, driven from outside: right, wrong and hostile answers.

Usage: check_test.py ASSAY ROOT [--slow] [unittest arguments]. Uses only the standard library. With --slow it runs the
shipped right answers to every challenge, in both languages, on the public cases; without it, everything else.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
SLOW = "--slow" in sys.argv
if SLOW:
    sys.argv.remove("--slow")
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
CHALLENGES = sorted(p.parent.name for p in ROOT.glob("challenges/*/spec.json"))
TEXTBOOK = ROOT / "submissions" / "textbook"
SOFTMAX = "fused_softmax_topk"
PLAIN = (TEXTBOOK / SOFTMAX / "submission.cpp").read_text()
KINDS = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "array": list,
         "null": type(None)}


def softmax(body):
    return ('#include "abi.h"\nextern "C" int softmax_topk(assay_ctx*, const stk_params* p, const void*, int32_t*, float*,\n'
            "                            float*) {\n" + body + "\n  return ASSAY_OK;\n}\n")


def violations(value, schema, whole, at=""):
    """Checks only the JSON Schema features that these schemas use. The unit tests check the documents in full."""
    if "$ref" in schema:
        schema = {**whole["definitions"][schema["$ref"].rsplit("/", 1)[1]], **{k: v for k, v in schema.items() if k != "$ref"}}
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, KINDS[k]) for k in kinds):
        return [f"{at}: {value!r} is no {kinds}"]
    found = [f"{at}: {value!r}"] if "enum" in schema and value not in schema["enum"] else []
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at}/{k} is missing" for k in schema.get("required", []) if k not in value]
        found += [f"{at}/{k} is unknown" for k in value if k not in known and rest is False]
        for k, v in value.items():
            found += violations(v, known.get(k, rest if isinstance(rest, dict) else {}), whole, f"{at}/{k}")
    if isinstance(value, list):
        for i, v in enumerate(value):
            found += violations(v, schema.get("items", {}), whole, f"{at}/{i}")
    return found


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-check-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def assay(self, *args, expect=0, env=None, cwd=None):
        done = subprocess.run([ASSAY, "--root", ROOT, *map(str, args)], capture_output=True, text=True, timeout=600,
                              cwd=cwd or self.folder, env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done

    def held(self, document, schema):
        whole = json.loads((ROOT / "challenges" / schema).read_text())
        self.assertEqual(violations(document, whole, whole), [])
        return document

    def check(self, *args, expect=0):
        """The objects that check prints, one per answer."""
        lines = self.assay("check", *args, "--json", expect=expect).stdout.splitlines()
        return [self.held(json.loads(line), "check.schema.json") for line in lines]

    def grade(self, *args):
        return self.held(json.loads(self.assay("grade", *args, "--json").stdout), "grade.schema.json")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def same_as_a_run(self, challenge, device, *options):
        """Compares the grade of the shipped answer with the cell of a run, except for what a clock measures."""
        options = ["--device", device, "--seed", "7", *options]
        document = self.grade(TEXTBOOK / challenge, *options)
        results = self.folder / "results"
        self.assay("run", "-m", "textbook", "-c", challenge, *options, "--results", results)
        evidence = json.loads((results / "cells" / "textbook" / challenge / f"{device}.json").read_text())
        cell, score = evidence["cell"], {d["name"]: d for d in evidence["score"]["dimensions"]}
        self.assertEqual(document["dimensions"].keys(), score.keys())
        for name in score.keys() - ({"performance"} if device == "cpu" else set()):
            self.assertEqual(document["dimensions"][name]["points"], score[name]["points"], name)
        self.assertEqual((document["seed"], document["source_hash"], document["spec_hash"]),
                         ("7", cell["build"]["source_hash"], cell["spec_hash"]))
        self.assertEqual({c["name"]: c["verdict"] for c in document["failed_cases"]},
                         {c["name"]: c["verdict"] for c in cell["cases"] if c["verdict"] not in ("OK", "SKIP", "GPU")})
        self.assertEqual(document["total"] is None, evidence["score"]["total"] is None)
        self.assertIsNotNone(document["log_speed_over_naive"])
        return document

    def failed(self, document):
        return {r["name"]: r["verdict"] for r in document["results"] if r["wrong"]}


@unittest.skipIf(SLOW, "run with the others")
class Check(Case):
    def test_right_answers_pass(self):
        for challenge in (SOFTMAX, "layer_norm_backward"):
            with self.subTest(challenge):
                [document] = self.check(TEXTBOOK / challenge, "--device", "cpu")
                self.assertEqual((document["challenge"], document["passed"], document["wrong"]), (challenge, True, 0))
                self.assertEqual(document["verdict"], "OK")
                self.assertGreater(document["speed"]["seconds"], 0)
                # One small shape on a machine that may be busy: which time is larger says nothing.
                for name in ("naive_seconds", "par_seconds"):
                    self.assertGreater(document["speed"][name], 0)
                self.assertIn("scratch_bytes", document["memory"])
                public = json.loads((ROOT / "challenges" / challenge / "public.json").read_text())
                self.assertEqual(document["cases"], len(public["cases"]) + public["draws"])

    def test_the_text_is_the_feedback(self):
        shown = self.assay("check", TEXTBOOK / SOFTMAX, "--device", "cpu").stdout
        self.assertIn(f"{SOFTMAX} in C++ (its folder says so): ", shown)
        self.assertIn("indicative", shown)
        self.assertIn("Public cases only", shown)

    def test_a_wrong_answer_says_where(self):
        [document] = self.check(self.write("answer.cpp", softmax("")), "-c", SOFTMAX, expect=1)
        self.assertFalse(document["passed"])
        self.assertEqual(document["verdict"], "WA")
        self.assertEqual(self.failed(document)["public_plain"], "WA")
        plain = next(r for r in document["results"] if r["name"] == "public_plain")
        self.assertRegex(plain["detail"], r"\[0")
        self.assertIn("not timed: required cases are wrong", document["feedback"])

    def test_what_does_not_compile_shows_the_compilers_words(self):
        path = self.write("answer.cpp", softmax("int x = y;"))
        [document] = self.check(path, "-c", SOFTMAX, expect=1)
        self.assertFalse(document["compiled"])
        self.assertIn("'y' was not declared", document["build_log"])
        self.assertIn("'y' was not declared", document["feedback"])

    def test_what_does_not_link_or_crashes_or_hangs(self):
        for source, verdict in ((softmax("extern int nowhere(); return nowhere();"), "CE"),
                                (softmax("__builtin_trap();"), "RE"), (softmax("for (volatile int i = 0; p->V == 500; ++i) {}"), "TLE"),
                                ('#include "abi.h"\nint nothing;', "LE")):
            with self.subTest(verdict):
                [document] = self.check(self.write("answer.cpp", source), "-c", SOFTMAX, expect=1)
                self.assertIn(document["verdict"], (verdict, verdict + "-idle"))  # if the machine is busy
                self.assertLessEqual(len(document["feedback"].encode()), 8000)

    def test_a_skeleton_supports_nothing_and_fails(self):
        [document] = self.check(self.write("answer.cpp", softmax("return ASSAY_ENOTSUP;")), "-c", SOFTMAX, expect=1)
        self.assertEqual(document["verdict"], "NS")
        self.assertIn("public_plain", self.failed(document))
        self.assertIn("bf16", document["left_out"])

    def test_names_do_no_harm(self):
        for name in ("it's $(touch pwned); .cpp", "-rf.cpp", "new\nline.cpp", "\udcff.cpp"):
            with self.subTest(name):
                path = self.folder / name
                path.write_text(PLAIN)
                [document] = self.check(self.folder / name, "-c", SOFTMAX)
                self.assertTrue(document["passed"])
                path.unlink()
        self.assertFalse((self.folder / "pwned").exists())

    def test_a_folder_is_held_to_the_rules_of_submissions(self):
        self.write("a/submission.cpp", PLAIN)
        self.write("a/@x.cpp", "")
        [document] = self.check(self.folder / "a", "-c", SOFTMAX, expect=1)
        self.assertIn("names may not start with '@'", document["build_log"])
        (self.folder / "a" / "@x.cpp").unlink()
        (self.folder / "a" / "submission.cpp").unlink()
        (self.folder / "a" / "submission.cpp").symlink_to("/etc/passwd")
        [document] = self.check(self.folder / "a", "-c", SOFTMAX, expect=1)
        self.assertIn("is a symbolic link", document["build_log"])
        self.assertNotIn("root:", document["feedback"])

    def test_the_challenge_is_recognised(self):
        for path, how in (("a.cpp", "it has softmax_topk()"), (f"{SOFTMAX}/submission.cpp", "its folder says so"),
                          (f"m/{SOFTMAX}/2/submission.cpp", "its folder says so")):
            [document] = self.check(self.write(path, PLAIN))
            self.assertEqual((document["challenge"], document["known_by"]), (SOFTMAX, how))
        both = self.write("b.cpp", 'extern "C" int softmax_topk(); extern "C" int beam_search();')
        self.assertIn("could answer beam_search, fused_softmax_topk", self.assay("check", both, expect=2).stderr)
        neither = self.write("c.cpp", "int main() {}")
        self.assertIn("defines no function of any challenge", self.assay("check", neither, expect=2).stderr)

    def test_wrong_usage_is_told(self):
        for args, says in ((["none"], "no such file or folder"), ([TEXTBOOK], "holds no submission.cpp"),
                           ([ROOT / "README.md"], "a file that ends in .cpp, .cc or .cu"),
                           ([self.write("a.cpp", PLAIN), "-c", "fused_softmax_topj"], "did you mean"),
                           ([self.write("a.cpp", PLAIN), "-c", SOFTMAX, "--device", "sim"], "no answer for the device sim")):
            self.assertIn(says, self.assay("check", *args, expect=2).stderr)

    def test_nothing_is_stored_and_the_answer_is_left_alone(self):
        self.write("a/submission.cpp", PLAIN)
        for path in (self.folder / "a" / "submission.cpp", self.folder / "a"):
            path.chmod(0o555)
        self.check(self.folder / "a", "-c", SOFTMAX)
        self.assertEqual([p.relative_to(self.folder).as_posix() for p in sorted(self.folder.rglob("*"))],
                         ["a", "a/submission.cpp"])
        self.assertEqual((self.folder / "a" / "submission.cpp").read_text(), PLAIN)
        (self.folder / "a").chmod(0o755)

    def test_a_deployed_folder_checks_itself(self):
        self.assay("deploy", "m", "-c", SOFTMAX, "--into", self.folder)
        folder = self.folder / "m" / SOFTMAX
        def script(**env):
            return subprocess.run([folder / "check.sh", "--json"], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, **env}, cwd="/")
        done = script()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["challenge"], SOFTMAX)
        (folder / "submission.cpp").write_text(PLAIN)
        self.assertEqual(script(ASSAY_ROOT=str(ROOT), ASSAY=str(ASSAY)).returncode, 0)
        self.assertEqual(script(ASSAY="/no/assay").returncode, 127)
        text = (folder / "check.sh").read_text()
        (folder / "check.sh").write_text(text.replace(str(ASSAY), "/no/assay"))
        done = script(ASSAY="")
        self.assertEqual(done.returncode, 2)
        self.assertIn("set ASSAY to the program", done.stderr)

    def test_the_prompt_lists_what_is_run(self):
        for language, device in (("cpp", "cpu"),):
            prompt = self.assay("prompt", SOFTMAX, "--language", language).stdout
            section = prompt[prompt.index("\n## Public cases\n"):prompt.index("\n## abi.h\n")]
            [document] = self.check(TEXTBOOK / SOFTMAX, "--device", device)
            for result in document["results"]:
                self.assertIn(f"| `{result['name']}` | {result['shape']} |", section)


@unittest.skipIf(SLOW, "run with the others")
class Grade(Case):
    def test_it_is_what_a_run_gives(self):
        self.same_as_a_run("layer_norm_backward", "cpu", "--quick")

    def test_stages_stop_where_one_fails(self):
        stages = ["--stages", "build,core,all,findings,time", "-c", SOFTMAX, "--quick"]
        status = lambda document: {s["name"]: s["status"] for s in document["stages"]}
        document = self.grade(self.write("a.cpp", softmax("int x = y;")), *stages)
        self.assertEqual(status(document), {"build": "failed", "core": "not_run", "all": "not_run", "findings": "not_run",
                                            "tests": "not_run", "time": "not_run"})
        self.assertEqual((document["compiled"], document["total"], document["verdict"]), (False, 0, "CE"))
        document = self.grade(self.write("b.cpp", softmax("")), *stages)
        self.assertEqual(document["failed_stage"], "core")
        self.assertEqual(status(document)["time"], "not_run")
        self.assertIsNone(document["total"])
        self.assertLess(document["passed"]["core"]["share"], 1)
        document = self.grade(self.write("c.cpp", PLAIN), *stages)
        self.assertEqual(status(document), {"build": "passed", "core": "passed", "all": "passed", "findings": "not_run",
                                            "tests": "not_run", "time": "passed"})
        self.assertEqual(document["passed"]["core"]["share"] is not None, True)
        self.assertGreater(document["total"], 50)

    def test_the_text_shows_stages_and_dimensions(self):
        shown = self.assay("grade", self.write("b.cpp", softmax("")), "-c", SOFTMAX, "--stages", "core", "--quick").stdout
        self.assertRegex(shown, r"core +[\d.]+ +failed")
        self.assertIn("failed cases", shown)
        self.assertNotIn("assay rerun", shown)

    def test_wrong_usage_is_told(self):
        path = self.write("a.cpp", PLAIN)
        self.assertIn("--stages", self.assay("grade", path, "-c", SOFTMAX, "--stages", "build,fast", expect=2).stderr)
        self.write("both/submission.cpp", PLAIN)
        self.write("both/submission.cu", PLAIN)
        self.assertIn("say which with --device", self.assay("grade", self.folder / "both", "-c", SOFTMAX, expect=2).stderr)


RACE = """#include "abi.h"
#include <cuda_runtime.h>
__global__ void racing(int32_t* idx) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  sum += threadIdx.x;
  __syncthreads();
  if (idx) idx[0] = sum;
}
extern "C" int softmax_topk(assay_ctx* ctx, const stk_params*, const void*, int32_t* idx, float*, float*) {
  racing<<<1, 64, 0, static_cast<cudaStream_t>(ctx->stream)>>>(idx);
  return ASSAY_OK;
}
"""


@unittest.skipIf(SLOW, "run with the others")
@unittest.skipUnless(NVCC, "nvcc is not installed")
class Cuda(Case):
    def test_findings_have_source_lines(self):
        path = self.write("racing.cu", RACE)
        [document] = self.check(path, expect=1)
        self.assertEqual((document["language"], document["device"]), ("cuda", "sim"))
        self.assertEqual(document["verdict"], "DE")
        self.assertTrue(any("submission.cu:7" in f["text"] for f in document["findings"]), document["findings"])
        self.assertIn("submission.cu:7", document["feedback"])

    def test_without_a_toolkit_it_is_no_verdict(self):
        path = self.write("racing.cu", RACE)
        done = self.assay("check", path, expect=2, env={"ASSAY_NVCC": ""})
        self.assertIn("no CUDA Toolkit (nvcc) found", done.stderr)
        self.write("both/submission.cpp", PLAIN)
        self.write("both/submission.cu", RACE)
        done = self.assay("check", self.folder / "both", "-c", SOFTMAX, env={"ASSAY_NVCC": ""})
        self.assertIn("submission.cu: not run", done.stderr)
        self.assertIn("in C++", done.stdout)


@unittest.skipUnless(SLOW, "slow")
class Shipped(Case):
    def passes(self, challenge, device):
        [document] = self.check(TEXTBOOK / challenge, "--device", device)
        self.assertEqual(self.failed(document), {}, document["feedback"])
        self.assertEqual(document["speed"]["not_timed"], "", document["feedback"])
        return document

    def test_in_cpp(self):
        for challenge in CHALLENGES:
            with self.subTest(challenge):
                self.passes(challenge, "cpu")

    @unittest.skipUnless(NVCC, "nvcc is not installed")
    def test_in_cuda(self):
        for challenge in CHALLENGES:
            with self.subTest(challenge):
                document = self.passes(challenge, "sim")
                self.assertEqual(document["speed"]["modelled_on"], "H200")
                self.assertGreater(document["counters"]["launches"], 0)

    def test_whole_grades_are_those_of_runs(self):
        self.same_as_a_run("layer_norm_backward", "cpu")
        if NVCC:
            document = self.same_as_a_run("fused_softmax_topk", "sim")
            self.assertEqual(document["modelled_on"], "H200")
            self.assertIsNotNone(document["total"])

    def test_the_experts_answers(self):
        for challenge in CHALLENGES:
            answer = ROOT / "submissions" / "tuned" / challenge
            for device in ("cpu", "sim") if NVCC and (answer / "submission.cu").exists() else ("cpu",):
                with self.subTest(challenge=challenge, device=device):
                    [document] = self.check(answer, "--device", device)
                    self.assertEqual(self.failed(document), {}, document["feedback"])


if __name__ == "__main__":
    unittest.main()
