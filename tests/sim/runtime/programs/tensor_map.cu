// Copies of tensors by TMA (sm_90): a transposition through swizzled tiles, a stencil whose halo
// reaches beyond the edges, and sums that several blocks add to one tile. The tensor maps come from
// the driver, which the program finds as NVIDIA's programming guide shows.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>
#include <vector>

namespace ptx = cuda::ptx;

constexpr int kTile = 32, kThreads = 256;

struct Copy {
  std::uint64_t full;

  __device__ void begin() {
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&full, 1);
      ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
  }
  // A thread announces the bytes and then fetches; all threads wait.
  __device__ void expect(std::uint32_t bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full,
                                   bytes);
  }
  __device__ void wait(unsigned parity) {
    while (!ptx::mbarrier_try_wait_parity(&full, parity)) {
    }
  }
};

__device__ void send_and_wait() {
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

// Where the element (row, column) of a tile of 32 x 32 floats lies if TMA swizzles 128 bytes.
__device__ int swizzled(int row, int column) {
  return row * kTile + ((column / 4) ^ (row % 8)) * 4 + column % 4;
}

__global__ void transpose(const __grid_constant__ CUtensorMap in,
                          const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(1024) float from[kTile * kTile], to[kTile * kTile];
  __shared__ Copy copy;
  copy.begin();
  const int x = static_cast<int>(blockIdx.x) * kTile, y = static_cast<int>(blockIdx.y) * kTile;
  if (threadIdx.x == 0) {
    copy.expect(sizeof from);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, from, &in, {x, y}, &copy.full);
  }
  copy.wait(0);
  for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
    const int row = i / kTile, column = i % kTile;
    to[swizzled(column, row)] = from[swizzled(row, column)];
  }
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, {y, x}, to);
    send_and_wait();
  }
}

// The sum of each element and its four neighbours; beyond the edges there are zeros.
constexpr int kHaloWidth = 36, kHaloHeight = 10, kInnerWidth = 32, kInnerHeight = 8;

__global__ void stencil(const __grid_constant__ CUtensorMap in,
                        const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(128) float halo[kHaloHeight][kHaloWidth], inner[kInnerHeight][kInnerWidth];
  __shared__ Copy copy;
  copy.begin();
  const int x = static_cast<int>(blockIdx.x) * kInnerWidth,
            y = static_cast<int>(blockIdx.y) * kInnerHeight;
  if (threadIdx.x == 0) {
    copy.expect(sizeof halo);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, halo, &in, {x - 1, y - 1},
                              &copy.full);
  }
  copy.wait(0);
  const int row = threadIdx.x / kInnerWidth, column = threadIdx.x % kInnerWidth;
  inner[row][column] = halo[row + 1][column + 1] + halo[row][column + 1] +
                       halo[row + 2][column + 1] + halo[row + 1][column] +
                       halo[row + 1][column + 2];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, {x, y}, inner);
    send_and_wait();
  }
}

// Every block adds its slices of a tensor of three dimensions to the one slice of `out`. Slices
// arrive in two buffers by turns.
__global__ void add_slices(const __grid_constant__ CUtensorMap in,
                           const __grid_constant__ CUtensorMap out, int slices) {
  __shared__ alignas(128) int slice[2][8][64];
  __shared__ alignas(128) int sum[8][64];
  __shared__ Copy copy[2];
  copy[0].begin();
  copy[1].begin();
  const auto fetch = [&](int i) {
    if (threadIdx.x != 0) return;
    copy[i % 2].expect(sizeof slice[0]);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, slice[i % 2], &in,
                              {0, 0, static_cast<int>(blockIdx.x) * slices + i}, &copy[i % 2].full);
  };
  for (int i = threadIdx.x; i < 512; i += kThreads) sum[i / 64][i % 64] = 0;
  fetch(0);
  for (int i = 0; i < slices; ++i) {
    if (i + 1 < slices) fetch(i + 1);
    copy[i % 2].wait(i / 2 % 2);
    for (int j = threadIdx.x; j < 512; j += kThreads)
      sum[j / 64][j % 64] += slice[i % 2][j / 64][j % 64];
    __syncthreads();
  }
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &out,
                                     {0, 0}, sum);
    send_and_wait();
  }
}

