"""Submissions in CUDA on the simulated GPU: right, wrong in the ways of GPU code, hostile. Skipped without nvcc.

Usage: cuda_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
CHALLENGE = "layer_norm_backward"

# A warp per row, a thread per column of the sums; statistics in double, 16 bytes per row.
SOURCE = r"""
#include "abi.h"

#include <cuda_runtime.h>

namespace {

constexpr int kBlock = 32;

__device__ double row_sum(double v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

__global__ void forward(ln_params p, const float* x, const float* gamma, const float* beta, float* y,
                        double2* cache) {
  x += blockIdx.x * p.D;
  y += blockIdx.x * p.D;
  double sum = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < p.D; i += kBlock) sum += x[i];
  const double mean = row_sum(sum) / double(p.D);
  for (int64_t i = threadIdx.x; i < p.D; i += kBlock) squares += (x[i] - mean) * (x[i] - mean);
  const double rstd = 1 / sqrt(row_sum(squares) / double(p.D) + double(p.eps));
  for (int64_t i = threadIdx.x; i < p.D; i += kBlock) {
    y[i] = float((x[i] - mean) * rstd * gamma[i] + beta[i]);
  }
  if (threadIdx.x == 0) cache[blockIdx.x] = {mean, rstd};
}

__global__ void rows(ln_params p, const float* dy, const float* x, const float* gamma, const double2* cache,
                     float* dx) {
  const double mean = cache[blockIdx.x].x, rstd = cache[blockIdx.x].y;
  dy += blockIdx.x * p.D;
  x += blockIdx.x * p.D;
  dx += blockIdx.x * p.D;
  double g = 0, gx = 0;
  for (int64_t i = threadIdx.x; i < p.D; i += kBlock) {
    g += double(dy[i]) * gamma[i];
    gx += double(dy[i]) * gamma[i] * ((x[i] - mean) * rstd);
  }
  g = row_sum(g) / double(p.D);
  gx = row_sum(gx) / double(p.D);
  for (int64_t i = threadIdx.x; i < p.D; i += kBlock) {
    dx[i] = float(rstd * (double(dy[i]) * gamma[i] - g - (x[i] - mean) * rstd * gx));
  }
  /*IN_ROWS*/
}

__global__ void columns(ln_params p, const float* dy, const float* x, const double2* cache, float* dgamma,
                        float* dbeta) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= p.D) return;
  double a = 0, b = 0;
  for (int64_t r = 0; r < p.rows; ++r) {
    a += dy[r * p.D + i] * ((x[r * p.D + i] - cache[r].x) * cache[r].y);
    b += dy[r * p.D + i];
  }
  /*IN_COLUMNS*/
  if (dgamma != nullptr) dgamma[i] = float(a);
  if (dbeta != nullptr) dbeta[i] = float(b);
}

double2* aligned(const void* cache) {
  return reinterpret_cast<double2*>((reinterpret_cast<uintptr_t>(cache) + 15) / 16 * 16);
}

bool invalid(const ln_params* p) { return p->rows < 0 || p->D < 0 || !(p->eps >= 0); }

}  // namespace

