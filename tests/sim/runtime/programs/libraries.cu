// What kernels use from CUB and libcu++: block sorts, pipelines, barriers of memcpy_async; and a
// lock in shared memory. All of it is correct, so there may be no findings.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>

// nvcc warns that barriers in shared memory are not initialised, which is as it should be.
#pragma nv_diag_suppress 20054

namespace cg = cooperative_groups;

constexpr int kThreads = 128, kItems = 4, kTile = kThreads * kItems;

__global__ void radix_sort(int* data) {
  using Sort = cub::BlockRadixSort<int, kThreads, kItems>;
  __shared__ typename Sort::TempStorage storage;
  int keys[kItems];
  for (int i = 0; i < kItems; ++i) keys[i] = data[threadIdx.x * kItems + i];
  Sort(storage).Sort(keys);
  for (int i = 0; i < kItems; ++i) data[threadIdx.x * kItems + i] = keys[i];
}

// The merge reads one element past the tile, but does not use it.
__global__ void merge_sort(int* data) {
  using Sort = cub::BlockMergeSort<int, kThreads, kItems>;
  __shared__ typename Sort::TempStorage storage;
  int keys[kItems];
  for (int i = 0; i < kItems; ++i) keys[i] = data[threadIdx.x * kItems + i];
  Sort(storage).Sort(keys, [](int a, int b) { return a < b; });
  for (int i = 0; i < kItems; ++i) data[threadIdx.x * kItems + i] = keys[i];
}

// One warp copies and the others add up, with two tiles in flight.
__global__ void pipelined_sum(const int* in, int tiles, int* total) {
  const auto block = cg::this_thread_block();
  __shared__ alignas(16) int tile[2][kTile];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const bool producer = threadIdx.x < 32;
  auto pipe = cuda::make_pipeline(
      block, &state, producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  if (producer) {
    const auto warp = cg::tiled_partition<32>(block);
    for (int t = 0; t < tiles; ++t) {
      pipe.producer_acquire();
      cuda::memcpy_async(warp, tile[t % 2], in + t * kTile,
                         cuda::aligned_size_t<16>(sizeof tile[0]), pipe);
      pipe.producer_commit();
    }
    return;
  }
  int sum = 0;
  for (int t = 0; t < tiles; ++t) {
    pipe.consumer_wait();
    for (int i = threadIdx.x - 32; i < kTile; i += blockDim.x - 32) sum += tile[t % 2][i];
    pipe.consumer_release();
  }
  atomicAdd(total, sum);
}

__global__ void barrier_sum(const int* in, int tiles, int* total) {
  const auto block = cg::this_thread_block();
  __shared__ alignas(16) int tile[kTile];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  block.sync();
  int sum = 0;
  for (int t = 0; t < tiles; ++t) {
    cuda::memcpy_async(block, tile, in + t * kTile, sizeof tile, barrier);
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) sum += tile[kTile - 1 - i];
    barrier.wait(barrier.arrive());
  }
  atomicAdd(total, sum);
}

__global__ void locked_sum(const int* in, int tiles, int* total) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  int mine = 0;
  for (int i = threadIdx.x; i < tiles * kTile; i += blockDim.x) mine += in[i];
  mine = __reduce_add_sync(0xffffffff, mine);
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    sum += mine;
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) *total = sum;
}

int main() {
  constexpr int tiles = 6, n = tiles * kTile;
  std::vector<int> in(n), out(kTile);
  unsigned random = 1;
  int expected = 0;
  for (int& x : in) {
    random = random * 1664525u + 1013904223u;
    expected += x = static_cast<int>(random >> 8) % 1000;
  }
  int *data, *total;
  cudaMalloc(&data, n * sizeof(int));
  cudaMalloc(&total, sizeof(int));

  std::vector<int> sorted(in.begin(), in.begin() + kTile);
  std::sort(sorted.begin(), sorted.end());
  for (const auto sort : {radix_sort, merge_sort}) {
    cudaMemcpy(data, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    sort<<<1, kThreads>>>(data);
    cudaMemcpy(out.data(), data, kTile * sizeof(int), cudaMemcpyDeviceToHost);
    std::printf("%s\n", out == sorted ? "good" : "WRONG");
  }

  cudaMemcpy(data, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  for (const auto sum : {pipelined_sum, barrier_sum, locked_sum}) {
    int got = 0;
    cudaMemset(total, 0, sizeof(int));
    sum<<<1, 160>>>(data, tiles, total);
    cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost);
    std::printf("%s\n", got == expected ? "good" : "WRONG");
  }
  return 0;
}
