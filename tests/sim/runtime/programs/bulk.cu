// Bulk copies of sm_90, through cuda::memcpy_async and through cuda::ptx. With the argument `early`
// a buffer is filled again before the copy from it has read it.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/barrier>
#include <cuda/ptx>
#include <vector>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128, kTile = 512, kTiles = 6, kStages = 2;

// Sums the tiles, element by element in reverse order.
__global__ void sum(const float* in, float* out) {
  __shared__ alignas(16) float tile[kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> full;
  const auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() == 0) init(&full, block.size());
  block.sync();
  float sums[kTile / kThreads] = {};
  for (int t = 0; t < kTiles; ++t) {
    cuda::memcpy_async(block, tile, in + t * kTile, cuda::aligned_size_t<16>(sizeof tile), full);
    full.arrive_and_wait();
    for (int i = 0; i < kTile / kThreads; ++i)
      sums[i] += tile[kTile - 1 - (i * kThreads + threadIdx.x)];
    block.sync();
  }
  for (int i = 0; i < kTile / kThreads; ++i) out[i * kThreads + threadIdx.x] = sums[i];
}

// Doubles all tiles: while one is computed, the next one arrives and the one before leaves.
__global__ void twice(const float* in, float* out, bool early) {
  __shared__ alignas(128) float buffer[kStages][kTile];
  __shared__ std::uint64_t full[kStages];
  constexpr std::uint32_t kBytes = sizeof buffer[0];
  if (threadIdx.x == 0) {
    for (std::uint64_t& one : full) ptx::mbarrier_init(&one, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  const auto fetch = [&](int t) {
    const int s = t % kStages;
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buffer[s], in + t * kTile, kBytes,
                       &full[s]);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s],
                                   kBytes);
  };
  if (threadIdx.x == 0) fetch(0);
  for (int t = 0; t < kTiles; ++t) {
    const int s = t % kStages;
    if (threadIdx.x == 0 && t + 1 < kTiles) {
      if (!early) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      fetch(t + 1);
    }
    while (!ptx::mbarrier_try_wait_parity(&full[s], t / kStages % 2)) {
    }
    for (int i = threadIdx.x; i < kTile; i += kThreads) buffer[s][i] *= 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + t * kTile, buffer[s], kBytes);
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

int main(int argc, char**) {
  constexpr int n = kTile * kTiles;
  std::vector<float> host(n), sums(kTile), doubled(n);
  for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i);
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  sum<<<1, kThreads>>>(in, out);
  cudaMemcpy(sums.data(), out, kTile * sizeof(float), cudaMemcpyDeviceToHost);
  twice<<<1, kThreads>>>(in, out, argc > 1);
  cudaMemcpy(doubled.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong_sums = 0, wrong = 0;
  for (int i = 0; i < kTile; ++i) {
    float expected = 0;
    for (int t = 0; t < kTiles; ++t) expected += host[t * kTile + kTile - 1 - i];
    wrong_sums += sums[i] != expected;
  }
  for (int i = 0; i < n; ++i) wrong += doubled[i] != 2 * host[i];
  std::printf("%d and %d wrong\n", wrong_sums, wrong);
}
