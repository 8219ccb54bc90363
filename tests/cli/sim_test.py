"""`assay sim` from outside: CUDA programs, their output, exit status, counters and findings.

Usage: sim_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library. What needs NVIDIA's compiler is
skipped without it; the rest compiles a program that was made by hand with g++.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAMS = ROOT / "tests" / "sim" / "runtime" / "programs"


def find_nvcc():
    for folder in [*os.environ.get("PATH", "").split(":"), os.environ.get("CUDA_HOME", "") + "/bin", "/usr/local/cuda/bin"]:
        path = pathlib.Path(folder) / "nvcc"
        if folder and os.access(path, os.X_OK):
            release = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            return path if "release 13." in release else None
    return None


NVCC = find_nvcc()

# Stands in for nvcc: C++ without CUDA. What it was asked for stands in a file beside it.
GCC_AS_NVCC = """#!{python}
import pathlib, subprocess, sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release {release}, V{release}.1")
    sys.exit(0)
with open(sys.argv[0] + ".log", "a") as log:
    print(*sys.argv[1:], file=log)
output = sys.argv[sys.argv.index("-o") + 1]
options = [a for a in sys.argv if a in ("-c", "-MD", "-shared") or a.startswith(("-D", "-I", "-W"))]
inputs = [a for a in sys.argv[1:] if a != output and pathlib.Path(a).suffix in (".cpp", ".cu", ".o")]
sys.exit(subprocess.run(["g++", "-std=c++20", "-fPIC", *options, "-o", output, *inputs]).returncode)
"""


class Run:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


class Case(unittest.TestCase):
    release, timeout = "13.0", 120

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-sim-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.bin, cls.options = cls.compiler_for_all()

    @classmethod
    def compiler_for_all(cls):
        """A folder with an nvcc, and options. What the one that stands in compiles is kept apart."""
        place = tempfile.TemporaryDirectory(prefix="assay-sim-test-nvcc-")
        cls.addClassCleanup(place.cleanup)
        nvcc = pathlib.Path(place.name) / "nvcc"
        nvcc.write_text(GCC_AS_NVCC.format(python=sys.executable, release=cls.release))
        nvcc.chmod(0o755)
        return nvcc.parent, ["--cache", nvcc.parent / "cache"]

    def sim(self, *args):
        env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}", TMPDIR=str(self.folder))
        done = subprocess.run([ASSAY, "--root", ROOT, "sim", *map(str, [*self.options, *args])], capture_output=True,
                              text=True, timeout=self.timeout, env=env)
        run = Run(done)
        run.description = f"{args}\nstatus {run.status}\n{run.out}\n{run.err}"
        return run

    def assertRun(self, run, status, out=None):
        self.assertEqual(run.status, status, run.description)
        if out is not None:
            self.assertEqual(run.out, out, run.description)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


class Handmade(Case):
    """A program that registers its own PTX and needs no CUDA Toolkit."""

    def run_with(self, *arguments, options=()):
        return self.sim(*options, PROGRAMS / "handmade.cpp", "--", *arguments)

    def test_a_kernel_runs_and_is_counted(self):
        run = self.run_with("", "an argument", "--json", "--", "-x")
        self.assertRun(run, 0, "cudaSuccess cudaSuccess cudaSuccess 3 297\n[an argument]\n[--json]\n[--]\n[-x]\n")
        self.assertIn("triple", run.err)
        self.assertIn("no findings", run.err)

    def test_a_profile(self):
        self.assertNotIn("modelled us", self.run_with().err)
        run = self.run_with(options=["--profile"])
        self.assertRun(run, 0)
        self.assertIn("modelled on H200, not measured\n", run.err)
        # 400 bytes in 13 sectors, and nothing costs as much as the launch.
        self.assertRegex(run.err, r"triple .* launches and copies +96\.2% ")
        self.assertRegex(run.err, r"triple .* 32 by blocks\n")
        [kernel] = self.run_with(options=["--json"]).json()["kernels"]
        self.assertNotIn("modelled", kernel)
        self.assertEqual(kernel["residency"], {"warps": 32, "most": 64, "limit": "blocks"})
        for name in ("h200", "a100"):
            sheet = json.loads((ROOT / "gpus" / f"{name}.json").read_text())
            [kernel] = self.run_with(options=["--json", "--profile", "--gpu", name]).json()["kernels"]
            modelled = kernel["modelled"]
            self.assertEqual((modelled["gpu"], modelled["bound"]), (sheet["name"], "launches and copies"))
            self.assertGreater(modelled["seconds"], sheet["launch_s"])
            self.assertLess(modelled["seconds"], 1.1 * sheet["launch_s"])

    def test_json_goes_to_stdout_and_the_program_to_stderr(self):
        run = self.run_with(options=["--json"])
        self.assertRun(run, 0)
        self.assertIn("cudaSuccess cudaSuccess cudaSuccess 3 297\n", run.err)
        report = run.json()
        self.assertEqual(report["program"], {"exit_status": 0})
        [kernel] = report["kernels"]
        self.assertEqual((kernel["name"], kernel["launches"]), ("triple", 1))
        counters = kernel["counters"]
        self.assertEqual(counters["global_store_bytes"], 400)
        self.assertEqual(counters["global_store_sectors"], 13)  # 12.5 of 32 bytes
        self.assertEqual(counters["global_load_bytes"], 0)
        self.assertEqual(counters["warps"], 4)

    def test_results_do_not_depend_on_threads_or_order(self):
        reports = [self.run_with(options=["--json", *o]).json()["kernels"]
                   for o in ([], ["--threads", 1], ["--threads", 3], ["--seed", 5])]
        for report in reports:
            self.assertEqual(report, reports[0])

    def test_a_finding_gives_status_3(self):
        run = self.run_with("bounds")
        self.assertRun(run, 3)
        self.assertIn("cudaErrorIllegalAddress", run.out)
        self.assertIn("1 finding:", run.err)
        [finding] = self.run_with("bounds", options=["--json"]).json()["findings"]
        self.assertEqual((finding["block"], finding["thread"]), ([3, 0, 0], [4, 0, 0]))

    def test_the_program_s_own_status(self):
        self.assertRun(self.run_with("status"), 41)

    def test_host_access_to_device_memory_ends_the_program(self):
        run = self.run_with("host")
        self.assertRun(run, 128 + 11)
        self.assertIn("host code accessed device memory at 0x00002", run.err)
        self.assertIn("ended by signal 11", run.err)

    def test_what_is_not_simulated_is_named(self):
        run = self.run_with("shared")
        self.assertRun(run, 2, "cudaErrorNotSupported\n")
        self.assertIn("not supported by the simulator: cudaIpcGetMemHandle", run.err)


class Programs(Case):
    """What happens around the simulation."""

    def test_what_cannot_be_loaded_is_explained(self):
        needs = self.write("needs.cpp", 'extern "C" int cublasCreate_v2(void**);\nint main() { return cublasCreate_v2(nullptr); }\n')
        run = self.sim(needs)
        self.assertRun(run, 2)
        self.assertIn("the program needs cublasCreate_v2", run.err)
        run = self.sim(self.write("empty.cpp", "int x;\n"))
        self.assertRun(run, 2)
        self.assertIn("no main", run.err)

    def test_a_program_without_kernels(self):
        run = self.sim(self.write("plain.cpp", "#include <cstdio>\nint main() { std::puts(\"hello\"); }\n"))
        self.assertRun(run, 0, "hello\n")
        self.assertIn("no kernel ran", run.err)

    def test_sources_that_cannot_be_used(self):
        for name, words in (("kernel.ptx", "no host program"), ("x.txt", "not a source file"), ("gone.cu", "no such file")):
            if name != "gone.cu":
                self.write(name, "")
            run = self.sim(self.folder / name)
            self.assertRun(run, 2, "")
            self.assertIn(name, run.err)
            self.assertIn(words, run.err)

    def test_a_program_that_does_not_compile(self):
        run = self.sim(self.write("wrong.cpp", "int main( { }\n"))
        self.assertRun(run, 2, "")
        self.assertIn("nvcc could not compile", run.err)
        self.assertIn("wrong.cpp:1", run.err)  # the compiler's own message

    def test_nothing_is_left_behind(self):
        before = set(self.folder.iterdir())
        self.assertRun(self.sim(PROGRAMS / "handmade.cpp"), 0)
        self.assertEqual(set(self.folder.iterdir()), before)

    def test_usage(self):
        self.assertRun(self.sim(), 2)
        self.assertRun(self.sim("--arch", "sm_70", "x.cu"), 2)
        run = self.sim("--help")
        self.assertRun(run, 0)
        for word in ("--nvcc-flag", "Exit status", "cudaEventElapsedTime"):
            self.assertIn(word, run.out)


class Kept(Case):
    """What was compiled is not compiled again."""

    def setUp(self):
        self.log = self.bin / "nvcc.log"
        self.log.unlink(missing_ok=True)

    def compiled(self, *args, status):
        """The sources that were compiled for a run of the program, by name."""
        before = len(self.log.read_text().splitlines()) if self.log.exists() else 0
        self.assertRun(self.sim(*args), status)
        lines = [line.split() for line in self.log.read_text().splitlines()[before:]]
        return [pathlib.Path(word).name for words in lines if "-c" in words for word in words if word.endswith(".cpp")]

    def test_until_a_file_or_an_option_changes(self):
        self.write("answer.h", "const int answer = ANSWER;\n")
        main = self.write("main.cpp", "int part(); int main() { return part(); }\n")
        part = self.write("part.cpp", '#include "answer.h"\nint part() { return answer; }\n')
        program = ["--nvcc-flag=-DANSWER=7", main, part]
        self.assertEqual(self.compiled(*program, status=7), ["main.cpp", "part.cpp"])
        self.assertEqual(self.compiled(*program, status=7), [])
        self.assertEqual(self.compiled("--seed", 3, *program, status=7), [])
        self.write("answer.h", "const int answer = ANSWER + 1;\n")
        self.assertEqual(self.compiled(*program, status=8), ["part.cpp"])
        self.assertEqual(self.compiled(*program, status=8), [])
        self.assertEqual(self.compiled("--nvcc-flag=-DANSWER=9", main, part, status=10), ["main.cpp", "part.cpp"])
        self.write("answer.h", "const int answer = ANSWER;\n")  # as at first
        self.assertEqual(self.compiled(*program, status=7), ["part.cpp"])

    def test_as_the_user_says(self):
        main = self.write("main.cpp", "int main() { return 3; }\n")
        self.compiled(main, status=3)
        self.assertRegex(self.log.read_text(), r"-std=c\+\+17 -O3 ")
        self.log.unlink()
        self.compiled("--nvcc-flag=-std=c++20", "--nvcc-flag=-O1", main, status=3)
        self.assertNotRegex(self.log.read_text(), r"-std=c\+\+17|-O3")

    def test_what_warns_warns_again(self):
        warns = self.write("warns.cpp", "int main() { int unused; return 3; }\n")
        for _ in range(2):
            self.assertEqual(self.compiled("--nvcc-flag=-Wall", warns, status=3), ["warns.cpp"])
        self.assertIn("unused variable", self.sim("--nvcc-flag=-Wall", warns).err)

    def test_not_where_the_folder_is_another(self):
        plain = self.write("plain.cpp", "int main() { return 4; }\n")
        self.assertEqual(self.compiled(plain, status=4), ["plain.cpp"])
        self.options = ["--cache", self.bin / "other"]
        self.assertEqual(self.compiled(plain, status=4), ["plain.cpp"])


class OldCompiler(Case):
    release = "12.4"

    def test_is_refused(self):
        run = self.sim(PROGRAMS / "handmade.cpp")
        self.assertRun(run, 2, "")
        self.assertIn("is of release 12.4", run.err)
        self.assertIn("cuda-nvcc-13-0", run.err)


class NoCompiler(unittest.TestCase):
    def test_says_how_to_get_one(self):
        done = subprocess.run([ASSAY, "--root", ROOT, "sim", PROGRAMS / "basics.cu"], capture_output=True, text=True,
                              env={**os.environ, "ASSAY_NVCC": ""})
        self.assertEqual(done.returncode, 2)
        self.assertIn("no nvcc in PATH", done.stderr)


class WithNvcc(Case):
    """Programs that nvcc compiles once, for all runs of the tests: they are kept where assay keeps what it compiles."""

    @classmethod
    def compiler_for_all(cls):
        return NVCC.parent, []


@unittest.skipUnless(NVCC, "no nvcc of release 13: the CUDA programs are not run")
class Cuda(WithNvcc):
    def kernel(self, report, part):
        [found] = [k for k in report["kernels"] if part in k["name"]]
        return found

    def test_basics(self):
        run = self.sim(PROGRAMS / "basics.cu")
        self.assertRun(run, 0)
        self.assertNotIn("WRONG", run.out)
        self.assertEqual(run.out.count(" good\n"), 13, run.description)
        self.assertTrue(run.out.endswith("before the kernel's output\nthread 0 of 4 says 12.35%\nthread 2 of 4 says 12.35%\n"),
                        run.description)
        self.assertIn("no findings", run.err)

    def test_counters(self):
        report = self.sim("--json", PROGRAMS / "basics.cu").json()
        add = self.kernel(report, "add(")
        self.assertEqual(add["name"], "add(float const*, float const*, float*, int)")
        self.assertEqual(add["launches"], 1)
        self.assertEqual(add["counters"]["global_load_bytes"], 8000)
        self.assertEqual(add["counters"]["global_load_sectors"], 250)
        self.assertEqual(add["counters"]["global_store_bytes"], 4000)
        self.assertEqual(add["counters"]["global_store_sectors"], 125)
        self.assertEqual(add["counters"]["warps"], 32)
        self.assertEqual(add["counters"]["fp32_flops"], 1000)
        self.assertIn("(anonymous namespace)::use_symbols(int*)", [k["name"] for k in report["kernels"]])
        self.assertEqual(self.kernel(report, "increment")["launches"], 2)

    def test_bank_conflicts_by_line(self):
        source = self.write("columns.cu", """
