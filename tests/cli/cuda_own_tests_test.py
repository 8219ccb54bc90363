"""Tests shipped with answers in CUDA, test.cu, run on right and wrong implementations on the simulated GPU.
Skipped without nvcc.

Usage: cuda_own_tests_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
CHALLENGE = "layer_norm_backward"
RIGHT = ("naive", "par")
WRONG = ("wrong_eps_hard_coded", "wrong_gamma_forgotten")


def test_that(statements, before=""):
    return f'#include "abi.h"\n{before}\nextern "C" int assay_self_test(assay_ctx* ctx) {{\n{statements}\n}}\n'


BEYOND = "__global__ void write(int* p) { p[threadIdx.x] = 1; }\n"
ENDLESS = "__global__ void wait(volatile int* p) { while (*p == 0) {} }\n"
TESTS = {
    "sharp": (ROOT / "submissions" / "textbook" / CHALLENGE / "test.cu").read_text(),
    "rejects": test_that("  return 1;"),
    "accepts": test_that("  return 0;"),
    "broken": test_that("  return nothing;"),
    "hangs": test_that("  for (volatile int i = 0;; i = 0) {}\n  return 0;"),
    "hangs_on_device": test_that("""  int* p;
  cudaMalloc(&p, 4);
  cudaMemset(p, 0, 4);
  wait<<<1, 32>>>(p);
  cudaDeviceSynchronize();
  return 0;""", ENDLESS),
    "corrupts": test_that("""  int* p;
  cudaMalloc(&p, 4);
  write<<<1, 64>>>(p);
  cudaDeviceSynchronize();
  return 0;""", BEYOND),
    "stands_in": test_that("  return 0;", """extern "C" __attribute__((visibility("hidden")))
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) { return cudaSuccess; }
"""),
    "none": None,
}


class CudaOwnTests(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-cuda-own-tests-"))
        self.root, self.results = self.folder / "root", self.folder / "results"
        for part in ("challenges", "include", "kernels", "gpus"):
            shutil.copytree(ROOT / part, self.root / part)
        house = self.root / "challenges" / CHALLENGE
        spec = json.loads((house / "spec.json").read_text())
        spec.pop("random", None)
        spec["cases"] = [c for c in spec["cases"] if c["name"] in ("basic", "large_eps", "eps_1e_3", "eps_1e_12",
                                                                   "gamma_forgotten", "gamma_zero_neg", "memory")
                         or c["group"] == "timed"][:8]
        for case in spec["cases"]:  # small: what is graded here is the tests
            case["params"]["rows"] = min(case["params"]["rows"], 256)
        spec["capabilities"] = []
        spec["resources"] = []
        (house / "spec.json").write_text(json.dumps(spec))
        for example in (house / "examples").iterdir():
            if example.suffix != ".cuh" and not (example.suffix == ".cu" and example.stem in WRONG):
                example.unlink()
        source = (house / "baselines" / "naive.cu").read_text()
        for model, tests in TESTS.items():
            folder = self.folder / "submissions" / model / CHALLENGE
            folder.mkdir(parents=True)
            (folder / "submission.cu").write_text(source)
            if tests is not None:
                (folder / "test.cu").write_text(tests)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_all(self):
        done = subprocess.run([ASSAY, "--root", self.root, "run", "--submissions", self.folder / "submissions",
                               "--results", self.results, "--cache", ROOT / ".cache"],
                              capture_output=True, text=True, timeout=800)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        board = json.loads((self.results / "scoreboard.json").read_text())
        found = [json.loads((self.results / e["evidence"]["path"]).read_text()) for e in board["entries"]]
        self.of = {e["cell"]["model"]: e for e in found}

    def verdicts(self, model):
        return {m["subject"]: m["verdict"] for m in self.of[model]["cell"]["mutants"]}

    def reasons(self, model):
        return {m["subject"]: m.get("reason", "") for m in self.of[model]["cell"]["mutants"]}

    def dimension_of(self, model):
        (dimension,) = [d for d in self.of[model]["score"]["dimensions"] if d["name"] == "tests"]
        return dimension

    def test_are_judged_by_what_they_say_of_right_and_wrong_implementations(self):
        self.run_all()
        everything = RIGHT + WRONG
        said = {"sharp": {**dict.fromkeys(RIGHT, "accepted"), **dict.fromkeys(WRONG, "rejected")},
                "rejects": dict.fromkeys(everything, "rejected"),
                "accepts": dict.fromkeys(everything, "accepted"),
                "broken": dict.fromkeys(everything, "not_built"),
                "hangs": dict.fromkeys(everything, "rejected"),
                "hangs_on_device": dict.fromkeys(everything, "rejected"),
                "corrupts": dict.fromkeys(everything, "rejected"),
                "stands_in": dict.fromkeys(everything, "not_built"),
                "none": {}}
        for model, verdicts in said.items():
            with self.subTest(model):
                self.assertEqual(self.verdicts(model), verdicts)
                dimension = self.dimension_of(model)
                self.assertEqual(dimension["points"], dimension["max"] if model == "sharp" else 0)
                self.assertGreater(dimension["max"], 0)
        self.assertIn("not put to the reference", self.reasons("rejects")["naive"])
        self.assertIn("nothing", self.reasons("broken")["naive"])
        self.assertIn("no reply within", self.reasons("hangs")["naive"])
        self.assertIn("more warp instructions", self.reasons("hangs_on_device")["naive"])
        self.assertIn("write", self.reasons("corrupts")["naive"])
        self.assertIn("it defines __cudaLaunchKernel", self.reasons("stands_in")["naive"])
        self.assertIn("ships no test.cu", self.dimension_of("none")["why"])


if __name__ == "__main__":
    found = subprocess.run([ASSAY, "--root", ROOT, "doctor"], capture_output=True, text=True).stdout
    if "nvcc in the sandbox" not in found:
        print("no nvcc: skipped")
        sys.exit(77)
    unittest.main(verbosity=2)