extern "C" size_t ln_cache_bytes(const ln_params* p) { return 16 * p->rows + 16; }

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  if (invalid(p)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  if (p->rows * p->D == 0) return ASSAY_OK;
  if (x == nullptr || gamma == nullptr || beta == nullptr || y == nullptr) return ASSAY_EINVAL;
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  forward<<<unsigned(p->rows), kBlock, 0, stream>>>(*p, static_cast<const float*>(x), gamma, beta,
                                                    static_cast<float*>(y), aligned(cache));
  return cudaStreamSynchronize(stream) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma, float* dbeta) {
  if (invalid(p)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  if (p->D == 0) return ASSAY_OK;
  if (p->rows > 0 && (x == nullptr || dy == nullptr || gamma == nullptr || cache == nullptr))
    return ASSAY_EINVAL;
  /*IN_HOST*/
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  if (p->rows > 0 && dx != nullptr) {
    rows<<<unsigned(p->rows), kBlock, 0, stream>>>(*p, static_cast<const float*>(dy),
                                                   static_cast<const float*>(x), gamma, aligned(cache),
                                                   static_cast<float*>(dx));
  }
  columns<<<unsigned((p->D + 127) / 128), 128, 0, stream>>>(
      *p, static_cast<const float*>(dy), static_cast<const float*>(x), aligned(cache), dgamma, dbeta);
  return cudaStreamSynchronize(stream) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
"""

# Reads what another warp wrote, without synchronising; the value is not used.
RACE = r"""
  __shared__ float sums[128];
  sums[threadIdx.x] = float(a);
  if (sums[(threadIdx.x + 64) % 128] == 1e30f) a = 0;
"""

# Keeps eighty values live at a time; the sum is not used.
MANY_REGISTERS = r"""
  float kept[80];
#pragma unroll
  for (int k = 0; k < 80; ++k) kept[k] = x[(7 * i + 13 * k) % (p.rows * p.D)];
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int k = 0; k < 80; ++k) kept[k] = kept[k] * kept[(k + 7) % 80] + kept[(k + 3) % 80];
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 80; ++k) sum += kept[k];
  if (sum == 1e30f) a = 0;
"""

TAMPER = r"""
  // The worker's descriptors: 8 the link, 9 its calls, 3 the control page.
  volatile unsigned char* page = (volatile unsigned char*)mmap(0, 4096 + (4 << 20), PROT_READ | PROT_WRITE,
                                                               MAP_SHARED, 8, 0);
  const unsigned long long one = 1;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 512; ++i) page[i] = (unsigned char)(37 * i + 11 * round);
    if (round % 3 == 0) page[0] = round % 15, page[1] = page[2] = page[3] = 0;
    if (write(9, &one, sizeof one) != sizeof one) break;
  }
"""

INCLUDES = "#include <sys/mman.h>\n#include <unistd.h>\n#include <cstdlib>\n"


# A kernel that fetches a box through a tensor map and traps unless every byte is 1; and the host's part.
TENSOR_KERNEL = r"""
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cstdint>
#include <cuda/ptx>

