// nvcc's output for warp functions, the WMMA API and inline mma.sync: every instruction is
// selected, and kernels compute correct results. Skipped without nvcc.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/device/device_fixture.h"
#include "sim/device/nvcc.h"
#include "sim/math/formats.h"
#include "sim/operations/instruction_set.h"
#include "sim/ptx/parser.h"

namespace assay::sim {
namespace {

constexpr const char* kSource = R"cuda(
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// D = A B + C of one tile; layouts are template arguments.
template <int M, int N, int K, class T, class S, class Memory, class LayoutA, class LayoutB>
__device__ void tile(const Memory* a, const Memory* b, const S* c, S* d) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, S> fc;
  constexpr bool row_a = std::is_same<LayoutA, wmma::row_major>::value;
  constexpr bool row_b = std::is_same<LayoutB, wmma::row_major>::value;
  wmma::load_matrix_sync(fa, a, row_a ? K : M);
  wmma::load_matrix_sync(fb, b, row_b ? N : K);
  wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d, fc, M, wmma::mem_col_major);
}
using Row = wmma::row_major;
using Col = wmma::col_major;
#define TILE(name, M, N, K, T, S, Memory, A, B)                                    \
  extern "C" __global__ void name(const Memory* a, const Memory* b, const S* c, S* d) { \
    tile<M, N, K, T, S, Memory, A, B>(a, b, c, d);                                 \
  }
TILE(half_rc, 16, 16, 16, half, float, half, Row, Col)
TILE(half_cr, 16, 16, 16, half, float, half, Col, Row)
TILE(half_tall, 32, 8, 16, half, float, half, Row, Row)
TILE(half_wide, 8, 32, 16, half, float, half, Col, Col)
TILE(half_half, 16, 16, 16, half, half, half, Row, Row)
TILE(bfloat, 16, 16, 16, __nv_bfloat16, float, __nv_bfloat16, Row, Col)
TILE(bfloat_wide, 8, 32, 16, __nv_bfloat16, float, __nv_bfloat16, Row, Row)
TILE(signed_bytes, 16, 16, 16, signed char, int, signed char, Row, Col)
TILE(unsigned_bytes, 32, 8, 16, unsigned char, int, unsigned char, Col, Row)
TILE(tf32, 16, 16, 8, wmma::precision::tf32, float, float, Row, Col)
TILE(doubles, 8, 8, 4, double, double, double, Row, Col)

// C[64, 64] = A[64, 64] B[64, 64], row-major, four warps, through shared memory: WMMA with a scaled
// accumulator, and ldmatrix with mma.sync.
extern "C" __global__ void gemm_wmma(const half* a, const half* b, float* c) {
  __shared__ half sa[64][72], sb[64][72];
  __shared__ float sc[64][68];
  for (int e = threadIdx.x; e < 64 * 64; e += blockDim.x) {
    sa[e / 64][e % 64] = a[e];
    sb[e / 64][e % 64] = b[e];
  }
  __syncthreads();
  const int warp = threadIdx.x / 32;
  for (int j = 0; j < 64; j += 16) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int k = 0; k < 64; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, Row> fa;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, Row> fb;
      wmma::load_matrix_sync(fa, &sa[16 * warp][k], 72);
      wmma::load_matrix_sync(fb, &sb[k][j], 72);
      wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int e = 0; e < fc.num_elements; ++e) fc.x[e] *= 2;
    wmma::store_matrix_sync(&sc[16 * warp][j], fc, 68, wmma::mem_row_major);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < 64 * 64; e += blockDim.x) c[e] = sc[e / 64][e % 64];
}

extern "C" __global__ void gemm_mma(const half* a, const half* b, float* c) {
  __shared__ __align__(16) half sa[64][72], sb[64][72];
  for (int e = threadIdx.x; e < 64 * 64; e += blockDim.x) {
    sa[e / 64][e % 64] = a[e];
    sb[e / 64][e % 64] = b[e];
  }
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int j = 0; j < 64; j += 8) {
    float d[4] = {};
    for (int k = 0; k < 64; k += 16) {
      unsigned fa[4], fb[2];
      const auto pa = static_cast<unsigned>(__cvta_generic_to_shared(&sa[16 * warp + lane % 16][k + lane / 16 * 8]));
      const auto pb = __cvta_generic_to_shared(&sb[k + lane % 16][j]);  // 64 bits
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(pa));
      asm volatile("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%0, %1}, [%2];"
                   : "=r"(fb[0]), "=r"(fb[1]) : "l"(pb));
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                   : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    }
    for (int e = 0; e < 4; ++e) {
      c[(16 * warp + lane / 4 + e / 2 * 8) * 64 + j + lane % 4 * 2 + e % 2] = 2 * d[e];
    }
  }
}

