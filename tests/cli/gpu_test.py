"""`assay gpu` from outside, on a driver that simulates a GPU. Skipped (77) without nvcc.

Usage: gpu_test.py ASSAY ROOT DRIVER MANAGEMENT [unittest arguments]. Uses only the standard library.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT, DRIVER, MANAGEMENT = (pathlib.Path(sys.argv.pop(1)) for _ in range(4))
sys.path.insert(0, str(ROOT / "tests" / "support"))
from open_copies import open_copies  # noqa: E402: from there

DRIVER, MANAGEMENT = open_copies(DRIVER, MANAGEMENT)
CHALLENGE, CASE = "layer_norm_backward", "time_8192x768"
TUNED = ROOT / "submissions" / "tuned" / CHALLENGE / "submission.cu"


def run(*arguments):
    return subprocess.run([ASSAY, "--root", ROOT, "gpu", "--management", MANAGEMENT, *arguments],
                          capture_output=True, text=True, timeout=600)


class Gpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-gpu-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def measure(self, *arguments):
        file = self.folder / "gpu.json"
        done = run("--driver", DRIVER, "-c", CHALLENGE, "--sizes", "sim", "--few", "--seed", "3",
                   "--json", file, *arguments)
        return done, json.loads(file.read_text()) if file.exists() else None

    def answer(self, name, source):
        folder = self.folder / "submissions" / name / CHALLENGE
        folder.mkdir(parents=True)
        (folder / "submission.cu").write_text(source)
        return ["--submissions", self.folder / "submissions", "--model", name]

    def test_par_and_a_right_answer(self):
        right = self.answer("right", TUNED.read_text())
        done, found = self.measure("--quick", "--modelled", *right)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Simulated H200 (driver for CUDA", done.stdout)
        self.assertIn(f"isolation {found['gpu']['isolation']})", done.stdout)
        self.assertIn(found["gpu"]["isolation"], ("landlock+seccomp", "seccomp"))
        self.assertRegex(done.stdout, r"par: (\d+) of \1 cases are right")
        self.assertRegex(done.stdout, r"right: (\d+) of \1 cases are right")
        self.assertEqual(found["gpu"]["data_sheet"], "H200")
        challenge, = found["challenges"]
        self.assertEqual([s["name"] for s in challenge["subjects"]], ["par", "right"])
        for subject in challenge["subjects"]:
            self.assertTrue(subject["checked"])
            self.assertEqual({c["verdict"] for c in subject["checked"]}, {"OK"})
        case, = challenge["timed"]
        for entrant in [case["naive"], case["par"], *case["answers"].values()]:
            self.assertGreater(entrant["median_s"], 6e-6, "two launches, at 3 us each in the double")
            self.assertLessEqual(entrant["low_s"], entrant["median_s"])
        self.assertEqual(set(case["answers"]), {"par", "right"})
        self.assertGreater(case["par"]["modelled_s"], case["floor_s"])
        self.assertIn(f"{1e6 * case['par']['median_s']:.2f}", done.stdout)

    def test_a_wrong_answer_is_told_and_fails(self):
        right, broken = "sqrtf(row_sum(square, buffers[2]) + eps)", "sqrtf(row_sum(square, buffers[2]))"
        self.assertIn(right, TUNED.read_text())
        wrong = self.answer("wrong", TUNED.read_text().replace(right, broken))
        done, found = self.measure("--no-time", *wrong)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        subjects = {s["name"]: s["checked"] for s in found["challenges"][0]["subjects"]}
        self.assertEqual([c for c in subjects["par"] if c["verdict"] not in ("OK", "NS")], [])
        failed = [c["case"] for c in subjects["wrong"] if c["verdict"] not in ("OK", "NS")]
        self.assertIn("eps_dominant", failed)
        for case in failed:
            self.assertIn(f"WA {case}: ", done.stdout)

    def test_what_does_not_compile_is_told(self):
        broken = self.answer("broken", "__global__ void f() { nonsense }\n")
        done, _ = self.measure("--no-time", "--case", "basic", *broken)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("broken: does not compile", done.stdout)
        self.assertIn("par: 1 of 1 cases are right", done.stdout)

    def test_no_driver(self):
        done = run("--driver", "/no/such/libcuda.so.1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no GPU can be used: no CUDA driver", done.stderr)

    def test_a_library_that_is_no_driver(self):
        done = run("--driver", "libm.so.6")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no GPU can be used: the CUDA driver is too old", done.stderr)
        self.assertIn("the driver runs in a sandbox (", done.stderr)


class Graded(unittest.TestCase):
    """`assay run --device cuda`: its results are separate cells."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-cuda-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.results = cls.folder / "results"
        for model in ("one", "two"):
            folder = cls.folder / "submissions" / model / CHALLENGE
            folder.mkdir(parents=True)
            (folder / "submission.cu").write_text(TUNED.read_text())
        cls.first = cls.assay("run", "--quick", "--seed", "5", "--json")

    @classmethod
    def assay(cls, command, *arguments, driver=DRIVER):
        return subprocess.run(
            [ASSAY, "--root", ROOT, command, *arguments, "--device", "cuda", "--driver", driver,
             "--management", MANAGEMENT, "--submissions", cls.folder / "submissions", "--results", cls.results],
            capture_output=True, text=True, timeout=600)

    def refusal(self, *arguments):
        """What `run` says of these arguments, which it refuses; it stores nothing."""
        results = self.folder / "refused"
        done = subprocess.run(
            [ASSAY, "--root", ROOT, "run", *arguments, "--submissions", self.folder / "submissions", "--results",
             results], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertFalse((results / "scoreboard.json").exists())
        return done.stderr

    def show(self, *arguments):
        return subprocess.run([ASSAY, "--root", ROOT, *arguments, "--results", self.results],
                              capture_output=True, text=True, timeout=600)

    def test_cells_are_graded_by_measured_speeds(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        cells = json.loads(self.first.stdout)["cells"]
        self.assertEqual([(c["model"], c["device"], c["verdict"]) for c in cells],
                         [("one", "cuda", "OK"), ("two", "cuda", "OK")])
        self.assertIn("on Simulated H200, copies at", self.first.stderr)
        shown = self.show("show", "one", CHALLENGE, "--device", "cuda")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("Layer norm backward (cuda)", shown.stdout)
        self.assertIn("Simulated H200, CUDA 13.0", shown.stdout)
        self.assertRegex(shown.stdout, rf"{CASE}.* us ")
        self.assertIn("75.6 MB at", shown.stdout, "the floor at the full size")
        self.assertNotIn("modelled", shown.stdout)
        board = json.loads((self.results / "scoreboard.json").read_text())
        machine, = board["machines"].values()
        self.assertEqual(machine["gpu"]["name"], "Simulated H200")

    def test_what_the_clocks_did_stands_with_a_timed_case(self):
        evidence = json.loads((self.results / f"cells/one/{CHALLENGE}/cuda.json").read_text())
        timed = next(c for c in evidence["cell"]["cases"] if c["name"] == CASE)
        metrics = {m["name"]: m["value"] for m in timed["metrics"]}
        self.assertEqual((metrics["gpu_sm_mhz_low"], metrics["gpu_temperature_c_high"]), (1755, 41))
        self.assertEqual(metrics["gpu_throttled_share"], 0)

    def test_a_stale_cell_waits_for_a_gpu(self):
        results = self.folder / "stale"
        shutil.copytree(self.results, results)
        board = json.loads((results / "scoreboard.json").read_text())
        board["entries"][0]["cell"]["spec_hash"] = "0"
        (results / "scoreboard.json").write_text(json.dumps(board))
        done = subprocess.run(
            [ASSAY, "--root", ROOT, "run", "--stale", "--submissions", self.folder / "submissions", "--results",
             results], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 stale results of a real GPU stay as they are: --device cuda measures them", done.stderr)
        self.assertIn("nothing to measure again", done.stdout)

    def test_a_case_is_replayed(self):
        done = self.assay("rerun", "two", CHALLENGE, "--case", CASE, "--seed", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{CASE} (timed): OK", done.stdout)
        self.assertRegex(done.stdout, r"ms +naive +[\d.]+ +par +[\d.]+ +submission +[\d.]+")

    def test_one_answer_is_graded_wherever_it_lies(self):
        answer = self.folder / "submissions" / "one" / CHALLENGE / "submission.cu"
        done = subprocess.run(
            [ASSAY, "--root", ROOT, "grade", answer, "-c", CHALLENGE, "--device", "cuda", "--driver", DRIVER,
             "--management", MANAGEMENT, "--quick", "--seed", "5", "--json"],
            capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        grade = json.loads(done.stdout)
        self.assertEqual((grade["device"], grade["verdict"], grade["modelled_on"]), ("cuda", "OK", None))
        self.assertEqual(grade["machine"]["gpu"], "Simulated H200")
        stages = {s["name"]: s["status"] for s in grade["stages"]}
        self.assertEqual((stages["all"], stages["findings"], stages["time"]), ("passed", "not_run", "passed"))
        self.assertIsNotNone(grade["log_speed_over_par"])

    def test_several_gpus_measure_side_by_side(self):
        # The first answer goes alone; then the GPUs get an answer each, for those are to different challenges.
        submissions, results = self.folder / "three", self.folder / "of_two_gpus"
        other = "fused_softmax_topk"
        for model, challenge in (("one", CHALLENGE), ("two", CHALLENGE), ("two", other)):
            answer = submissions / model / challenge / "submission.cu"
            answer.parent.mkdir(parents=True)
            answer.write_text((ROOT / "submissions" / "tuned" / challenge / "submission.cu").read_text())
        done = subprocess.run(
            [ASSAY, "--root", ROOT, "run", "--device", "cuda", "--driver", DRIVER, "--management", MANAGEMENT,
             "--gpus", "0,1", "--quick", "--seed", "5", "--submissions", submissions, "--results", results],
            capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        for bus in ("0000:3b:00.0", "0000:5e:00.0"):
            self.assertIn(f"on Simulated H200 at {bus}, copies at", done.stderr)
        board = json.loads((results / "scoreboard.json").read_text())
        entries = {(e["cell"]["model"], e["cell"]["challenge"]): e for e in board["entries"]}
        self.assertEqual({e["score"]["verdict"] for e in entries.values()}, {"OK"})
        measured_on = {key: board["machines"][e["machine"]]["gpu"]["pci_bus_id"] for key, e in entries.items()}
        self.assertEqual(measured_on, {("one", CHALLENGE): "0000:3b:00.0", ("two", other): "0000:3b:00.0",
                                       ("two", CHALLENGE): "0000:5e:00.0"})

    def test_the_gpu_that_the_environment_leaves_visible_is_used(self):
        answer = self.folder / "submissions" / "one" / CHALLENGE / "submission.cu"
        command = [ASSAY, "--root", ROOT, "grade", answer, "-c", CHALLENGE, "--device", "cuda", "--driver", DRIVER,
                   "--management", MANAGEMENT, "--stages", "build,core", "--json"]

        def graded(*arguments, **environment):
            return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600,
                                  env={**os.environ, **environment})

        done = graded(CUDA_VISIBLE_DEVICES="2,0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["machine"]["gpu"], "Simulated H100")
        done = graded(CUDA_VISIBLE_DEVICES="7")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no GPU '7' can be used", done.stderr)
        done = graded("--gpus", "0,1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--gpus 0,1 names several GPUs: this command uses one", done.stderr)

    def test_gpus_of_different_kinds_are_refused(self):
        self.assertIn(
            "'0' is Simulated H200 and '2' is Simulated H100. Results of different GPUs are never compared",
            self.refusal("--device", "cuda", "--driver", DRIVER, "--gpus", "0,2"))

    def test_gpus_are_for_the_real_device_alone(self):
        self.assertIn("--gpus names real GPUs, which only --device cuda measures on",
                      self.refusal("--device", "sim", "--gpus", "0"))

    def test_without_a_gpu_nothing_is_stored(self):
        self.assertIn("no GPU can be used: no CUDA driver",
                      self.refusal("--device", "cuda", "--driver", "/no/such/libcuda.so.1"))


if __name__ == "__main__":
    if run("--driver", DRIVER, "-c", CHALLENGE, "--no-time", "--case", "basic").stderr.find(
            "no CUDA Toolkit") >= 0:
        print("skipped: no nvcc")
        sys.exit(77)
    unittest.main()
