// Clusters of thread blocks and their distributed shared memory, through cooperative groups. With
// the argument `end` no barrier keeps a block from ending while others still read its memory.
#include <cooperative_groups.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;

constexpr int kThreads = 128, kBlocks = 4, kBins = 256;

// A histogram whose bins are spread over the blocks of a cluster.
__global__ void histogram(const int* values, int count, int* bins) {
  extern __shared__ int own[];
  const cg::cluster_group cluster = cg::this_cluster();
  const int rank = cluster.block_rank(), per_block = kBins / cluster.num_blocks();
  for (int i = threadIdx.x; i < per_block; i += blockDim.x) own[i] = 0;
  cluster.sync();
  for (int i = cg::this_grid().thread_rank(); i < count; i += gridDim.x * blockDim.x) {
    const int bin = values[i];
    atomicAdd(cluster.map_shared_rank(own, bin / per_block) + bin % per_block, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < per_block; i += blockDim.x)
    atomicAdd(&bins[rank * per_block + i], own[i]);
}

// The sum over a cluster's blocks, which each of them reads from all others.
__global__ void __cluster_dims__(kBlocks) sum(const float* in, float* out, bool end) {
  __shared__ float part;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    part = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) part += in[blockIdx.x * blockDim.x + i];
  }
  cluster.barrier_arrive();
  cluster.barrier_wait();
  if (threadIdx.x == 0) {
    float all = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); ++r) all += *cluster.map_shared_rank(&part, r);
    out[blockIdx.x] = all;
  }
  if (!end) cluster.sync();
}

template <class T>
T* upload(const std::vector<T>& values) {
  T* p = nullptr;
  cudaMalloc(&p, values.size() * sizeof(T));
  cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
template <class T>
std::vector<T> download(const T* p, std::size_t count) {
  std::vector<T> values(count);
  cudaMemcpy(values.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}

int main(int count, char** arguments) {
  const bool end = count > 1 && std::strcmp(arguments[1], "end") == 0;
  std::vector<int> values(5000), expected(kBins);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>(i * i % 251);
    ++expected[values[i]];
  }
  int* const bins = upload(std::vector<int>(kBins));
  cudaLaunchConfig_t config{};
  config.gridDim = 2 * kBlocks;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = kBins / kBlocks * sizeof(int);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {kBlocks, 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  cudaOccupancyMaxActiveClusters(&clusters, histogram, &config);
  const cudaError_t launched =
      cudaLaunchKernelEx(&config, histogram, upload(values), static_cast<int>(values.size()), bins);
  std::printf("%s, %s, ", cudaGetErrorName(launched), clusters > 0 ? "fits" : "does not fit");
  std::printf("%s\n", download(bins, kBins) == expected ? "right" : "wrong");

  const std::vector<float> in(2 * kBlocks * kThreads, 0.5f);
  float* const sums = upload(std::vector<float>(2 * kBlocks));
  sum<<<2 * kBlocks, kThreads>>>(upload(in), sums, end);
  std::printf("%s\n", download(sums, 2 * kBlocks) == std::vector<float>(2 * kBlocks, 256.0f)
                          ? "right"
                          : "wrong");
  sum<<<kBlocks + 1, kThreads>>>(upload(in), sums, end);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