// One block of 96 threads: sums by shuffles, by tiles and by redux; votes and matches.
extern "C" __global__ void warp_functions(const int* in, int* out) {
  namespace cg = cooperative_groups;
  const int t = threadIdx.x, lane = t % 32;
  int sum = in[t];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  out[t] = sum;
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int partial = in[t];
  for (int o = 4; o > 0; o /= 2) partial += tile.shfl_down(partial, o);
  out[96 + t] = tile.shfl(partial, 0);
  out[192 + t] = __reduce_add_sync(~0u, in[t]) + __reduce_max_sync(~0u, in[t]) - __reduce_min_sync(~0u, in[t]);
  out[288 + t] = static_cast<int>(__ballot_sync(~0u, in[t] > 50)) + (__any_sync(~0u, in[t] == 7) ? 1 : 0) +
                 (__all_sync(~0u, in[t] < 1000) ? 2 : 0);
  int same = 0;
  out[384 + t] = static_cast<int>(__match_any_sync(~0u, in[t] % 4)) ^
                 static_cast<int>(__match_all_sync(~0u, 5, &same)) ^ same;
  int scan = in[t];
  for (int o = 1; o < 32; o *= 2) {
    const int below = __shfl_up_sync(~0u, scan, o);
    if (lane >= o) scan += below;
  }
  out[480 + t] = scan;
  if (lane % 3 == 0) out[576 + t] = static_cast<int>(__activemask());
  auto active = cg::coalesced_threads();
  out[576 + t] += static_cast<int>(active.size()) + __shfl_sync(~0u, in[t], 31 - lane, 16);
}
)cuda";

void check_selection(const std::string& text) {
  std::map<std::string, int> seen;
  for (const ptx::Function& f : ptx::parse(text).functions) {
    for (const ptx::Instruction& i : f.body) {
      const bool mine = select_warp_op(i).has_value() || select_tensor(i).has_value();
      if (mine) ++seen[i.opcode];
    }
  }
  for (const char* opcode :
       {"wmma", "mma", "ldmatrix", "shfl", "vote", "match", "redux", "activemask"}) {
    EXPECT_GT(seen[opcode], 0) << opcode;
  }
}

template <class Stored, class Encode>
std::vector<Stored> encoded(const std::vector<int>& values, Encode encode) {
  std::vector<Stored> all;
  for (const int v : values) all.push_back(static_cast<Stored>(encode(v)));
  return all;
}

std::vector<int> random_values(int count, int low, int high, std::mt19937& random) {
  std::vector<int> all(static_cast<std::size_t>(count));
  for (int& v : all) v = std::uniform_int_distribution<int>(low, high)(random);
  return all;
}

struct TileShape {
  int m, n, k;
  bool row_a, row_b;
};

class CompiledTensor : public DeviceTest {
 protected:
  LaunchResult run(const char* kernel, std::uint32_t threads, auto... pointers) {
    const LaunchResult r = launch(shape(1, threads), kernel, pointers...);
    EXPECT_EQ(r.status, LaunchStatus::ok) << kernel;
    for (const Finding& f : r.findings) ADD_FAILURE() << f.describe();
    return r;
  }

  template <class In, class Out>
  void check_tile(const char* kernel, TileShape, int low, int high, auto encode, auto encode_out,
                  auto decode);
  void check_wmma_tiles();
  void check_matrix_products();
  void check_warp_functions();
};

template <class In, class Out>
void CompiledTensor::check_tile(const char* kernel, TileShape s, int low, int high, auto encode,
                                auto encode_out, auto decode) {
  SCOPED_TRACE(kernel);
  std::mt19937 random(12);
  const std::vector<int> a = random_values(s.m * s.k, low, high, random),
                         b = random_values(s.k * s.n, low, high, random),
                         c = random_values(s.m * s.n, -50, 50, random);
  const std::uint64_t d = device.allocate(static_cast<std::uint64_t>(s.m * s.n) * sizeof(Out));
  const LaunchResult result =
      run(kernel, 32, upload(encoded<In>(a, encode)), upload(encoded<In>(b, encode)),
          upload(encoded<Out>(c, encode_out)), d);
  EXPECT_EQ(result.counters.tensor, 1u);
  EXPECT_EQ(result.counters.tensor_flops, static_cast<std::uint64_t>(2 * s.m * s.n * s.k));
  EXPECT_EQ(result.counters.global_store_bytes,
            static_cast<std::uint64_t>(s.m * s.n) * sizeof(Out));
  const std::vector<Out> out = download<Out>(d, static_cast<std::size_t>(s.m * s.n));
  for (int i = 0; i < s.m; ++i) {
    for (int j = 0; j < s.n; ++j) {
      int expected = c[static_cast<std::size_t>(i * s.n + j)];
      for (int k = 0; k < s.k; ++k) {
        expected += a[static_cast<std::size_t>(s.row_a ? i * s.k + k : k * s.m + i)] *
                    b[static_cast<std::size_t>(s.row_b ? k * s.n + j : j * s.k + k)];
      }
      ASSERT_EQ(decode(out[static_cast<std::size_t>(j * s.m + i)]), expected) << i << ", " << j;
    }
  }
}

