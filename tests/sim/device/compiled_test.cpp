// nvcc's output for ordinary CUDA: reductions, grid barriers, locks, printf, calls, local arrays,
// asynchronous copies. Skipped without nvcc.
#include <cmath>
#include <memory>
#include <numeric>

#include "sim/device/device_fixture.h"
#include "sim/device/nvcc.h"

namespace assay::sim {
namespace {

constexpr const char* kSource = R"cuda(#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cassert>
#include <cstdio>
namespace cg = cooperative_groups;

extern "C" __global__ void softmax(const float* in, float* out, int n) {
  __shared__ float part[32];
  const float* row = in + (size_t)blockIdx.x * n;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int o = 16; o > 0; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  m = part[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, part[w]);
  __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += expf(row[i] - m);
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) s += part[w];
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[(size_t)blockIdx.x * n + i] = expf(row[i] - m) / s;
}

// The same for n <= 8 * blockDim.x, the row kept in registers.
extern "C" __global__ void softmax_once(const float* in, float* out, int n) {
  __shared__ float part[32];
  float x[8], m = -INFINITY, s = 0;
  for (int k = 0; k < 8; ++k) {
    const int i = threadIdx.x + k * blockDim.x;
    x[k] = i < n ? in[(size_t)blockIdx.x * n + i] : -INFINITY;
    m = fmaxf(m, x[k]);
  }
  for (int o = 16; o > 0; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  for (int w = 0; w < blockDim.x / 32; ++w) m = fmaxf(m, part[w]);
  __syncthreads();
  for (int k = 0; k < 8; ++k) s += x[k] = expf(x[k] - m);
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) s += part[w];
  for (int k = 0; k < 8; ++k) {
    const int i = threadIdx.x + k * blockDim.x;
    if (i < n) out[(size_t)blockIdx.x * n + i] = x[k] / s;
  }
}

extern "C" __global__ void grid_sum(const int* in, int* partial, int* out) {
  cg::grid_group grid = cg::this_grid();
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[grid.thread_rank()]);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) partial[blockIdx.x] = sum + round;
    grid.sync();
    int all = 0;
    for (int b = 0; b < gridDim.x; ++b) all += partial[b];
    grid.sync();
    if (threadIdx.x == 0) out[round * gridDim.x + blockIdx.x] = all;
  }
}

__device__ int lock_word;
__device__ int counter;
extern "C" __global__ void locked(int n) {
  for (int i = 0; i < n; ++i) {
    bool done = false;
    while (!done) {
      if (atomicCAS(&lock_word, 0, 1) == 0) {
        __threadfence();
        counter = *(volatile int*)&counter + 1;
        __threadfence();
        atomicExch(&lock_word, 0);
        done = true;
      }
    }
  }
}

extern "C" __global__ void talk(float x) {
  if (threadIdx.x < 2) printf("thread %d of %s: %5.2f %c %lld %p%%\n", threadIdx.x, "block", x, 'q', 1LL << 40, (void*)16);
}

extern "C" __global__ void check(int limit) { assert(threadIdx.x < limit); }

__noinline__ __device__ int collatz(int n) { return n <= 1 ? 0 : 1 + collatz(n % 2 ? 3 * n + 1 : n / 2); }
typedef int (*Function)(int);
__noinline__ __device__ int square(int x) { return x * x; }
__noinline__ __device__ int twice(int x) { return 2 * x; }
__device__ Function table[2] = {square, twice};
extern "C" __global__ void calls(int* out) {
  out[threadIdx.x] = collatz(threadIdx.x + 1) * 1000 + table[threadIdx.x % 2](threadIdx.x);
}

extern "C" __global__ void choose(const int* in, int* out) {
  int v = in[threadIdx.x], r;
  switch (v) {
    case 0: r = 17; break;
    case 1: r = threadIdx.x * 3; break;
    case 2: r = __popc(threadIdx.x); break;
    case 3: r = -5; break;
    case 4: r = threadIdx.x << 4; break;
    case 5: r = 1 - (int)threadIdx.x; break;
    case 6: r = __clz(threadIdx.x); break;
    default: r = 99;
  }
  int local[16];
  for (int i = 0; i < 16; ++i) local[i] = in[i] * i;
  out[threadIdx.x] = r + local[v & 15];
}

struct Matrix { int rows, cols; const float* data; };
extern "C" __global__ void transpose(Matrix m, float* out) {
  extern __shared__ float tile[];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < m.cols && y < m.rows) __pipeline_memcpy_async(&tile[threadIdx.y * 17 + threadIdx.x], &m.data[y * m.cols + x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < m.rows && y < m.cols) out[y * m.rows + x] = tile[threadIdx.x * 17 + threadIdx.y];
}

__constant__ float weights[4];
extern "C" __global__ void partial_warp(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cg::coalesced_group g = cg::coalesced_threads();
  out[i] = weights[i % 4] * g.size() + g.thread_rank();
}

extern "C" __global__ void beyond(float* out, int n) {
  out[threadIdx.x + n] = 1.f;
}
)cuda";

class Compiled : public DeviceTest, public testing::WithParamInterface<const char*> {
 protected:
  static DeviceOptions options() {
    DeviceOptions o = small();
    o.memory_bytes = 256 << 20;
    return o;
  }
  Compiled() : DeviceTest(options()) {}
  void SetUp() override {
    if (find_nvcc().empty()) GTEST_SKIP() << "there is no nvcc";
    static std::map<std::string, std::string> texts;
    std::string& text = texts[GetParam()];
    if (text.empty()) text = compile_cuda(kSource, GetParam());
    module = device.load_module(text);
  }
  void expect_clean(const LaunchResult& r) {
    EXPECT_EQ(r.status, LaunchStatus::ok);
    for (const Finding& f : r.findings) ADD_FAILURE() << f.describe();
  }
};

