"""The task that a model is given is complete: every challenge, both languages.

Usage: task_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import hashlib
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
CHALLENGES = sorted(p.parent.name for p in ROOT.glob("challenges/*/spec.json"))
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
# Names from the toolkit and the standard library, which a prompt may use.
KNOWN_ELSEWHERE = re.compile(r"cuda\w*|std_\w+|size_t|u?int\d+_t|extern_c")


def assay(*args, expect=0):
    done = subprocess.run([ASSAY, "--root", ROOT, *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def code_of(text):
    """The text in fences or back-ticks, or indented as code."""
    fences = re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)
    rest = re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.M | re.S)
    return "\n".join([*fences, *re.findall(r"`([^`\n]+)`", rest), *re.findall(r"^    .*$", rest, re.M)])


class Tasks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def deployed(self, challenge, language):
        assay("deploy", "m", "--challenge", challenge, "--language", language, "--into", self.folder)
        return self.folder / "m" / challenge

    def test_a_skeleton_compiles_with_what_is_handed_out_alone(self):
        for challenge in CHALLENGES:
            with self.subTest(challenge):
                folder = self.deployed(challenge, "both" if NVCC else "cpp")
                path = os.environ["PATH"] + (f":{pathlib.Path(NVCC).parent}" if NVCC else "")
                done = subprocess.run(["./build.sh"], cwd=folder, capture_output=True, text=True,
                                      env={**os.environ, "PATH": path}, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue((folder / "submission.so").exists())

    def test_what_a_prompt_names_is_defined_in_it(self):
        for challenge in CHALLENGES:
            for language in ("cpp", "cuda"):
                prompt = assay("prompt", challenge, "--language", language).stdout
                before, interface = prompt.split("\n## abi.h\n")
                interface = interface[:interface.index("\n## Build\n")]
                self.assertNotIn('#include "', interface)
                before = before[:before.index("\n## Grading\n")]  # the rest names capabilities
                names = set(re.findall(r"\bASSAY_\w+|\b[a-z]{2,}_\w{2,}\b", code_of(before)))  # k_j is mathematics
                defined = set(re.findall(r"\w+", interface)) | set(re.findall(r"\b\w+(?= =|\()", code_of(before)))
                missing = {n for n in names - defined if not KNOWN_ELSEWHERE.fullmatch(n)}
                self.assertEqual(missing, set(), f"{challenge} in {language}")

    def test_prompts_have_the_same_sections_in_the_same_order(self):
        common = ["Interface", "What to compute", "How exact", "Rules"]
        for challenge in CHALLENGES:
            for language, rest in (("cpp", ["Grading", "Your own tests"]),
                                   ("cuda", ["In CUDA", "Grading", "Your own tests in CUDA"])):
                prompt = assay("prompt", challenge, "--language", language).stdout
                sections = re.findall(r"^## (.*)$", prompt, re.M)
                self.assertEqual(sections, [*common, *rest, "Public cases", "abi.h", "Build"], f"{challenge} in {language}")

    def test_hints_are_a_section_of_their_own_which_nobody_gets_unasked(self):
        for challenge in CHALLENGES:
            plain, hinted = (assay("prompt", challenge, *more).stdout for more in ((), ("--hints",)))
            hints = (ROOT / "challenges" / challenge / "hints.md").read_text()
            self.assertRegex(hints, r"^## Hints\n")
            self.assertGreater(hints.count("\n- "), 3, challenge)
            before, after = hinted.split("\n" + hints)
            self.assertEqual(before + after, plain)

    def test_a_deployed_folder_names_the_version_of_its_prompt(self):
        for more in ((), ("--hints",)):
            with self.subTest(more):
                shutil.rmtree(self.folder / "m", ignore_errors=True)
                assay("deploy", "m", "--challenge", "kv_cache", "--into", self.folder, *more)
                folder = self.folder / "m" / "kv_cache"
                prompt = assay("prompt", "kv_cache", *more).stdout
                self.assertTrue((folder / "PROMPT.md").read_text().startswith(prompt))
                record = json.loads((folder / "attempt.json").read_text())
                version = hashlib.sha256(prompt.encode()).hexdigest()
                self.assertEqual(record, {"prompt_sha256": version, "prompt_hints": bool(more)})
                self.assertEqual(self.checked(folder), (version, True))
        (folder / "attempt.json").write_text(json.dumps({"prompt_sha256": "0" * 64}))
        self.assertEqual(self.checked(folder), ("0" * 64, False))
        self.assertIn("it has changed since this folder was made", assay("check", folder, expect=1).stdout)
        (folder / "attempt.json").unlink()
        self.assertEqual(self.checked(folder), (None, None))

    def checked(self, folder):
        document = json.loads(assay("check", folder, "--json", expect=1).stdout)
        return document["prompt_sha256"], document["prompt_is_current"]

    def test_a_prompt_says_what_its_spec_grades(self):
        for challenge in CHALLENGES:
            spec = json.loads((ROOT / "challenges" / challenge / "spec.json").read_text())
            prompt = assay("prompt", challenge).stdout
            grading = prompt[prompt.index("\n## Grading\n"):prompt.index("\n## Your own tests\n")]
            for part, points in spec["weights"].items():
                self.assertEqual(f"| {part} | {points} |" in grading, points > 0, f"{challenge}: {part}")
            for item in spec["resources"]:
                self.assertIn(f"- {item['name']}: ", grading)
                self.assertIn(item["why"], grading)
            for item in spec["capabilities"]:
                self.assertIn(f"- `{item['name']}`: {item['summary']}.", grading)

    def test_a_prompt_lists_the_public_cases_and_says_that_others_are_graded(self):
        for challenge in CHALLENGES:
            public = json.loads((ROOT / "challenges" / challenge / "public.json").read_text())
            draws = {f"public_draw_{i}" for i in range(1, public["draws"] + 1)}
            for language, left_out in (("cpp", set()), ("cuda", {c["name"] for c in public["cases"] if c.get("sim") is False})):
                prompt = assay("prompt", challenge, "--language", language).stdout
                section = prompt[prompt.index("\n## Public cases\n"):prompt.index("\n## abi.h\n")]
                self.assertIn("a grading has other cases, of other shapes", " ".join(section.split()))
                self.assertIn(f"--challenge {challenge}`", section)
                listed = set(re.findall(r"^\| `(public_\w+)` \| .+ \| .+ \|$", section, re.M))
                self.assertEqual(listed, {c["name"] for c in public["cases"]} - left_out | draws, f"{challenge} in {language}")
            graded = {c["name"] for c in json.loads((ROOT / "challenges" / challenge / "spec.json").read_text())["cases"]}
            self.assertEqual(graded & set(re.findall(r"`(\w+)`", section)) - {c["capability"] for c in public["cases"] if "capability" in c}, set())

    def test_a_cuda_prompt_has_the_rules_of_the_device(self):
        self.assertNotIn("## In CUDA", assay("prompt", "kv_cache").stdout)
        prompt = assay("prompt", "kv_cache", "--language", "cuda").stdout
        self.assertIn("## In CUDA", prompt)
        self.assertIn("\nnvcc -std=c++20", prompt)

    def test_a_task_for_both_languages_says_how_each_is_graded(self):
        folder = self.deployed("ternary_training", "both")
        prompt = (folder / "PROMPT.md").read_text()
        sections = re.findall(r"^## (.*)$", prompt, re.M)
        self.assertEqual(sections, ["Interface", "What to compute", "How exact", "Rules", "In CUDA", "Grading in C++",
                                    "Grading in CUDA", "Your own tests", "Your own tests in CUDA",
                                    "Public cases in C++", "Public cases in CUDA", "abi.h", "Build"])
        for language, suffix in (("cpp", " in C++"), ("cuda", " in CUDA")):
            alone = assay("prompt", "ternary_training", "--language", language).stdout
            for heading in ("Grading", "Public cases"):
                [section] = re.findall(rf"^## {heading}\n(.*?)(?=^## )", alone, re.M | re.S)
                self.assertIn(f"\n## {heading}{suffix}\n{section}", prompt)

    def test_deploy_leaves_alone_what_is_there(self):
        folder = self.deployed("kv_cache", "cpp")
        (folder / "submission.cpp").write_text("precious")
        done = assay("deploy", "m", "--challenge", "kv_cache", "--into", self.folder, expect=2)
        self.assertIn("is there already", done.stderr)
        self.assertEqual((folder / "submission.cpp").read_text(), "precious")

    def test_what_an_agent_leaves_is_no_part_of_its_answer(self):
        folder = self.deployed("kv_cache", "cpp")
        (folder / "session.jsonl").write_text("{}")
        shown = assay("list", "models", "--submissions", self.folder)
        self.assertIn("not part of the answer: build.sh, check.sh, session.jsonl", shown.stderr)
        self.assertNotIn("rejected", shown.stdout)

    def test_unknown_names_are_told(self):
        self.assertIn("did you mean 'kv_cache'", assay("prompt", "kv_cash", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