void CompiledTensor::check_wmma_tiles() {
  const auto half = [](int v) { return to_half<Half>(static_cast<float>(v)).bits; };
  const auto bfloat = [](int v) { return to_half<Bfloat>(static_cast<float>(v)).bits; };
  const auto same = [](auto v) { return v; };
  using H = std::uint16_t;
  check_tile<H, float>("half_rc", {16, 16, 16, true, false}, -99, 99, half, same, same);
  check_tile<H, float>("half_cr", {16, 16, 16, false, true}, -99, 99, half, same, same);
  check_tile<H, float>("half_tall", {32, 8, 16, true, true}, -99, 99, half, same, same);
  check_tile<H, float>("half_wide", {8, 32, 16, false, false}, -99, 99, half, same, same);
  check_tile<H, H>("half_half", {16, 16, 16, true, true}, -8, 8, half, half,
                   [](H h) { return widen(Half{h}); });
  check_tile<H, float>("bfloat", {16, 16, 16, true, false}, -99, 99, bfloat, same, same);
  check_tile<H, float>("bfloat_wide", {8, 32, 16, true, true}, -99, 99, bfloat, same, same);
  check_tile<std::int8_t, int>("signed_bytes", {16, 16, 16, true, false}, -128, 127, same, same,
                               same);
  check_tile<std::uint8_t, int>("unsigned_bytes", {32, 8, 16, false, true}, 0, 255, same, same,
                                same);
  check_tile<float, float>("tf32", {16, 16, 8, true, false}, -99, 99, same, same, same);
  check_tile<double, double>("doubles", {8, 8, 4, true, false}, -99, 99, same, same, same);
}

void CompiledTensor::check_matrix_products() {
  std::mt19937 random(13);
  const std::vector<int> a = random_values(64 * 64, -20, 20, random),
                         b = random_values(64 * 64, -20, 20, random);
  const auto half = [](int v) { return to_half<Half>(static_cast<float>(v)).bits; };
  const std::uint64_t da = upload(encoded<std::uint16_t>(a, half)),
                      db = upload(encoded<std::uint16_t>(b, half)),
                      dc = device.allocate(64 * 64 * 4);
  for (const char* kernel : {"gemm_wmma", "gemm_mma"}) {
    const LaunchResult result = run(kernel, 128, da, db, dc);
    EXPECT_EQ(result.counters.tensor_flops, 2u * 64 * 64 * 64) << kernel;
    const std::vector<float> c = download<float>(dc, 64 * 64);
    for (int i = 0; i < 64; ++i) {
      for (int j = 0; j < 64; ++j) {
        int expected = 0;
        for (int k = 0; k < 64; ++k) {
          expected +=
              a[static_cast<std::size_t>(64 * i + k)] * b[static_cast<std::size_t>(64 * k + j)];
        }
        ASSERT_EQ(c[static_cast<std::size_t>(64 * i + j)], 2 * expected)
            << kernel << " " << i << ", " << j;
      }
    }
  }
}

void CompiledTensor::check_warp_functions() {
  std::mt19937 random(14);
  const std::vector<int> in = random_values(96, 0, 100, random);
  const std::uint64_t out_at = upload(std::vector<int>(96 * 7));
  run("warp_functions", 96, upload(in), out_at);
  const std::vector<int> out = download<int>(out_at, 96 * 7);
  for (std::size_t t = 0; t < 96; ++t) {
    SCOPED_TRACE(t);
    const std::size_t lane = t % 32;
    const int* warp = &in[t / 32 * 32];
    int sum = 0, eight = 0, low = 1000, high = -1000, scan = 0;
    std::uint32_t ballot = 0, match = 0, thirds = 0;
    bool seven = false;
    for (std::size_t l = 0; l < 32; ++l) {
      sum += warp[l];
      if (l / 8 == lane / 8) eight += warp[l];
      low = std::min(low, warp[l]);
      high = std::max(high, warp[l]);
      if (l <= lane) scan += warp[l];
      if (warp[l] > 50) ballot |= 1u << l;
      if (warp[l] % 4 == warp[lane] % 4) match |= 1u << l;
      if (l % 3 == 0) thirds |= 1u << l;
      seven |= warp[l] == 7;
    }
    EXPECT_EQ(out[t], sum);
    EXPECT_EQ(out[96 + t], eight);
    EXPECT_EQ(out[192 + t], sum + high - low);
    EXPECT_EQ(out[288 + t], static_cast<int>(ballot) + (seven ? 1 : 0) + 2);
    EXPECT_EQ(out[384 + t], static_cast<int>(match) ^ -1 ^ 1);
    EXPECT_EQ(out[480 + t], scan);
    EXPECT_EQ(out[576 + t], (lane % 3 == 0 ? static_cast<int>(thirds) : 0) + 32 +
                                warp[(31 - lane) % 16 + lane / 16 * 16]);
  }
}

// A single test, since the compiler takes seconds.
TEST_F(CompiledTensor, KernelsOfNvcc) {
  if (find_nvcc().empty()) GTEST_SKIP() << "there is no nvcc";
  const std::string text = compile_cuda(kSource, "compute_90");
  check_selection(text);
  module = device.load_module(text);
  check_wmma_tiles();
  check_matrix_products();
  check_warp_functions();
}

}  // namespace
}  // namespace assay::sim