__global__ void box_of_ones(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) unsigned tile[8][16];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    cuda::ptx::mbarrier_init(&full, 1);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &full,
                                         sizeof tile);
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, tile, &map, {0, 0}, &full);
  }
  __syncthreads();
  while (!cuda::ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  for (int i = 0; i < 8; ++i) {
    if (threadIdx.x < 16 && tile[i][threadIdx.x] != 0x01010101u) __trap();
  }
}
"""
TENSOR_HOST = r"""
  void *entry = nullptr, *ones = nullptr;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault) != cudaSuccess ||
      cudaMalloc(&ones, 512) != cudaSuccess)
    return ASSAY_EINTERNAL;
  const cuuint64_t size[] = {16, 8}, stride[] = {64};
  const cuuint32_t box[] = {16, 8}, step[] = {1, 1};
  CUtensorMap map;
  if (((PFN_cuTensorMapEncodeTiled_v12000)entry)(
          &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, ones, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
          CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    return ASSAY_EINTERNAL;
  cudaMemsetAsync(ones, ONES, 512, static_cast<cudaStream_t>(ctx->stream));
  box_of_ones<<<1, 32, 0, static_cast<cudaStream_t>(ctx->stream)>>>(map);
"""


def source(in_rows="", in_columns="", in_host=""):
    text = SOURCE.replace("/*IN_ROWS*/", in_rows).replace("/*IN_COLUMNS*/", in_columns)
    return INCLUDES + text.replace("/*IN_HOST*/", in_host)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-cuda-"))
        self.submissions = self.folder / "submissions"
        self.results = self.folder / "results"

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def submit(self, model, text, name="submission.cu"):
        path = self.submissions / model / CHALLENGE
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)

    def assay(self, *args, expect=0, env=None):
        done = subprocess.run([ASSAY, "--root", ROOT, *map(str, args)], capture_output=True, text=True,
                              timeout=600, env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def run_all(self, *args, **kwargs):
        return self.assay("run", "--submissions", self.submissions, "--results", self.results, *args, **kwargs)

    def replay(self, case, *args, **kwargs):
        """Replays one case of the model 'm' and returns the output."""
        return self.assay("rerun", "m", CHALLENGE, "--case", case, "--seed", 5, "--submissions",
                          self.submissions, *args, **kwargs)

    @staticmethod
    def metrics(replayed):
        """The metrics of a replayed case, by name."""
        return {name: float(value) for name, value in re.findall(r"metric    (\w+) = (\S+)", replayed)}

    def cells(self):
        """The evidence of every cell on the board."""
        board = json.loads((self.results / "scoreboard.json").read_text())
        evidence = [json.loads((self.results / e["evidence"]["path"]).read_text()) for e in board["entries"]]
        return {(e["cell"]["model"], e["cell"]["device"]): e for e in evidence}


class GoodSubmission(Case):
    replayed = {}

    def replay_of_right(self, case):
        """What replaying the case prints for the right answer, which is then submitted."""
        self.submit("m", source())
        if case not in self.replayed:
            self.replayed[case] = self.replay(case)
        return self.replayed[case]

    def test_every_case_passes_and_leaves_its_counters(self):
        self.submit("m", source())
        self.run_all("--seed", 5)
        entry = self.cells()["m", "sim"]
        cases = {c["name"]: c for c in entry["cell"]["cases"]}
        wrong = {n: (c["verdict"], c.get("detail")) for n, c in cases.items() if c["verdict"] not in ("OK", "NS")}
        self.assertEqual(wrong, {})
        self.assertEqual(cases["bf16_basic"]["verdict"], "NS")
        timed = [c for c in cases.values() if c["group"] == "timed"]
        self.assertTrue(timed)
        for case in timed:
            metrics = {m["name"]: m["value"] for m in case["metrics"]}
            self.assertNotIn("samples", case)
            self.assertEqual(metrics["sim_launches"], 2)
            self.assertGreater(metrics["sim_global_load_bytes"], 0)
            self.assertEqual(metrics["sim_to_host_bytes"], 0)
            self.assertEqual(metrics["sim_device_bytes"], 0)
        self.assertEqual(entry["cell"]["tests_note"]["kind"], "no_tests")

    def test_device_memory_of_its_own_is_scratch(self):
        own = 1 << 19
        self.submit("m", source(in_host=f"""
  void* own = nullptr;
  if (cudaMalloc(&own, {own}) != cudaSuccess) return ASSAY_EINTERNAL;
  if (cudaFree(own) != cudaSuccess) return ASSAY_EINTERNAL;"""))
        self.run_all("--quick", "--seed", 5)
        timed = [c for c in self.cells()["m", "sim"]["cell"]["cases"] if c["group"] == "timed"]
        self.assertTrue(timed)
        for case in timed:
            metrics = {m["name"]: m["value"] for m in case["metrics"]}
            self.assertEqual(metrics["sim_device_bytes"], own)
            self.assertEqual(metrics["sim_to_host_before"], 0)
        with_own = self.metrics(self.replay("memory"))
        without = self.metrics(self.replay_of_right("memory"))
        self.assertEqual(with_own["sim_device_bytes"], own)
        self.assertEqual(without["sim_device_bytes"], 0)
        self.assertGreaterEqual(with_own["scratch_bytes"], without["scratch_bytes"] + own / 2)

    def test_graphs_and_managed_memory(self):
        without = self.metrics(self.replay_of_right("memory"))
        bump = "__managed__ int total = 1;\n__global__ void bump(int* p) { p[3] += 2, total += 2; }\n"
        self.submit("m", bump + source(in_host="""
  cudaStream_t s;
  if (cudaStreamCreate(&s) != cudaSuccess) return ASSAY_EINTERNAL;
  int* shared = nullptr;
  if (cudaMallocManaged(&shared, 64) != cudaSuccess) return ASSAY_EINTERNAL;
  shared[3] = total = 1;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  if (cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed) != cudaSuccess) return ASSAY_EINTERNAL;
  for (int i = 0; i < 5; ++i) bump<<<1, 1, 0, s>>>(shared);
  if (cudaStreamEndCapture(s, &graph) != cudaSuccess) return ASSAY_EINTERNAL;
  if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return ASSAY_EINTERNAL;
  if (cudaGraphLaunch(exec, s) != cudaSuccess) return ASSAY_EINTERNAL;
  if (cudaStreamSynchronize(s) != cudaSuccess) return ASSAY_EINTERNAL;
  if (shared[3] != 11 || total != 11) return ASSAY_EINTERNAL;
  if (cudaFree(shared) != cudaSuccess) return ASSAY_EINTERNAL;"""))
        replayed = self.replay("memory")
        self.assertIn("memory (resource): OK", replayed)
        metrics = self.metrics(replayed)
        self.assertEqual(metrics["sim_launches"], without["sim_launches"] + 5)
        self.assertGreater(metrics["sim_to_host_bytes"], without["sim_to_host_bytes"])

    def test_counters_are_the_same_on_every_run(self):
        first = self.replay_of_right("memory")
        second = self.replay("memory")
        strip = lambda text: [line for line in text.splitlines() if "metric    sim_" in line]
        self.assertTrue(strip(first))
        self.assertEqual(strip(first), strip(second))

    def test_both_languages_are_cells_of_their_own(self):
        self.submit("m", source())
        self.submit("m", (ROOT / "challenges" / CHALLENGE / "baselines" / "naive.cpp").read_text(), "submission.cpp")
        listed = self.assay("list", "models", "--submissions", self.submissions)
        self.assertIn("cpu", listed)
        self.assertIn("sim", listed)
        self.assertIn("choose with", self.replay("eps_1e_12", expect=2))
        self.assertIn("OK, correct", self.replay("eps_1e_12", "--device", "sim"))
        self.assertIn("OK, correct", self.replay("eps_1e_12", "--device", "cpu"))
        self.run_all("--quick", "--device", "sim")
        self.assertEqual(list(self.cells()), [("m", "sim")])

    def test_without_a_toolkit_nothing_is_run_and_nothing_is_lost(self):
        self.submit("m", source())
        self.run_all("--quick", env={"ASSAY_NVCC": ""})
        score = self.cells()["m", "sim"]["score"]
        self.assertEqual(score["verdict"], "SKIP")
        self.assertIsNone(score["total"])
        shown = self.assay("show", "m", CHALLENGE, "--results", self.results)
        self.assertIn("no CUDA Toolkit (nvcc) found", shown)


class BadSubmission(Case):
    def check(self, text, verdict, *messages, case="eps_1e_12"):
        self.submit("m", text)
        output = self.replay(case)
        self.assertRegex(output, rf"\): {verdict}(-idle)?, ")
        for message in messages:
            self.assertIn(message, output)

    def test_race(self):
        self.check(source(in_columns=RACE), "DE", "submission.cu:", "columns")

    def test_out_of_bounds(self):
        self.check(source(in_rows="dx[p.rows * p.D] = 0;"), "DE", "submission.cu:", "rows")

    def test_writing_to_an_input(self):
        self.check(source(in_rows="if (threadIdx.x == 0) const_cast<float*>(x)[0] += 1;"), "DE", "wrote to the input x")

    def test_host_dereference_of_a_device_pointer(self):
        self.check(source(in_host="static_cast<volatile float*>(dx)[0] = 1;"), "RE", "Segmentation fault")

    def test_tensor_maps(self):
        for ones, verdict in (1, "OK"), (2, "DE"):
            with self.subTest(ones):
                self.check(TENSOR_KERNEL + source(in_host=TENSOR_HOST.replace("ONES", str(ones))), verdict)

    def test_what_needs_a_gpu_skips_the_whole_cell(self):
        text = source(in_rows='asm volatile("{.reg .b64 s; stacksave.u64 s;}");')
        self.check(text, "GPU", "needs a GPU (", "stacksave")
        self.run_all("--quick")
        entry = self.cells()["m", "sim"]
        self.assertEqual({c["verdict"] for c in entry["cell"]["cases"]}, {"GPU"})
        self.assertEqual(entry["score"]["verdict"], "GPU")
        self.assertIsNone(entry["score"]["total"])

    def test_an_api_that_the_simulator_lacks(self):
        self.check(source(in_host="cudaIpcMemHandle_t h; if (cudaIpcGetMemHandle(&h, &h) != cudaSuccess) abort();"), "GPU",
                   "needs a GPU (", "cudaIpcGetMemHandle")

    def test_does_not_compile(self):
        self.submit("m", source(in_host="int x = ;"))
        output = self.replay("eps_1e_12")
        self.assertIn("CE: does not compile", output)
        self.assertIn("submission.cu(", output)

    def test_calls_what_is_nowhere(self):
        self.submit("m", 'extern "C" int cublasCreate_v2(void*);\n' + source(in_host="cublasCreate_v2(nullptr);"))
        output = self.replay("eps_1e_12")
        self.assertIn("CE: does not compile", output)
        self.assertIn("cublasCreate_v2", output)

    def test_an_endless_kernel(self):
        self.check(source(in_rows="while (g == g) g += 1e-30;"), "TLE", "instructions")

    def test_an_endless_host(self):
        self.check(source(in_host="for (volatile int i = 0;; ++i) {}"), "TLE", "no reply within")

    def test_keeping_all_of_device_memory(self):
        self.check(source(in_host="""
  void* block;
  for (size_t bytes = 1 << 20; bytes >= 256; bytes /= 64) {
    while (cudaMalloc(&block, bytes) == cudaSuccess) {}
  }
  cudaGetLastError();"""), "OK")
        # With this seed a case follows a smaller one, whose room is too small for it.
        self.run_all("--quick", "--device", "sim", "--seed", 5)
        verdicts = {c["verdict"] for c in self.cells()["m", "sim"]["cell"]["cases"]}
        self.assertIn("MLE", verdicts)
        self.assertNotIn("JE", verdicts)

    def test_a_wrong_result(self):
        self.check(source(in_rows="if (threadIdx.x == 0) dx[0] += 1;"), "WA", "dx")

    def test_a_block_of_more_registers_than_there_are(self):
        heavy = source(in_columns=MANY_REGISTERS)
        large = heavy.replace("(p->D + 127) / 128), 128,", "(p->D + 1023) / 1024), 1024,")
        self.assertNotEqual(large, heavy)
        self.check(heavy, "OK")
        self.check(large, "WA", "; the launch of ", "columns", " was refused: 1024 threads of ",
                   " registers are more than a multiprocessor has")
        self.check(large.replace("__global__ void columns", "__global__ __launch_bounds__(1024) void columns"), "OK")

    def test_a_result_that_depends_on_the_order_of_blocks(self):
        text = "__device__ unsigned ticket;\n" + source(
            in_rows="if (threadIdx.x == 0 && atomicAdd(&ticket, 1u) == 0) dx[0] = nextafterf(dx[0], 1e30f);",
            in_host="const unsigned zero = 0; cudaMemcpyToSymbol(ticket, &zero, sizeof zero);")
        self.check(text, "WA", "changes with the order of blocks", case="two_runs")
        self.assertIn("OK, correct", self.replay("basic"))

    def test_tampering_with_the_link_harms_nobody_else(self):
        self.submit("m", source(in_host=TAMPER))
        self.submit("n", source())
        self.run_all("--quick", "--device", "sim")
        cells = self.cells()
        self.assertNotEqual(cells["m", "sim"]["score"]["verdict"], "JE")
        self.assertEqual(cells["n", "sim"]["score"]["verdict"], "OK")


class Doctor(Case):
    def test_doctor_tries_nvcc(self):
        output = self.assay("doctor")
        self.assertIn("release", output)
        self.assertIn("nvcc in the sandbox", output)
        self.assertIn("no CUDA Toolkit", self.assay("doctor", env={"ASSAY_NVCC": ""}))


if __name__ == "__main__":
    found = subprocess.run([ASSAY, "--root", ROOT, "doctor"], capture_output=True, text=True).stdout
    if "nvcc in the sandbox" not in found:
        print("no nvcc: skipped")
        sys.exit(77)
    unittest.main(verbosity=2)