__global__ void columns(int* out) {
  __shared__ int tile[32 * 33];
  tile[threadIdx.x * 32] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[0];
  __syncthreads();
  tile[threadIdx.x * 33] = 2;
  __syncthreads();
  out[threadIdx.x] += tile[threadIdx.x / 16 * 32];
}
int main() {
  int* out;
  cudaMalloc(&out, 128);
  columns<<<1, 32>>>(out);
  columns<<<1, 32>>>(out);
  return cudaDeviceSynchronize();
}
""")
        run = self.sim(source)
        self.assertRun(run, 0)
        self.assertRegex(run.err, r"bank conflicts at +replays +of its passes +kernel\n")
        self.assertRegex(run.err, r"columns\.cu:4 +62 +\d\d\.\d% +columns\(int\*\)\n")
        [kernel] = self.sim("--json", source).json()["kernels"]
        self.assertEqual(kernel["replays"], [{"where": "columns.cu:4", "replays": 62},
                                             {"where": "columns.cu:10", "replays": 2}])
        self.assertEqual(kernel["counters"]["shared_replays"], 64)
        self.assertNotIn("lines", kernel)
        run = self.sim("--source", source)
        self.assertRun(run, 0)
        self.assertIn(f"\n{source}\n  instructions  share  lanes   replays   line\n", run.err)
        self.assertRegex(run.err, r"\n +\d+ +\d+\.\d% 100\.0% +62 +4    tile\[threadIdx\.x \* 32\] = 1;\n")
        self.assertRegex(run.err, r"\n +12  int main\(\) {\n", "a line near one that was counted")
        [kernel] = self.sim("--source", "--json", source).json()["kernels"]
        counters = kernel["counters"]
        for name in ("instructions", "active_lanes", "shared_replays"):
            self.assertEqual(sum(line[name] for line in kernel["lines"]), counters[name], name)
        fourth = [line for line in kernel["lines"] if (line["file"], line["line"]) == (str(source), 4)]
        self.assertEqual(sum(line["shared_replays"] for line in fourth), 62)
        run = self.sim(PROGRAMS / "two_files.cu", PROGRAMS / "two_files_kernel.cu")
        self.assertNotIn("bank conflicts", run.err)

    def test_basics_for_sm_90(self):
        run = self.sim("--arch", "sm_90", PROGRAMS / "basics.cu")
        self.assertRun(run, 0)
        self.assertEqual(run.out.count(" good\n"), 13, run.description)

    def test_cooperative_groups(self):
        run = self.sim(PROGRAMS / "cooperative.cu")
        self.assertRun(run, 0, "cudaSuccess good\n" * 3 + "cudaErrorCooperativeLaunchTooLarge\n")
        self.assertIn("no findings", run.err)

    def test_cub_and_pipelines(self):
        run = self.sim(PROGRAMS / "libraries.cu")
        if "cub/cub.cuh: No such file" in run.err:
            self.skipTest("this toolkit comes without CUB and libcu++")
        self.assertRun(run, 0, "good\n" * 5)

    def test_what_is_not_supported_is_refused_when_it_is_launched(self):
        run = self.sim("--arch", "sm_90", PROGRAMS / "lazy.cu")
        self.assertRun(run, 0, "cudaSuccess 32 6 64 104\n")
        run = self.sim("--arch", "sm_90", PROGRAMS / "lazy.cu", "--", "launch")
        self.assertRun(run, 2, "cudaSuccess 32 6 64 104\ncudaErrorNotSupported\n")
        self.assertIn("stacksave.u64 is not supported, in kernel void later<3>(float*) (lazy.cu:", run.err)

    def test_several_files_with_kernels_of_one_name(self):
        run = self.sim(PROGRAMS / "two_files.cu", PROGRAMS / "two_files_kernel.cu")
        self.assertRun(run, 0, "42 100\n")

    def line_of(self, text):
        lines = (PROGRAMS / "faults.cu").read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if text in line)

    def fault(self, name, error, kind, *words):
        run = self.sim(PROGRAMS / "faults.cu", "--", name)
        self.assertRun(run, 3, f"{error} {error} {error}\n")
        for word in (kind, "faults.cu", *words):
            self.assertIn(word, run.err, run.description)
        report = self.sim("--json", PROGRAMS / "faults.cu", "--", name).json()
        self.assertEqual(len(report["findings"]), 1, report)
        return report["findings"][0]

    def test_out_of_bounds(self):
        line = self.line_of("void store")
        finding = self.fault("bounds", "cudaErrorIllegalAddress", "store(int*, int)", f"faults.cu:{line}")
        self.assertEqual((finding["block"], finding["thread"]), ([0, 0, 0], [0, 0, 0]))

    def test_use_after_free(self):
        self.fault("freed", "cudaErrorIllegalAddress", "free")

    def test_misaligned(self):
        self.fault("misaligned", "cudaErrorMisalignedAddress", "align")

    def test_assert(self):
        self.fault("assert", "cudaErrorAssert", "assertion `threadIdx.x < limit` failed")

    def test_trap(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "trap")
        self.assertRun(run, 3)
        self.assertIn("trap", run.err)

    def test_races_are_found_and_the_kernel_goes_on(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "race")
        self.assertRun(run, 3, "cudaSuccess cudaSuccess cudaSuccess\n")
        self.assertIn(f"faults.cu:{self.line_of('slots[threadIdx.x] = threadIdx')}", run.err)
        self.assertIn(f"faults.cu:{self.line_of('slots[63 -')}", run.err)
        run = self.sim("--no-races", PROGRAMS / "faults.cu", "--", "race")
        self.assertRun(run, 0)

    def test_what_nothing_has_written_decides(self):
        line = self.line_of("if (p[threadIdx.x] > 3)")
        finding = self.fault("undefined", "cudaSuccess", "uninitialised read", f"faults.cu:{line}")
        self.assertIn("decides where to go on", finding["text"])

    def test_equal_stores_are_a_note(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "equal")
        self.assertRun(run, 0, "cudaSuccess cudaSuccess cudaSuccess\n")
        self.assertIn("note: ", run.err)
        self.assertIn("no findings", run.err)

    def streams(self, what, status, out=""):
        run = self.sim(PROGRAMS / "streams.cu", "--", what)
        self.assertRun(run, status, out)
        return run

    def place_in_streams(self, text):
        lines = (PROGRAMS / "streams.cu").read_text().splitlines()
        return f"streams.cu:{next(i for i, line in enumerate(lines, 1) if text in line)}"

    def test_a_race_between_streams_names_both_kernels_and_lines(self):
        run = self.streams("nothing", 3)
        self.assertIn("race between streams", run.err)
        self.assertIn(f"consume(int const*, int*): {self.place_in_streams('// consume')}: reads 16384 bytes", run.err)
        self.assertIn(f"produce(int*, int, int) writes them in stream 4 at {self.place_in_streams('// produce')}", run.err)
        self.assertEqual(run.err.count("race between streams"), 1, run.err)

    def test_what_streams_and_events_order_is_no_race(self):
        for what in ("event", "default, blocking", "readers", "halves", "interleaved", "overwritten after waiting"):
            self.assertIn("no findings", self.streams(what, 0).err)

    def test_what_they_do_not_order_is_one(self):
        for what, words in (("default, non-blocking", "in the default stream"), ("copy", "cudaMemcpyAsync: the host: reads"),
                            ("free", "cudaFreeAsync: the host: writes"), ("overwritten", "before the host waited")):
            self.assertIn(words, self.streams(what, 3).err)

    def test_page_locked_memory_changes_when_the_host_has_waited(self):
        self.streams("early", 0, "0\n")
        self.streams("waited", 0, "4095\n")

    def graphs(self, what, status, out):
        run = self.sim(PROGRAMS / "graphs.cu", "--", what)
        self.assertRun(run, status, out)
        return run

    def test_graphs(self):
        # Starting from 1 and 1: three times p = 2 p + 2 q and q = 2 q, then once with 3.
        self.assertIn("no findings", self.graphs("captured", 0, "120\n").err)
        self.assertIn("no findings", self.graphs("nodes", 0, "15\n").err)

    def test_what_kernels_of_graphs_do_is_counted(self):
        report = self.sim("--json", PROGRAMS / "graphs.cu", "--", "captured").json()
        scale = self.kernel(report, "scale")
        self.assertEqual((scale["launches"], self.kernel(report, "add")["launches"]), (8, 4))

    def test_branches_of_a_graph_race(self):
        run = self.graphs("race", 3, None)
        self.assertIn("race between streams", run.err)
        self.assertIn("branch 2 of a graph", run.err)
        line = next(i for i, l in enumerate((PROGRAMS / "graphs.cu").read_text().splitlines(), 1) if "// scale" in l)
        self.assertIn(f"graphs.cu:{line}", run.err)

    def test_a_fault_in_a_graph(self):
        run = self.graphs("fault", 3, "cudaErrorIllegalAddress\n")
        self.assertIn("beyond(int*)", run.err)

    def test_a_host_dereference_dies_by_sigsegv(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "host")
        self.assertRun(run, 139, "about to\n")
        self.assertIn("host code accessed device memory", run.err)

    def test_memory_for_other_processes_is_refused_by_name(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "shared")
        self.assertRun(run, 2, "cudaErrorNotSupported\n")
        self.assertIn("cudaIpcGetMemHandle", run.err)

    def test_mapped_memory(self):
        run = self.sim(PROGRAMS / "mapped.cu")
        self.assertRun(run, 0, "1 2 3 4\n6 7 8 9\n10 20\n")
        self.assertIn("no findings", run.err)

    def test_the_host_that_writes_mapped_memory_too_early(self):
        run = self.sim(PROGRAMS / "mapped.cu", "--", "early")
        self.assertRun(run, 3)
        self.assertIn("race between streams", run.err)
        self.assertIn("the host", run.err)

    def test_textures(self):
        run = self.sim(PROGRAMS / "textures.cu")
        self.assertRun(run, 0, "".join(f"{what}: 0 wrong\n" for what in
                                       ("linear memory", "interpolated", "colours", "three dimensions")))
        self.assertIn("no findings", run.err)

    def test_bulk_copies(self):
        arguments = "--arch", "sm_90", PROGRAMS / "bulk.cu"
        run = self.sim(*arguments)
        self.assertRun(run, 0, "0 and 0 wrong\n")
        self.assertIn("no findings", run.err)
        early = self.sim(*arguments, "--", "early")
        self.assertRegex(early.out, r"^0 and [1-9]\d* wrong\n$")

    def test_bulk_copies_within_a_cluster(self):
        run = self.sim("--arch", "sm_90", PROGRAMS / "bulk_cluster.cu")
        self.assertRun(run, 0, "0 and 0 wrong, cudaSuccess\n")
        self.assertIn("no findings", run.err)

    def test_copies_of_tensors(self):
        run = self.sim("--arch", "sm_90", PROGRAMS / "tensor_map.cu")
        self.assertRun(run, 0, "0, 0 and 0 wrong, cudaSuccess\n")
        self.assertIn("no findings", run.err)

    def test_products_of_warpgroups(self):
        arguments = "--arch", "sm_90a", PROGRAMS / "wgmma.cu"
        run = self.sim(*arguments)
        self.assertRun(run, 0, "0 wrong, cudaSuccess\n")
        self.assertIn("no findings", run.err)
        early = self.sim(*arguments, "--", "early")
        self.assertRun(early, 3)
        self.assertIn("race in shared memory", early.err)

    def test_clusters(self):
        arguments = "--arch", "sm_90", PROGRAMS / "cluster.cu"
        run = self.sim(*arguments)
        self.assertRun(run, 0, "cudaSuccess, fits, right\nright\ncudaErrorInvalidClusterSize\n")
        self.assertIn("no findings", run.err)
        end = self.sim(*arguments, "--", "end")
        self.assertRun(end, 3)
        self.assertIn("which may have ended by then", end.err)

    def test_relocatable_device_code(self):
        files = PROGRAMS / "relocatable.cu", PROGRAMS / "relocatable_part.cu"
        run = self.sim("--nvcc-flag=-rdc=true", *files)
        self.assertRun(run, 0, "0 wrong, 32 calls\n")
        self.assertIn("no findings", run.err)
        lacks = self.sim("--nvcc-flag=-rdc=true", files[0])
        self.assertRun(lacks, 2)
        self.assertRegex(lacks.err, "the program needs _Z[a-z0-9_]+, which none of its files defines")

    def test_pools_that_the_program_creates(self):
        run = self.sim(PROGRAMS / "pools.cu")
        self.assertRun(run, 0, "1 2 3\n16 0 16\ncudaErrorMemoryAllocation\n")
        self.assertIn("no findings", run.err)

    def test_managed_memory(self):
        run = self.sim(PROGRAMS / "managed.cu")
        self.assertRun(run, 0, "10 11 12 13\n0 2 4 6\n7 8\n21\n1\n")
        self.assertIn("no findings", run.err)

    def test_the_host_that_writes_managed_memory_too_early(self):
        run = self.sim(PROGRAMS / "managed.cu", "--", "early")
        self.assertRun(run, 3)
        self.assertIn("race between streams", run.err)
        self.assertIn("the host", run.err)

    def test_beyond_managed_memory(self):
        self.assertRun(self.sim(PROGRAMS / "managed.cu", "--", "beyond"), 3, "cudaErrorIllegalAddress\n")

    def test_how_programs_end(self):
        for name, status in (("status", 41), ("exit", 42), ("abort", 128 + 6)):
            self.assertRun(self.sim(PROGRAMS / "faults.cu", "--", name), status, "")

    def test_lost_printf_is_noted(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "lost")
        self.assertRun(run, 0, "")
        self.assertIn("9 bytes of kernel printf were lost", run.err)

    def test_arguments_and_streams(self):
        run = self.sim(PROGRAMS / "faults.cu", "--", "arguments", "a b", "--seed", "")
        self.assertRun(run, 0, "[a b]\n[--seed]\n[]\n")
        self.assertIn("on stderr\n", run.err)

    def test_nvcc_flags_and_messages(self):
        source = self.write("flag.cu", "#ifndef VALUE\n#error VALUE is missing\n#endif\nint main() { return VALUE; }\n")
        run = self.sim(source)
        self.assertRun(run, 2)
        self.assertIn("VALUE is missing", run.err)
        self.assertRun(self.sim("--nvcc-flag=-DVALUE=5", "--nvcc-flag", "-DOTHER", source), 5)

    def test_the_interface_is_nvidia_s(self):
        """Checks api.h and abi.h against NVIDIA's headers."""
        # Uses nvcc, which knows where its headers are: the nvcc found may be only a link or a script, with no headers
        # beside it.
        done = subprocess.run([NVCC, "-x", "c++", "-std=c++20", "-w", f"-I{ROOT}/src", "-c", "-o", os.devnull,
                               ROOT / "tests" / "sim" / "runtime" / "abi_check.cpp"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if not NVCC and sys.argv[1:] == ["Cuda"]:  # as ctest runs it
        print("no nvcc of release 13: skipped")
        sys.exit(77)
    unittest.main()
