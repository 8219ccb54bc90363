// Cooperative groups: reductions over a tile of one warp or two, and synchronisation of the whole
// grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

// Each block sums its part; after a grid barrier, one block adds up the parts.
__global__ void sum(const int* in, int n, int* parts, int* total) {
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  __shared__ int warps[32];
  int mine = 0;
  for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) mine += in[i];
  mine = cg::reduce(tile, mine, cg::plus<int>());
  if (tile.thread_rank() == 0) warps[tile.meta_group_rank()] = mine;
  block.sync();
  if (block.thread_rank() == 0) {
    int of_block = 0;
    for (unsigned w = 0; w < tile.meta_group_size(); ++w) of_block += warps[w];
    parts[blockIdx.x] = of_block;
  }
  grid.sync();
  if (grid.thread_rank() == 0) {
    *total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) *total += parts[b];
  }
}

// Each thread gets the sum over its tile, which takes two warps.
__global__ void sum_of_pairs(int* out) {
  const auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  for (int round = 0; round < 3; ++round) {
    const int mine = static_cast<int>(threadIdx.x) + round;
    out[threadIdx.x] = cg::reduce(tile, mine, cg::plus<int>());
    tile.sync();
  }
}

int main() {
  constexpr int n = 10000, blocks = 12, threads = 128;
  std::vector<int> in(n);
  int expected = 0, got = 0;
  for (int i = 0; i < n; ++i) expected += in[i] = i % 100;
  int *data, *parts, *total, size = n;
  cudaMalloc(&data, n * sizeof(int));
  cudaMalloc(&parts, blocks * sizeof(int));
  cudaMalloc(&total, sizeof(int));
  cudaMemcpy(data, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  void* args[] = {&data, &size, &parts, &total};
  cudaError_t error = cudaLaunchCooperativeKernel(sum, blocks, threads, args, 0, nullptr);
  cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost);
  std::printf("%s %s\n", cudaGetErrorName(error), got == expected ? "good" : "WRONG");

  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 2;
  config.blockDim = threads;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaMemset(total, 0, sizeof(int));
  error = cudaLaunchKernelEx(&config, sum, static_cast<const int*>(data), size, parts, total);
  cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost);
  std::printf("%s %s\n", cudaGetErrorName(error), got == expected ? "good" : "WRONG");

  sum_of_pairs<<<1, threads>>>(data);
  int sums[threads];
  cudaMemcpy(sums, data, sizeof sums, cudaMemcpyDeviceToHost);
  bool good = true;
  for (int t = 0; t < threads; ++t)
    good = good && sums[t] == 64 * 63 / 2 + 64 * 64 * (t / 64) + 64 * 2;
  std::printf("%s %s\n", cudaGetErrorName(cudaGetLastError()), good ? "good" : "WRONG");

  error = cudaLaunchCooperativeKernel(sum, 100000, threads, args, 0, nullptr);
  std::printf("%s\n", cudaGetErrorName(error));
  return 0;
}