TEST_P(Compiled, EveryKernelRunsAsWritten) {
  // A single test, so that nvcc runs once per target.
  const int n = 1000;
  std::vector<float> values(4 * n);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) * 5;
  const std::uint64_t in = upload(values), out = device.allocate(4 * n * 4);
  const LaunchResult thrice = launch(shape(4, 128), "softmax", in, out, n);
  expect_clean(thrice);
  const auto soft = download<float>(out, 4 * n);
  for (int r = 0; r < 4; ++r) {
    double sum = 0, want = 0;
    for (int i = 0; i < n; ++i) sum += soft[r * n + i];
    for (int i = 0; i < n; ++i) want += std::exp(double{values[r * n + i]});
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_NEAR(soft[r * n + 3], std::exp(double{values[r * n + 3]}) / want, 1e-6);
  }
  const LaunchResult once = launch(shape(4, 128), "softmax_once", in, out, n);
  expect_clean(once);
  EXPECT_EQ(once.counters.global_load_sectors, 4u * n * 4 / 32);
  EXPECT_EQ(thrice.counters.global_load_bytes, 3 * once.counters.global_load_bytes);
  EXPECT_EQ(thrice.counters.global_load_sectors, 3 * once.counters.global_load_sectors);
  EXPECT_EQ(thrice.counters.global_store_sectors, once.counters.global_store_sectors);
  const auto other = download<float>(out, 4 * n);
  for (int i = 0; i < 4 * n; ++i) ASSERT_NEAR(other[i], soft[i], 1e-6);

  std::vector<int> integers(40 * 64);
  std::iota(integers.begin(), integers.end(), 0);
  const int total = std::accumulate(integers.begin(), integers.end(), 0);
  LaunchConfig cooperative = shape(40, 64);
  cooperative.cooperative = true;
  const std::uint64_t sums = upload(std::vector<int>(120));
  const std::uint64_t integers_at = upload(integers), partial = upload(std::vector<int>(40));
  expect_clean(launch(cooperative, "grid_sum", integers_at, partial, sums));
  for (int i = 0; i < 120; ++i) EXPECT_EQ(download<int>(sums, 120)[i], total + 40 * (i / 40));

  expect_clean(launch(shape(2, 64), "locked", 3));
  EXPECT_EQ(download<int>(device.variable(module, "counter").address, 1)[0], 2 * 64 * 3);

  const LaunchResult said = launch(shape(1, 32), "talk", 2.5f);
  expect_clean(said);
  EXPECT_EQ(said.output,
            "thread 0 of block:  2.50 q 1099511627776 0x10%\nthread 1 of block:  2.50 q "
            "1099511627776 0x10%\n");

  expect_clean(launch(shape(1, 32), "check", 32));
  const LaunchResult failed = launch(shape(1, 32), "check", 20);
  EXPECT_EQ(failed.status, LaunchStatus::assertion);
  ASSERT_EQ(failed.findings.size(), 1u);
  EXPECT_EQ(failed.findings[0].thread.thread[0], 20u);
  EXPECT_THAT(failed.findings[0].text, testing::HasSubstr("threadIdx.x < limit"));

  const std::uint64_t numbers = upload(std::vector<int>(64));
  expect_clean(launch(shape(1, 64), "calls", numbers));
  for (int t = 0; t < 64; ++t) {
    int steps = 0;
    for (int v = t + 1; v > 1; v = v % 2 ? 3 * v + 1 : v / 2) ++steps;
    EXPECT_EQ(download<int>(numbers, 64)[t], steps * 1000 + (t % 2 == 0 ? t * t : 2 * t));
  }

  std::vector<int> cases(64);
  for (int t = 0; t < 64; ++t) cases[t] = t * 7 % 9;
  expect_clean(launch(shape(1, 64), "choose", upload(cases), numbers));
  for (int t = 0; t < 64; ++t) {
    const int v = cases[t];
    const int r[] = {17,     t * 3, __builtin_popcount(t),          -5,
                     t << 4, 1 - t, t == 0 ? 32 : __builtin_clz(t), 99,
                     99};
    EXPECT_EQ(download<int>(numbers, 64)[t], r[v] + cases[v] * v) << t;
  }

  struct Matrix {
    int rows, cols;
    std::uint64_t data;
  };
  LaunchConfig tiles;
  tiles.grid = {3, 2, 1};
  tiles.block = {16, 16, 1};
  tiles.dynamic_shared_bytes = 16 * 17 * 4;
  expect_clean(launch(tiles, "transpose", Matrix{30, 40, in}, out));
  const auto transposed = download<float>(out, 1200);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) ASSERT_EQ(transposed[x * 30 + y], values[y * 40 + x]);
  }

  const std::vector<float> weights{1, 2, 3, 4};
  ASSERT_TRUE(
      device.write(device.variable(module, "weights").address, std::as_bytes(std::span(weights))));
  expect_clean(launch(shape(1, 64), "partial_warp", out, 50));
  EXPECT_EQ(download<float>(out, 50)[49], weights[1] * 18 + 17);

  const LaunchResult bad = launch(shape(1, 32), "beyond", out, 4 * n - 31);
  EXPECT_EQ(bad.status, LaunchStatus::illegal_address);
  ASSERT_EQ(bad.findings.size(), 1u);
  EXPECT_EQ(bad.findings[0].where, "kernel.cu:142");
  EXPECT_EQ(bad.findings[0].thread.thread[0], 31u);
}

INSTANTIATE_TEST_SUITE_P(Targets, Compiled, testing::Values("compute_80", "compute_90"));

}  // namespace
}  // namespace assay::sim
