// Cooperative groups: reductions over a tile and synchronisation of the whole grid.
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

  error = cudaLaunchCooperativeKernel(sum, 100000, threads, args, 0, nullptr);
  std::printf("%s\n", cudaGetErrorName(error));
  return 0;
}
