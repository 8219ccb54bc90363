"""A ninth challenge is just a folder: the build finds it, and the program checks and grades answers to it.

Usage: ninth_challenge_test.py ASSAY TREE CMAKE GENERATOR. TREE is the source tree with the folder vector_sum among
its challenges, ASSAY a program built from it. Uses only the standard library.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, TREE = (pathlib.Path(path).absolute() for path in sys.argv[1:3])
CMAKE, GENERATOR = sys.argv[3:]
CHALLENGE = "vector_sum"
NAIVE = (TREE / "challenges" / CHALLENGE / "baselines" / "naive.cpp").read_text()


class NinthChallenge(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-ninth-"))

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def assay(self, *args):
        done = subprocess.run([ASSAY, "--root", TREE, *map(str, args)], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_the_build_finds_the_folder_and_its_test(self):
        build = self.folder / "build"
        done = subprocess.run([CMAKE, "-S", TREE, "-B", build, "-G", GENERATOR], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        commands = json.loads((build / "compile_commands.json").read_text())
        compiled = {str(pathlib.Path(command["file"]).relative_to(TREE)) for command in commands
                    if command["file"].startswith(str(TREE))}
        self.assertEqual(
            {file for file in compiled if CHALLENGE in file and "ninth_challenge/" not in file},
            {f"challenges/{CHALLENGE}/harness/challenge.cpp", f"challenges/{CHALLENGE}/worker/adapter.cpp",
             f"tests/challenges/{CHALLENGE}_test.cpp"})
        folders = {spec.parent.name for spec in TREE.glob("challenges/*/spec.json")}
        for registry in ("challenge", "adapter"):
            rows = (build / "generated" / f"{registry}_registry.cpp").read_text()
            named = {name for name in folders if f'{{"{name}", &{registry}_{name}}}' in rows}
            self.assertEqual(named, folders, registry)

    def test_it_is_listed_beside_the_others(self):
        listed = self.assay("list")
        for spec in TREE.glob("challenges/*/spec.json"):
            self.assertIn(spec.parent.name, listed)

    def test_its_wrong_examples_fail_the_cases_that_they_name(self):
        shown = self.assay("selftest", "--challenge", CHALLENGE, "--cache", self.folder / "cache")
        for example in (TREE / "challenges" / CHALLENGE / "examples").glob("*.cpp"):
            self.assertIn(example.stem, shown)

    def test_its_public_cases_are_checked(self):
        answer = self.folder / "answer.cpp"
        answer.write_text(NAIVE)
        shown = self.assay("check", answer, "--cache", self.folder / "cache")
        self.assertIn(f"{CHALLENGE} in C++ (it has vector_sum()): all 6 public cases are right", shown)

    def test_what_it_draws_finds_nothing_in_its_own_implementations(self):
        shown = self.assay("fuzz", CHALLENGE, "--seconds", "2", "--cache", self.folder / "cache")
        self.assertRegex(shown, r"naive +\d+ +\d+ +0 +0 +0\n")

    def test_answers_to_it_are_graded(self):
        answers = {"right": NAIVE, "wrong": NAIVE.replace("i < p->n;", "i < p->n / 8 * 8;")}
        self.assertNotEqual(*answers.values())
        for model, source in answers.items():
            answer = self.folder / "submissions" / model / CHALLENGE
            answer.mkdir(parents=True)
            (answer / "submission.cpp").write_text(source)
        self.assay("run", "--submissions", self.folder / "submissions", "--results", self.folder / "results",
                   "--cache", self.folder / "cache", "--device", "cpu")
        results = self.folder / "results"
        board = json.loads((results / "scoreboard.json").read_text())
        score, failed = {}, {}
        for entry in board["entries"]:
            model = entry["cell"]["model"]
            score[model] = {d["name"]: d["points"] for d in entry["score"]["dimensions"]}
            cases = json.loads((results / entry["evidence"]["path"]).read_text())["cell"]["cases"]
            failed[model] = [c["name"] for c in cases if c["verdict"] != "OK"]
        drawn = [f"random_{i}" for i in range(1, 5)]
        self.assertEqual(failed, {"right": [], "wrong": ["tail", *drawn]})
        # One of four traps and two of four edge cases pass: a quarter of 40 % and half of 20 % of 65 points.
        self.assertAlmostEqual(score["right"]["correctness"], 65)
        self.assertAlmostEqual(score["wrong"]["correctness"], 39)
        self.assertEqual(score["right"]["accuracy"], 5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
