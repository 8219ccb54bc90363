"""scripts/gallery.py: what it says became of each program of a list.

Usage: gallery_test.py ASSAY ROOT [unittest arguments]. A stand-in for assay prints what `assay sim` would; one test uses
the real program, and is skipped without NVIDIA's compiler.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tests" / "support"))
from processes import adopt_orphans, orphans

GALLERY = ROOT / "scripts" / "gallery.py"
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
LISTS = sorted((ROOT / "scripts" / "gallery").glob("*.json"))

# Prints the report that stands in the first source, and ends with its status; sleeps where there is none. What
# it was asked for stands in a file beside it.
STAND_IN = """#!{python}
import json, pathlib, sys, time
sources = [a for a in sys.argv if a.endswith(".cu")]
said = json.loads(pathlib.Path(sources[0]).read_text())
pathlib.Path(sys.argv[0] + ".arguments").write_text(" ".join(sys.argv[1:]))
print(said.get("output", ""), file=sys.stderr)
if "report" in said:
    print(json.dumps(said["report"]))
if "status" not in said:
    time.sleep(1000)
sys.exit(said["status"])
"""

RACE = """
#include <cstdio>
__global__ void k(int* out) {
  __shared__ int last;
  if (threadIdx.x % 32 == 0) last = threadIdx.x;
  __syncthreads();
  *out = last;
}
int main() { int* p; cudaMalloc(&p, 4); k<<<1, 64>>>(p); return cudaDeviceSynchronize(); }
"""
FINE = """
#include <cstdio>
__global__ void k(int* out) { *out = 7; }
int main() {
  int *p, v = 0;
  cudaMalloc(&p, 4);
  k<<<1, 1>>>(p);
  cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost);
  puts(v == 7 ? "PASSED" : "FAILED");
}
"""


def report(status=0, findings=(), unsupported=(), **program):
    return {"program": program or {"exit_status": status}, "kernels": [], "findings": list(findings),
            "unsupported": list(unsupported), "notes": []}


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="assay-gallery-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.programs = []

    def program(self, folder, text, **fields):
        (self.folder / folder).mkdir()
        (self.folder / folder / "main.cu").write_text(text)
        self.programs.append({"folder": folder, **fields})

    def command(self, *arguments, assay=None, **fields):
        if assay is None:
            assay = self.folder / "stand-in"
            assay.write_text(STAND_IN.format(python=sys.executable))
            assay.chmod(0o755)
        listed = self.folder / "list.json"
        listed.write_text(json.dumps({"commit": "abc", "flags": ["-I{from}/Common"], "programs": self.programs, **fields}))
        return [sys.executable, GALLERY, listed, "--from", self.folder, "--assay", assay, *arguments]

    def gallery(self, *arguments, **options):
        return subprocess.run(self.command(*arguments, **options), capture_output=True, text=True)


class Classes(Case):
    def became(self, said, **fields):
        """(class, why, exit status of the script) of a program of which assay says this."""
        name = f"p{len(self.programs)}"
        self.program(name, json.dumps(said), **fields)
        out = self.folder / "out.json"
        done = self.gallery("--only", name, "--limit", "60" if "status" in said else "1", "--json", out)
        result = json.loads(out.read_text())[0]
        return result["class"], result["why"], done.returncode

    def test_right_needs_its_output_too(self):
        said = {"status": 0, "output": "Result = PASS", "report": report()}
        self.assertEqual(self.became(said), ("right", "", 0))
        self.assertEqual(self.became(said, prints="= PASS$"), ("right", "", 0))
        self.assertEqual(self.became(said, prints="OK"), ("wrong", "it does not print OK", 1))

    def test_findings_name_the_kernel(self):
        race = {"kind": "race", "kernel": "k", "text": "two threads store"}
        said = {"status": 3, "report": report(findings=[race])}
        self.assertEqual(self.became(said), ("finding", "race in k: two threads store", 1))
        self.assertEqual(self.became(said, expect="finding", because="race")[2], 0)
        self.assertEqual(self.became(said, expect="finding", because="bounds")[2], 1)

    def test_refusals_are_named(self):
        self.assertEqual(self.became({"status": 2, "report": report(unsupported=["surfaces"])}),
                         ("refused", "surfaces", 1))
        lacks = {"status": 2, "report": report(not_loaded="the program needs cublasCreate")}
        self.assertEqual(self.became(lacks, expect="refused", because="cublas"),
                         ("refused", "the program needs cublasCreate", 0))

    def test_failures(self):
        self.assertEqual(self.became({"status": 1, "output": "max error 3", "report": report(status=1)}),
                         ("wrong", "exit status 1: max error 3", 1))
        self.assertEqual(self.became({"status": 2, "output": "x\na.cu(3): error: no such type\ny"}),
                         ("no build", "a.cu(3): error: no such type", 1))

    def test_time(self):
        self.assertEqual(self.became({"output": "sleeps"})[:2], ("time", "stopped"))


class Compilation(Case):
    def arguments(self, **fields):
        self.gallery(**fields)
        return (self.folder / "stand-in.arguments").read_text()

    def test_flags_of_the_list_and_of_the_program(self):
        self.program("p", json.dumps({"status": 0, "report": report()}), flags=["-DX=1"], arguments=["--m=2"])
        said = self.arguments()
        self.assertTrue(said.startswith("sim --json"), said)
        self.assertIn(f"--nvcc-flag=-I{self.folder}/Common --nvcc-flag=-DX=1", said)
        self.assertTrue(said.endswith("main.cu -- --m=2"), said)
        self.assertNotIn("--arch", said)

    def test_the_architecture_of_the_list(self):
        self.program("p", json.dumps({"status": 0, "report": report()}))
        self.assertIn("--arch sm_90a", self.arguments(arch="sm_90a"))


class Usage(Case):
    def test_what_is_missing_is_named_before_anything_runs(self):
        self.programs.append({"folder": "gone"})
        done = self.gallery()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"{self.folder / 'gone'}: not there", done.stderr)

    def test_the_list_is_checked(self):
        self.program("p", "{}", expects="right")
        self.assertIn("p: unknown keys expects", self.gallery().stderr)
        self.programs[0] = {"folder": "p", "expect": "refused"}
        self.assertIn("p: because is missing", self.gallery().stderr)

    def test_what_the_list_lacks_is_named(self):
        self.programs.append({"expect": "right"})
        self.assertIn("list.json: program 1: folder is missing", self.gallery().stderr)
        listed = self.folder / "list.json"
        for text, key in (('{"commit": "abc"}', "programs"), ('{"programs": []}', "commit")):
            listed.write_text(text)
            done = subprocess.run([sys.executable, GALLERY, listed, "--commit"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (2, f"gallery: {listed}: {key} is missing\n"))

    def test_only(self):
        self.program("p", "{}")
        done = self.gallery("--only", "q")
        self.assertEqual((done.returncode, done.stderr), (2, "gallery: no program of the list has such a folder\n"))


class Signals(Case):
    def stopped_by(self, number):
        """(exit status, what it printed, the programs that outlive it) when a signal comes while a program runs."""
        self.program(f"p{len(self.programs)}", "{}")  # sleeps
        started = self.folder / "stand-in.arguments"
        started.unlink(missing_ok=True)
        process = subprocess.Popen(self.command("--jobs", "1"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not started.exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(number)
        _, printed = process.communicate()
        return process.returncode, printed, orphans()

    def test_end_the_programs_too(self):
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the second and third with programs that wait
            name = number.name
            self.assertEqual(self.stopped_by(number), (128 + number, f"gallery: stopped by {name}\n", []), name)


class Lists(unittest.TestCase):
    def test_name_a_commit(self):
        self.assertTrue(LISTS)
        for listed in LISTS:
            done = subprocess.run([sys.executable, GALLERY, listed, "--commit"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^[0-9a-f]{40}\n$")


class Real(Case):
    @unittest.skipUnless(NVCC, "nvcc is not installed")
    def test_programs_of_its_own(self):
        self.program("fine", FINE, prints="PASSED")
        self.program("race", RACE, expect="finding", because="race in shared memory in k(int*)")
        done = self.gallery(assay=ASSAY)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 programs: 1 right, 1 finding\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
