// Asynchronous copies between the blocks of a cluster, and reductions in memory, of sm_90, through
// cuda::ptx.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>
#include <vector>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int kThreads = 128, kBlocks = 4, kTile = 256;
constexpr std::uint32_t kBytes = kTile * sizeof(float);

__device__ void begin(std::uint64_t* full, std::uint32_t bytes) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                   bytes);
  }
  cg::this_cluster().sync();
}

__device__ void wait(std::uint64_t* full) {
  while (!ptx::mbarrier_try_wait_parity(full, 0)) {
  }
}

// Every block adds its number to what the first block has fetched for all of them; the tiles are
// summed in global memory.
__global__ void __cluster_dims__(kBlocks) add_up(const float* in, float* out) {
  __shared__ alignas(128) float tile[kTile];
  __shared__ std::uint64_t full;
  begin(&full, kBytes);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
    const auto object = static_cast<std::uint32_t>(__cvta_generic_to_shared(&full));
    const std::uint16_t all = (1u << kBlocks) - 1;
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1], %2, [%3], %4;" ::"r"(to),
        "l"(in), "r"(kBytes), "r"(object), "h"(all)
        : "memory");
  }
  wait(&full);
  for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] += blockIdx.x;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, kBytes);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
  cg::this_cluster().sync();
}

// Each block's tile goes to the next block: its first half as a copy, its second half as words of
// each thread, and the sum of all words of the tile as a reduction.
__global__ void __cluster_dims__(kBlocks) rotate(const int* in, int* out, int* sums) {
  __shared__ alignas(128) int own[kTile], next[kTile];
  __shared__ int sum;
  __shared__ std::uint64_t full;
  const cg::cluster_group cluster = cg::this_cluster();
  const int* const mine = in + blockIdx.x * kTile;
  for (int i = threadIdx.x; i < kTile; i += kThreads) own[i] = mine[i];
  if (threadIdx.x == 0) sum = 0;
  ptx::fence_proxy_async(ptx::space_shared);
  begin(&full, kBytes + kThreads * sizeof(int));
  const unsigned target = (cluster.block_rank() + 1) % kBlocks;
  std::uint64_t* const object = cluster.map_shared_rank(&full, target);
  int* const there = cluster.map_shared_rank(next, target);
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there, own, kBytes / 2, object);
  }
  const int at = kTile / 2 + threadIdx.x;
  if (threadIdx.x % 2 == 0) {
    const int pair[2] = {own[at], own[at + 1]};
    ptx::st_async(there + at, pair, object);
  }
  ptx::red_async(ptx::op_add, cluster.map_shared_rank(&sum, target), own[threadIdx.x] + own[at],
                 object);
  wait(&full);
  for (int i = threadIdx.x; i < kTile; i += kThreads) out[blockIdx.x * kTile + i] = next[i];
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  cluster.sync();
}

int main() {
  constexpr int n = kTile * kBlocks;
  std::vector<float> tile(kTile), total(kTile);
  std::vector<int> all(n), rotated(n), sums(kBlocks);
  for (int i = 0; i < kTile; ++i) tile[i] = static_cast<float>(i);
  for (int i = 0; i < n; ++i) all[i] = i * i % 1000 - 300;
  float *in, *out;
  int *numbers, *result, *sum;
  cudaMalloc(&in, kBytes);
  cudaMalloc(&out, kBytes);
  cudaMalloc(&numbers, n * sizeof(int));
  cudaMalloc(&result, n * sizeof(int));
  cudaMalloc(&sum, kBlocks * sizeof(int));
  cudaMemcpy(in, tile.data(), kBytes, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, kBytes);
  cudaMemcpy(numbers, all.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  add_up<<<kBlocks, kThreads>>>(in, out);
  rotate<<<kBlocks, kThreads>>>(numbers, result, sum);
  cudaMemcpy(total.data(), out, kBytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(rotated.data(), result, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(sums.data(), sum, kBlocks * sizeof(int), cudaMemcpyDeviceToHost);
  int wrong_totals = 0, wrong = 0;
  for (int i = 0; i < kTile; ++i) wrong_totals += total[i] != kBlocks * i + 6;
  for (int b = 0; b < kBlocks; ++b) {
    const int* const from = all.data() + (b + kBlocks - 1) % kBlocks * kTile;
    int expected = 0;
    for (int i = 0; i < kTile; ++i) {
      expected += from[i];
      wrong += rotated[b * kTile + i] != from[i];
    }
    wrong += sums[b] != expected;
  }
  std::printf("%d and %d wrong, %s\n", wrong_totals, wrong, cudaGetErrorName(cudaGetLastError()));
}
