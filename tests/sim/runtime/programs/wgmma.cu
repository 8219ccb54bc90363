// Matrix products of warpgroups (sm_90a): C = A B in bfloat16 with f32 sums. Blocks of 64 x 64 of
// C; A and B arrive by TMA, swizzled by 128 bytes, in two buffers by turns. One warp of a second
// warpgroup fetches, the first one multiplies. With "early" it says too soon that a buffer is free.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda/ptx>
#include <vector>

namespace ptx = cuda::ptx;

constexpr int kTile = 64, kStages = 2, kThreads = 256;  // a row of a tile has 128 bytes

// Tiles of A (rows of m) and B (rows of n), K-major.
struct Shared {
  alignas(1024) __nv_bfloat16 a[kStages][kTile * kTile], b[kStages][kTile * kTile];
  std::uint64_t full[kStages], empty[kStages];
};

// Eight rows are 1024 bytes; swizzle of 128 bytes.
__device__ std::uint64_t descriptor(const __nv_bfloat16* tile, int k) {
  const std::uint64_t address = __cvta_generic_to_shared(tile + k);
  return (address & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}

__device__ void multiply(float (&d)[32], std::uint64_t a, std::uint64_t b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}

__device__ void wait(std::uint64_t* barrier, int parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

__global__ void __launch_bounds__(kThreads)
    product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c,
            int n, int k, bool early) {
  extern __shared__ unsigned char memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const int row = static_cast<int>(blockIdx.y) * kTile,
            column = static_cast<int>(blockIdx.x) * kTile;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&s.full[i], 1);
      ptx::mbarrier_init(&s.empty[i], 1);
    }
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  const int tiles = k / kTile;
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int i = 0; i < tiles; ++i) {
      const int stage = i % kStages;
      if (i >= kStages) wait(&s.empty[stage], (i / kStages - 1) % 2);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                     &s.full[stage], 2 * sizeof s.a[0]);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s.a[stage], &a,
                                {i * kTile, row}, &s.full[stage]);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s.b[stage], &b,
                                {i * kTile, column}, &s.full[stage]);
    }
    return;
  }
  float d[32] = {};
  for (int i = 0; i < tiles; ++i) {
    const int stage = i % kStages;
    wait(&s.full[stage], i / kStages % 2);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int j = 0; j < kTile; j += 16)
      multiply(d, descriptor(s.a[stage], j), descriptor(s.b[stage], j), i + j > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (early && threadIdx.x == 0)
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &s.empty[stage]);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (!early && threadIdx.x == 0)
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &s.empty[stage]);
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 32; ++i) {
    const int y = row + warp * 16 + lane / 4 + i / 2 % 2 * 8,
              x = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
    c[y * n + x] = d[i];
  }
}

CUtensorMap map_of(__nv_bfloat16* address, cuuint64_t rows, cuuint64_t k) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                   &found);
  const cuuint64_t size[] = {k, rows}, stride[] = {k * 2};
  const cuuint32_t box[] = {kTile, kTile}, step[] = {1, 1};
  CUtensorMap map{};
  const CUresult result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, size, stride, box, step,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) std::printf("no map: %d\n", result);
  return map;
}

int main(int argc, char** argv) {
  const bool early = argc > 1 && std::strcmp(argv[1], "early") == 0;
  constexpr int m = 128, n = 192, k = 384;
  std::vector<int> a(m * k), b(n * k);
  for (int i = 0; i < m * k; ++i) a[i] = i * 7 % 11 - 5;
  for (int i = 0; i < n * k; ++i) b[i] = i * 5 % 13 - 6;
  const auto upload = [](const std::vector<int>& values) {
    std::vector<__nv_bfloat16> halves(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      halves[i] = __float2bfloat16(static_cast<float>(values[i]));
    __nv_bfloat16* at = nullptr;
    cudaMalloc(&at, halves.size() * 2);
    cudaMemcpy(at, halves.data(), halves.size() * 2, cudaMemcpyHostToDevice);
    return at;
  };
  float* c = nullptr;
  cudaMalloc(&c, m * n * sizeof(float));
  cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  product<<<dim3(n / kTile, m / kTile), kThreads, sizeof(Shared)>>>(
      map_of(upload(a), m, k), map_of(upload(b), n, k), c, n, k, early);
  std::vector<float> result(m * n);
  cudaMemcpy(result.data(), c, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int y = 0; y < m; ++y) {
    for (int x = 0; x < n; ++x) {
      int sum = 0;
      for (int i = 0; i < k; ++i) sum += a[y * k + i] * b[x * k + i];
      wrong += result[y * n + x] != static_cast<float>(sum);
    }
  }
  std::printf("%d wrong, %s\n", wrong, cudaGetErrorName(cudaGetLastError()));
}