PFN_cuTensorMapEncodeTiled_v12000 encode_tiled() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) std::printf("not found\n");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

CUtensorMap map_of(CUtensorMapDataType type, std::uint32_t element, void* address,
                   std::vector<cuuint64_t> size, std::vector<cuuint32_t> box,
                   CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  std::vector<cuuint64_t> strides{size[0] * element};
  for (std::size_t d = 1; d + 1 < size.size(); ++d) strides.push_back(strides.back() * size[d]);
  const std::vector<cuuint32_t> steps(size.size(), 1);
  CUtensorMap map{};
  const CUresult result = encode_tiled()(
      &map, type, static_cast<cuuint32_t>(size.size()), address, size.data(), strides.data(),
      box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) std::printf("no map: %d\n", result);
  return map;
}

template <class T>
T* upload(const std::vector<T>& values) {
  T* at = nullptr;
  cudaMalloc(&at, values.size() * sizeof(T));
  cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return at;
}
template <class T>
std::vector<T> download(const T* from, std::size_t count) {
  std::vector<T> values(count);
  cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}

int transposition() {
  constexpr int width = 100, height = 60;
  std::vector<float> matrix(width * height);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
  float* const in = upload(matrix);
  float* const out = upload(std::vector<float>(matrix.size()));
  const CUtensorMap from = map_of(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, in, {width, height},
                                  {kTile, kTile}, CU_TENSOR_MAP_SWIZZLE_128B),
                    to = map_of(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, out, {height, width},
                                {kTile, kTile}, CU_TENSOR_MAP_SWIZZLE_128B);
  transpose<<<dim3(4, 2), kThreads>>>(from, to);
  const std::vector<float> result = download(out, matrix.size());
  int wrong = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) wrong += result[x * height + y] != matrix[y * width + x];
  return wrong;
}

int stencils() {
  constexpr int width = 80, height = 30;
  std::vector<float> field(width * height);
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = static_cast<float>(i * 7 % 101);
  float* const in = upload(field);
  float* const out = upload(std::vector<float>(field.size()));
  stencil<<<dim3(3, 4), kThreads>>>(
      map_of(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, in, {width, height}, {kHaloWidth, kHaloHeight}),
      map_of(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, out, {width, height},
             {kInnerWidth, kInnerHeight}));
  const std::vector<float> result = download(out, field.size());
  const auto at = [&](int y, int x) {
    return x < 0 || y < 0 || x >= width || y >= height ? 0.0f : field[y * width + x];
  };
  int wrong = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      wrong += result[y * width + x] !=
               at(y, x) + at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
  return wrong;
}

int sums() {
  constexpr int blocks = 3, slices = 5, slice = 8 * 64;
  std::vector<int> all(blocks * slices * slice);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i * i % 1000);
  int* const in = upload(all);
  int* const out = upload(std::vector<int>(slice, 5));
  add_slices<<<blocks, kThreads>>>(
      map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, in, {64, 8, blocks * slices}, {64, 8, 1}),
      map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, out, {64, 8}, {64, 8}), slices);
  const std::vector<int> result = download(out, slice);
  int wrong = 0;
  for (int i = 0; i < slice; ++i) {
    int expected = 5;
    for (int s = 0; s < blocks * slices; ++s) expected += all[s * slice + i];
    wrong += result[i] != expected;
  }
  return wrong;
}

int main() {
  const int transposed = transposition(), summed = stencils(), added = sums();
  std::printf("%d, %d and %d wrong, %s\n", transposed, summed, added,
              cudaGetErrorName(cudaGetLastError()));
}
