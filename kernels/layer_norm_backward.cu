// Layer norm backward for a GPU of the H100 class: one launch, x and dy read once.
//
// The problem. x and dy are [rows, D] and are read, dx is written: 12 bytes an element in fp32
// beside about 12 flops. 132 multiprocessors at 4.8 TB/s have 18 bytes a clock each, and 128 lanes
// of fp32: the flops take a clock where the bytes take eighty. Memory is the limit. 8192 x 768
// moves 75.5 MB, 15.7 us; 4096 x 4096 and 65536 x 256 move 201 MB, 42 us. A launch costs 3 us, a
// fifth of the smallest, so that one is all there is.
//
// Both reductions in one pass. dx needs two sums along a row, dgamma and dbeta sums along the
// columns. The grid is persistent, a block a multiprocessor. A thread keeps the same columns for
// all rows of its block, so gamma is read once a block, and the column sums stay in registers until
// the block has no row left. Then each block writes its sums, the grid meets (a cooperative
// launch: a barrier costs about 1 us, a second launch 3), and each warp adds up a few columns over
// the blocks in a fixed order: two runs agree in every bit.
//
// Tiles. A thread has 4 columns, one access of 16 bytes (8 in bf16). A row takes G = D / 4 threads:
// a power of two up to a warp, beyond that whole warps. The block is filled with as many rows as
// fit into 1024 threads: 5 of 768 columns (6 warps each), 16 of 256, one of 4096. Registers: 4 of
// gamma, 8 of sums, 8 of the row.
//
// In flight. 4.8 TB/s at 900 ns of latency need 4.8e12 * 9e-7 / 132 = 33 KB on their way to each
// multiprocessor at any time. A turn of the block is 32 KiB, so the next turn alone would do if
// memory never waited; but then it waits at each barrier. So x, dy and statistics of the next three
// turns are on their way to a ring of four in shared memory (cp.async), 64 KiB of them beyond the
// turn that comes next. Each thread copies what it will use itself and waits for its own copies:
// the ring needs no barrier, and the one of the row's sum makes the next statistics visible. Where
// rows are not aligned, the next row alone is fetched, to registers.
//
// Banks. A thread has four neighbours of gamma and of the sums, so shared memory gives and takes
// them in accesses of 16 bytes, four passes of a warp by nature. Word by word, lanes would lie
// four banks apart, and each of the four would take four passes.
//
// Rows of 4097 to 16384 columns take 16 columns a thread. Their row alone is 32 registers of the 64
// that 1024 threads have, so gamma and the column sums lie in shared memory, 12 bytes a column,
// 192 KiB. Each word is one thread's own: no barrier, no bank conflict. The row itself is up to
// 128 KiB in flight, so nothing is fetched ahead. Longer rows are read twice, the second time from
// the L2 cache.
//
// Balance. A block costs 20 bytes a column beside the 12 of each row: gamma 4, its sums 8 and 8
// back. Where rows are short of 34 a block, up to a tenth of the multiprocessors is left idle, so
// that this stays near 5 % of all: 4096 rows of 4096 take 121 blocks of 34 rows, not 128 of 32. A
// row is never divided, so fewer rows than multiprocessors leave some idle: a row of 16384 takes
// one of them about as long as the launch.
//
// Numbers. The cache is the mean and the reciprocal standard deviation of each row, 8 bytes. The
// mean is corrected once by the mean of what is left, so that it is right far from 0, and what is
// squared is divided by sqrt(D) before, so that x near 1e19 does not overflow. A thread adds up no
// more terms of a column one after another than its block has turns; all else is a tree.
//
// Modelled on an H200: 19.2, 47.2 and 45.3 us for the three shapes above, with memory as the limit;
// the floors are 18.7, 45.0 and 45.1 us. Measured on one: 28.2, 64.5 and 54.6 us, where a copy of as
// many bytes takes 17.6, 47.0 and 47.1.
//
// Tried and rejected:
// - a launch for dx and one for the columns: x and dy are read twice, 5/3 of the bytes
// - atomics for dgamma and dbeta: the order differs between runs, and each add moves its sector
//   twice, as much as to write the sums and to read them
// - a second launch for the column sums: 3 us, where 8192 x 768 takes 16
// - a counter for "last block done" in place of the grid's barrier: it must be 0 before, which is a
//   memset (a launch again) or memory that two calls at a time would share
// - the next row alone on its way, to registers, and its statistics by way of a register: the model
//   sees no difference, but an H200 took 33.4, 82.1 and 74.7 us
// - the sums of g and g x instead of g and g (x - mean): they need no statistics before the row is
//   read, but cancel where the mean is large
// - every warp loading its row's statistics: a sector of 32 bytes a warp is 2 % of what it reads
// - every team loading gamma for itself: 5 teams of 768 columns, 2 MB of 78
// - a division by D, and by the warps of a row, in every row: 8192 x 768 took 19 us of issue slots,
//   more than its bytes. Reciprocals and pointers are computed once
#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "abi.h"
#include "common/async_copy.h"
#include "common/device.h"

namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarp;
constexpr int kNarrow = 4, kWide = 16;  // columns a thread
constexpr int kStages = 4;              // turns in the ring: see In flight
constexpr std::int64_t kMostColumns = std::int64_t{kWide} * kThreads;
constexpr std::int64_t kRowsThatPay = 34;          // of a block: see Balance
constexpr std::int64_t kMostScratch = 64LL << 20;  // of rows beyond kMostColumns

enum class Norm { layer, rms };

struct alignas(8) RowStatistics {
  float mean, rstd;
};

// How a block shares out rows: G threads hold one, a power of two up to a warp, else whole warps.
struct Shares {
  int row_threads = 1;   // G
  int teams = 1;         // of max(G, 32) threads each
  int rows_at_once = 1;  // of the block

  __host__ __device__ int team_threads() const { return row_threads < kWarp ? kWarp : row_threads; }
  int block() const { return teams * team_threads(); }
};

template <class T>
struct Backward {
  std::int64_t rows, D;
  float eps;
  const T *dy, *x;
  const float* gamma;
  const RowStatistics* cache;
  const T* dres;                // or null
  T* dx;                        // or null
  float *dgamma, *dbeta;        // each may be null
  float* partial;               // [blocks, stride]: dgamma [D], dbeta [D]; null: neither is wanted
  std::int64_t partial_stride;  // floats, whole sectors
  Shares shares;
};

// kVector neighbours in one access. What is read once goes past the caches.

template <int kVector>
__device__ void load(const float* p, float* out) {
  if constexpr (kVector == 4) {
    const float4 v = __ldcs(reinterpret_cast<const float4*>(p));
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
  } else {
    out[0] = __ldcs(p);
  }
}

__device__ void unpack(uint2 v, float* out) {
  const auto high = [](unsigned pair) { return __uint_as_float(pair & 0xffff0000u); };
  out[0] = high(v.x << 16), out[1] = high(v.x), out[2] = high(v.y << 16), out[3] = high(v.y);
}

template <int kVector>
__device__ void load(const __nv_bfloat16* p, float* out) {
  if constexpr (kVector == 4) {
    unpack(__ldcs(reinterpret_cast<const uint2*>(p)), out);
  } else {
    out[0] = __bfloat162float(*p);
  }
}

template <int kVector>
__device__ void store(float* p, const float* v) {
  if constexpr (kVector == 4) {
    *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    *p = v[0];
  }
}

// In shared memory, and one access where nvcc would make four: of these each lane's is four banks
// from the next.
template <int kVector>
__device__ void store_shared(float* p, const float* v) {
  if constexpr (kVector == 4) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(p)), "f"(v[0]),
                 "f"(v[1]), "f"(v[2]), "f"(v[3])
                 : "memory");
  } else {
    *p = v[0];
  }
}

template <int kVector>
__device__ void store(__nv_bfloat16* p, const float* v) {
  const auto bits = [](float x) { return unsigned{__bfloat16_as_ushort(__float2bfloat16(x))}; };
  if constexpr (kVector == 4) {
    *reinterpret_cast<uint2*>(p) =
        make_uint2(bits(v[0]) | bits(v[1]) << 16, bits(v[2]) | bits(v[3]) << 16);
  } else {
    *p = __float2bfloat16(v[0]);
  }
}

__device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

__device__ float2 add_lane(float2 v, int offset) {
  return v + make_float2(__shfl_xor_sync(~0u, v.x, offset), __shfl_xor_sync(~0u, v.y, offset));
}

__device__ float2 warp_sum(float2 v) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) v = add_lane(v, offset);
  return v;
}

// Sums along a row, in all of its threads. Calls of the whole block, each of one barrier; they
// alternate between two buffers, so that none is needed behind.
class RowSum {
 public:
  __device__ RowSum(int row_threads, float2 (&buffers)[2][kWarps])
      : row_threads_(row_threads), warps_(row_threads / kWarp), lane_(threadIdx.x % kWarp) {
    const int warp = threadIdx.x / kWarp;
    mine_ = &buffers[0][warp];
    row_ = warps_ > 1 ? &buffers[0][warp / warps_ * warps_ + lane_] : mine_;
  }
  // turn: 0 and 1 by turns.
  __device__ float2 operator()(float2 v, int turn) const {
    if (row_threads_ < kWarp) {
      for (unsigned offset = row_threads_ / 2; offset > 0; offset /= 2)
        v = add_lane(v, static_cast<int>(offset));
    } else {
      v = warp_sum(v);
    }
    if (warps_ <= 1) {
      __syncthreads();
      return v;
    }
    if (lane_ == 0) mine_[turn * kWarps] = v;
    __syncthreads();
    return warp_sum(lane_ < warps_ ? row_[turn * kWarps] : float2{});
  }

 private:
  int row_threads_, warps_, lane_;
  float2 *mine_, *row_;
};

// The columns of one thread: kColumns / kVector accesses, each beside those of the other threads.
template <int kVector, int kColumns>
struct Columns {
  static constexpr int kAccesses = kColumns / kVector;
  int row_threads, thread, D;

  __device__ int first(int access) const {
    // Wide rows have all threads: a constant, so that addresses take no registers.
    return (access * (kColumns == kWide ? kThreads : row_threads) + thread) * kVector;
  }
  // Beyond D: 0.
  template <class T>
  __device__ void read(const T* row, float (&out)[kColumns]) const {
#pragma unroll
    for (int a = 0; a < kAccesses; ++a) {
#pragma unroll
      for (int e = 0; e < kVector; ++e) out[a * kVector + e] = 0;
      if (first(a) < D) load<kVector>(row + first(a), out + a * kVector);
    }
  }
  template <class T>
  __device__ void write(T* row, const float (&v)[kColumns]) const {
#pragma unroll
    for (int a = 0; a < kAccesses; ++a) {
      if (first(a) < D) store<kVector>(row + first(a), v + a * kVector);
    }
  }
};

// What a thread keeps of each of its columns while rows pass: in registers, or in words of shared
// memory that no other thread touches.
template <int kColumns>
struct InRegisters {
  float gamma_[kColumns], dgamma_[kColumns], dbeta_[kColumns];

  __device__ float& gamma(int j) { return gamma_[j]; }
  __device__ float& dgamma(int j) { return dgamma_[j]; }
  __device__ float& dbeta(int j) { return dbeta_[j]; }
};

template <int kColumns>
struct InShared {
  __device__ static float& word(int i) {
    extern __shared__ float words[];  // [3 kColumns, kThreads]
    return words[i * kThreads + threadIdx.x];
  }
  __device__ float& gamma(int j) { return word(j); }
  __device__ float& dgamma(int j) { return word(kColumns + j); }
  __device__ float& dbeta(int j) { return word(2 * kColumns + j); }
};

// gamma is read once a block, by way of shared memory where several rows share it.
template <int kVector, int kColumns, class Kept>
__device__ void read_gamma(const float* gamma, const Columns<kVector, kColumns>& columns,
                           Kept& kept, float* by_column) {
  float own[kColumns] = {};
  if constexpr (kColumns == kNarrow) {
    for (int i = threadIdx.x; i < columns.D; i += blockDim.x) by_column[i] = gamma[i];
    __syncthreads();
#pragma unroll
    for (int a = 0; a < columns.kAccesses; ++a) {
      const int column = columns.first(a);
      if (column >= columns.D) continue;
      if constexpr (kVector == 4) {  // one by one, four lanes would want each bank that they meet
        const float4 v = *reinterpret_cast<const float4*>(by_column + column);
        own[0] = v.x, own[1] = v.y, own[2] = v.z, own[3] = v.w;
      } else {
        own[a] = by_column[column];
      }
    }
  } else {
    columns.read(gamma, own);
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    kept.gamma(j) = own[j];
    kept.dgamma(j) = kept.dbeta(j) = 0;
  }
}

// The scalars of a row that dx needs besides its elements.
struct RowTerms {
  float mean, rstd, mean_g, mean_gx;
};

// What is the same for all rows.
struct Scale {
  float eps, by_D, by_root_D;  // 1 / D, 1 / sqrt(D)

  __device__ Scale(float e, std::int64_t D)
      : eps(e), by_D(1 / static_cast<float>(D)), by_root_D(1 / sqrtf(static_cast<float>(D))) {}
};

// sums: those of g and g (x - mean) for layer norm, of (x / sqrt(D))^2 and g x for RMS norm.
template <Norm norm>
__device__ RowTerms row_terms(RowStatistics s, float2 sums, const Scale& scale, bool present) {
  if constexpr (norm == Norm::layer)
    return {s.mean, s.rstd, sums.x * scale.by_D, s.rstd * (sums.y * scale.by_D)};
  const float q = present ? 1 / sqrtf(sums.x + scale.eps) : 0;
  return {0, q, 0, q * (sums.y * scale.by_D)};
}

template <Norm norm>
__device__ float2 row_addends(float x, float g, float mean, const Scale& scale) {
  if constexpr (norm == Norm::layer) return {g, g * (x - mean)};
  return {x * scale.by_root_D * (x * scale.by_root_D), g * x};
}

// Last stage: a warp adds up 32 columns over some of the blocks, then the warps of these columns
// meet. Columns are those of dgamma, then of dbeta.
template <class T>
__device__ void add_partials(const Backward<T>& p) {
  __shared__ float sums[kWarps][kWarp];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  const int partials = gridDim.x, together = min(warps, partials), at_once = warps / together;
  const int slice = warp / together, part = warp % together;
  const std::int64_t columns = 2 * p.D, per_block = std::int64_t{at_once} * kWarp;
  for (std::int64_t first = blockIdx.x * per_block; first < columns;
       first += gridDim.x * per_block) {
    const std::int64_t column = first + slice * kWarp + lane;
    float* out = column < p.D ? p.dgamma : p.dbeta;
    const bool wanted = slice < at_once && column < columns && out != nullptr;
    float sum = 0;
    for (int b = part; wanted && b < partials; b += together)
      sum += p.partial[b * p.partial_stride + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (wanted && part == 0) {
      for (int w = 1; w < together; ++w) sum += sums[warp + w][lane];
      out[column < p.D ? column : column - p.D] = sum;
    }
    __syncthreads();
  }
}

// The block's column sums: lanes that hold the same columns are added up, then teams, in
// team_sums [teams, G kNarrow].
template <int kVector, class T>
__device__ void add_teams(const Backward<T>& p, const Columns<kVector, kNarrow>& columns,
                          InRegisters<kNarrow>& kept, float* team_sums, float* mine) {
  const int G = columns.row_threads, team_threads = p.shares.team_threads();
  const int width = G * kNarrow, team = threadIdx.x / team_threads;
  for (int offset = G; offset < kWarp; offset *= 2) {
#pragma unroll
    for (int j = 0; j < kNarrow; ++j) {
      kept.dgamma(j) += __shfl_xor_sync(~0u, kept.dgamma(j), offset);
      kept.dbeta(j) += __shfl_xor_sync(~0u, kept.dbeta(j), offset);
    }
  }
  const auto add = [&](const float(&sums)[kNarrow], float* to) {
    if (static_cast<int>(threadIdx.x) % team_threads < G) {
#pragma unroll
      for (int a = 0; a < columns.kAccesses; ++a)
        store_shared<kVector>(team_sums + team * width + columns.first(a), sums + a * kVector);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < p.D; i += blockDim.x) {
      float sum = team_sums[i];
      for (int t = 1; t < p.shares.teams; ++t) sum += team_sums[t * width + i];
      to[i] = sum;
    }
    __syncthreads();
  };
  add(kept.dgamma_, mine);
  add(kept.dbeta_, mine + p.D);
}

// The rows of the next turns on their way to shared memory, each thread's columns to words that no
// other thread touches: a thread waits for its own copies, and no barrier is needed for them. Their
// statistics, which the teams share, are visible after the next barrier.
template <class T, Norm norm>
class Ring {
 public:
  static constexpr std::size_t kThreadBytes = 2 * kNarrow * sizeof(T);
  static std::size_t bytes(const Shares& s) {
    return kStages * (s.block() * kThreadBytes + padded(s.rows_at_once) * sizeof(RowStatistics));
  }

  __device__ Ring(void* shared, int rows_at_once)
      : statistics_(static_cast<RowStatistics*>(shared)),
        turn_rows_(padded(rows_at_once)),
        rows_(reinterpret_cast<T*>(statistics_ + kStages * turn_rows_) + threadIdx.x * kNarrow) {}

  // x and dy: of this thread's columns, or null. cached: of a row of the turn, or null.
  __device__ void fetch(const T* x, const T* dy, const RowStatistics* cached) {
    T* const to = row(put_);
    copy<kNarrow * sizeof(T)>(to, x);
    copy<kNarrow * sizeof(T)>(to + blockDim.x * kNarrow, dy);
    if (norm == Norm::layer && cached != nullptr)
      copy<sizeof(RowStatistics)>(&statistics_[put_ * turn_rows_ + threadIdx.x], cached);
    commit_copies();
    put_ = next(put_);
  }
  // All but the newest kPending turns have arrived.
  template <int kPending>
  __device__ void wait() {
    wait_copies<kPending>();
  }
  __device__ RowStatistics statistics(int row) const {
    return statistics_[take_ * turn_rows_ + row];
  }
  __device__ void take(float (&x)[kNarrow], float (&dy)[kNarrow]) {
    const T* const from = row(take_);
    load_shared(from, x);
    load_shared(from + blockDim.x * kNarrow, dy);
    take_ = next(take_);
  }

 private:
  template <int kBytes>
  __device__ static void copy(void* to, const void* from) {
    const std::uint32_t address = shared_address(to);
    const int bytes = from != nullptr ? kBytes : 0;  // the others become zeros
    if constexpr (kBytes == 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                   "r"(bytes)
                   : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from),
                   "r"(bytes)
                   : "memory");
    }
  }
  __device__ static void load_shared(const float* p, float (&out)[kNarrow]) {
    const float4 v = *reinterpret_cast<const float4*>(p);
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
  }
  __device__ static void load_shared(const __nv_bfloat16* p, float (&out)[kNarrow]) {
    unpack(*reinterpret_cast<const uint2*>(p), out);
  }
  // Whole accesses of 16 bytes.
  __host__ __device__ static int padded(int rows) { return (rows + 1) / 2 * 2; }
  __device__ T* row(int stage) const { return rows_ + stage * 2 * kNarrow * blockDim.x; }
  __device__ static int next(int stage) { return stage + 1 == kStages ? 0 : stage + 1; }

  RowStatistics* statistics_;  // [kStages, turn_rows_]
  int turn_rows_;
  T* rows_;  // [kStages, x and dy, threads, kNarrow], from this thread's on
  int put_ = 0, take_ = 0;
};

// Rows of up to kColumns * 1024 columns. Kept is InRegisters or InShared.
template <class T, Norm norm, int kVector, int kColumns, class Kept>
__global__ void __launch_bounds__(kThreads, 1) backward_rows(const Backward<T> p) {
  constexpr bool kRing = kColumns == kNarrow && kVector == kNarrow;
  // The next row is fetched while this is reduced.
  constexpr bool kAhead = kColumns == kNarrow && !kRing;
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  __shared__ RowStatistics statistics[2][kAhead ? kThreads : 1];
  __shared__ float2 warp_sums[2][kWarps];
  alignas(16) __shared__ float by_column[kColumns == kNarrow ? kThreads * kNarrow : 1];
  const int G = p.shares.row_threads, row_of_turn = threadIdx.x / G;
  const int rows_at_once = p.shares.rows_at_once;
  const Columns<kVector, kColumns> columns{G, static_cast<int>(threadIdx.x) % G,
                                           static_cast<int>(p.D)};
  const RowSum row_sum(G, warp_sums);
  const Scale scale(p.eps, p.D);

  Kept kept;
  read_gamma<kVector>(p.gamma, columns, kept, by_column);

  // Both count from the first row of a turn.
  const std::int64_t stride = std::int64_t{gridDim.x} * rows_at_once;
  std::int64_t left = p.rows - std::int64_t{blockIdx.x} * rows_at_once;
  std::int64_t at = (p.rows - left + row_of_turn) * p.D;  // of this thread's row, an element
  struct Row {
    float x[kColumns] = {}, dy[kColumns] = {};
  };
  const auto fetch = [&](std::int64_t from, bool present, Row& to) {
    if (present) {
      columns.read(p.x + from, to.x);
      columns.read(p.dy + from, to.dy);
    } else {
      to = {};
    }
  };
  const RowStatistics* cached = p.cache + (p.rows - left) + threadIdx.x;
  const auto fetch_statistics = [&](std::int64_t rows, RowStatistics* to) {
    const int i = threadIdx.x;
    if (norm == Norm::layer && i < rows_at_once && i < rows) to[i] = *cached;
    cached += stride;
  };

  // Of the ring: as left and at, of the first turn that is not on its way.
  std::int64_t ahead_left = left, ahead_at = at;
  Ring<T, norm> ring(dynamic_shared, rows_at_once);
  const auto fetch_turn = [&] {
    const bool there = row_of_turn < ahead_left && columns.first(0) < columns.D;
    const std::int64_t first = ahead_at + columns.first(0);
    const int i = threadIdx.x;
    ring.fetch(there ? p.x + first : nullptr, there ? p.dy + first : nullptr,
               i < rows_at_once && i < ahead_left ? cached : nullptr);
    ahead_left -= stride;
    ahead_at += stride * p.D;
    cached += stride;
  };

  Row next;
  if constexpr (kRing) {
    for (int i = 1; i < kStages; ++i) fetch_turn();
    ring.template wait<kStages - 2>();
  } else {
    if (kAhead) fetch(at, row_of_turn < left, next);
    fetch_statistics(left, statistics[0]);
  }
  __syncthreads();
  for (int turn = 0; left > 0; turn ^= 1) {
    const bool present = row_of_turn < left;
    const std::int64_t now_at = at;
    left -= stride;
    at += stride * p.D;
    Row now;
    RowStatistics s{};
    if constexpr (kRing) {
      fetch_turn();
      // The next turn has arrived: its statistics are to be visible after this turn's barrier.
      ring.template wait<kStages - 2>();
      if (norm == Norm::layer && present) s = ring.statistics(row_of_turn);
      ring.take(now.x, now.dy);
    } else {
      if constexpr (kAhead) {
        now = next;
        fetch(at, row_of_turn < left, next);
      } else {
        fetch(now_at, present, now);
      }
      if (norm == Norm::layer && present) s = statistics[turn][row_of_turn];
      fetch_statistics(left, statistics[turn ^ 1]);
    }
    float2 sums{};
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      sums = sums + row_addends<norm>(now.x[j], now.dy[j] * kept.gamma(j), s.mean, scale);
    sums = row_sum(sums, turn);  // its barrier is for the statistics too
    const RowTerms r = row_terms<norm>(s, sums, scale, present);

#pragma unroll
    for (int a = 0; a < columns.kAccesses; ++a) {
      const bool inside = present && columns.first(a) < columns.D;
      float residual[kVector] = {}, dx[kVector];
      if (p.dres != nullptr && inside) load<kVector>(p.dres + now_at + columns.first(a), residual);
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        const int j = a * kVector + e;
        const float xhat = (now.x[j] - r.mean) * r.rstd, g = now.dy[j] * kept.gamma(j);
        dx[e] = r.rstd * fmaf(-xhat, r.mean_gx, g - r.mean_g) + residual[e];
        kept.dgamma(j) += now.dy[j] * xhat;
        kept.dbeta(j) += now.dy[j];
      }
      if (p.dx != nullptr && inside) store<kVector>(p.dx + now_at + columns.first(a), dx);
    }
  }
  if (p.partial == nullptr) return;

  float* mine = p.partial + blockIdx.x * p.partial_stride;
  if constexpr (kColumns == kNarrow) {
    add_teams<kVector>(p, columns, kept, by_column, mine);
  } else {  // one team; its columns go out as they lie
#pragma unroll
    for (int a = 0; a < columns.kAccesses; ++a) {
      float dgamma[kVector], dbeta[kVector];
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        dgamma[e] = kept.dgamma(a * kVector + e);
        dbeta[e] = kept.dbeta(a * kVector + e);
      }
      if (columns.first(a) >= p.D) continue;
      store<kVector>(mine + columns.first(a), dgamma);
      store<kVector>(mine + p.D + columns.first(a), dbeta);
    }
  }
  cooperative_groups::this_grid().sync();
  add_partials(p);
}

// Rows of any length, a block a row: read twice, and the column sums of a block lie in its row of
// `partial`.
template <class T, Norm norm>
__global__ void __launch_bounds__(kThreads, 1) backward_long_rows(const Backward<T> p) {
  __shared__ float2 warp_sums[2][kWarps];
  const RowSum row_sum(kThreads, warp_sums);
  const Scale scale(p.eps, p.D);
  float *dgamma = nullptr, *dbeta = nullptr;
  if (p.partial != nullptr) {
    dgamma = p.partial + blockIdx.x * p.partial_stride;
    dbeta = dgamma + p.D;
  }
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x, turn ^= 1) {
    const T *x = p.x + row * p.D, *dy = p.dy + row * p.D;
    const RowStatistics s = norm == Norm::layer ? p.cache[row] : RowStatistics{};
    float2 sums{};
    for (std::int64_t i = threadIdx.x; i < p.D; i += blockDim.x) {
      const float g = static_cast<float>(dy[i]) * p.gamma[i];
      sums = sums + row_addends<norm>(static_cast<float>(x[i]), g, s.mean, scale);
    }
    sums = row_sum(sums, turn);
    const RowTerms r = row_terms<norm>(s, sums, scale, true);
    const bool first = row == blockIdx.x;
    for (std::int64_t i = threadIdx.x; i < p.D; i += blockDim.x) {
      const float d = static_cast<float>(dy[i]), g = d * p.gamma[i];
      const float xhat = (static_cast<float>(x[i]) - r.mean) * r.rstd;
      float dx = r.rstd * (g - r.mean_g - xhat * r.mean_gx);
      if (p.dres != nullptr) dx += static_cast<float>(p.dres[row * p.D + i]);
      if (p.dx != nullptr) store<1>(p.dx + row * p.D + i, &dx);
      if (p.partial == nullptr) continue;
      dgamma[i] = (first ? 0 : dgamma[i]) + d * xhat;
      dbeta[i] = (first ? 0 : dbeta[i]) + d;
    }
  }
  if (p.partial == nullptr) return;
  cooperative_groups::this_grid().sync();
  add_partials(p);
}

template <class T>
struct Forward {
  std::int64_t rows, D;
  float eps;
  const T* x;
  const float *gamma, *beta;
  T* y;
  RowStatistics* cache;
  Shares shares;
};

// The statistics of a row; `each(f)` calls f(x) for every element of this thread's.
template <class Each>
__device__ RowStatistics statistics_of(Each each, const Scale& scale, const RowSum& row_sum,
                                       int& turn) {
  const auto sum = [&](auto term) {
    float part = 0;
    each([&](float x) { part += term(x); });
    return row_sum(make_float2(part, 0), turn ^= 1).x;
  };
  float mean = sum([](float x) { return x; }) * scale.by_D;
  mean += sum([&](float x) { return x - mean; }) * scale.by_D;
  const float variance = sum([&](float x) {
    const float d = (x - mean) * scale.by_root_D;
    return d * d;
  });
  return {mean, 1 / sqrtf(variance + scale.eps)};
}

template <class T, int kVector, int kColumns>
__global__ void __launch_bounds__(kThreads, 1) forward_rows(const Forward<T> p) {
  __shared__ float2 warp_sums[2][kWarps];
  const int G = p.shares.row_threads;
  const Columns<kVector, kColumns> columns{G, static_cast<int>(threadIdx.x) % G,
                                           static_cast<int>(p.D)};
  const std::int64_t row = std::int64_t{blockIdx.x} * p.shares.rows_at_once + threadIdx.x / G;
  const bool present = row < p.rows;
  float x[kColumns] = {};
  if (present) columns.read(p.x + row * p.D, x);
  const auto each = [&](auto f) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      if (columns.first(j / kVector) < p.D) f(x[j]);
    }
  };
  int turn = 0;
  const RowStatistics s = statistics_of(each, Scale(p.eps, p.D), RowSum(G, warp_sums), turn);
  if (!present) return;
  float gamma[kColumns], beta[kColumns];
  columns.read(p.gamma, gamma);
  columns.read(p.beta, beta);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) x[j] = (x[j] - s.mean) * s.rstd * gamma[j] + beta[j];
  columns.write(p.y + row * p.D, x);
  if (columns.thread == 0) p.cache[row] = s;
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1) forward_long_rows(const Forward<T> p) {
  __shared__ float2 warp_sums[2][kWarps];
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = p.x + row * p.D;
    const auto each = [&](auto f) {
      for (std::int64_t i = threadIdx.x; i < p.D; i += blockDim.x) f(static_cast<float>(x[i]));
    };
    const RowStatistics s =
        statistics_of(each, Scale(p.eps, p.D), RowSum(kThreads, warp_sums), turn);
    for (std::int64_t i = threadIdx.x; i < p.D; i += blockDim.x) {
      const float y = (static_cast<float>(x[i]) - s.mean) * s.rstd * p.gamma[i] + p.beta[i];
      store<1>(p.y + row * p.D + i, &y);
    }
    if (threadIdx.x == 0) p.cache[row] = s;
  }
}

// D up to kMostColumns.
Shares shares_of(std::int64_t rows, std::int64_t D, std::int64_t multiprocessors) {
  Shares s;
  const bool wide = D > std::int64_t{kNarrow} * kThreads;
  const auto threads = static_cast<int>(ceil_div(D, kNarrow));
  if (wide) {
    s.row_threads = kThreads;
  } else if (threads > kWarp) {
    s.row_threads = static_cast<int>(ceil_div(threads, kWarp)) * kWarp;
  } else {
    while (s.row_threads < threads) s.row_threads *= 2;
  }
  const int rows_of_team = s.team_threads() / s.row_threads;
  const std::int64_t wanted = ceil_div(rows, multiprocessors * rows_of_team);
  const int most = kThreads / s.team_threads();
  s.teams = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, most));
  s.rows_at_once = s.teams * rows_of_team;
  return s;
}

// Blocks that all take the same number of turns, but for the last: see Balance.
std::int64_t blocks_of(std::int64_t rows, const Shares& s, std::int64_t multiprocessors) {
  const std::int64_t turns = ceil_div(rows, multiprocessors * s.rows_at_once);
  const std::int64_t rows_of_nine_tenths = rows * 10 / (multiprocessors * 9);
  const std::int64_t paying = std::min(kRowsThatPay, rows_of_nine_tenths) / s.rows_at_once;
  return ceil_div(rows, std::max(turns, paying) * s.rows_at_once);
}

std::int64_t multiprocessors_of(const assay_ctx* ctx) {
  int n = 0;
  cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, ctx->device);
  return std::max(n, 1);
}

template <class... Pointers>
bool aligned(std::size_t bytes, const Pointers*... p) {
  return ((reinterpret_cast<std::uintptr_t>(p) % bytes == 0) && ...);
}

template <class Problem>
void launch_together(void (*kernel)(Problem), std::int64_t blocks, int threads,
                     std::size_t shared_bytes, cudaStream_t stream, Problem& p) {
  if (shared_bytes > 0) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(shared_bytes));
  }
  void* arguments[] = {&p};
  cudaLaunchCooperativeKernel(
      reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
      dim3(static_cast<unsigned>(threads)), arguments, shared_bytes, stream);
}

template <class T, Norm norm>
void launch_backward(std::int64_t blocks, cudaStream_t stream, Backward<T>& p) {
  if (p.D > kMostColumns)
    return launch_together(&backward_long_rows<T, norm>, blocks, kThreads, 0, stream, p);
  const bool vectors = p.D % 4 == 0 && aligned(4 * sizeof(T), p.dy, p.x, p.dres, p.dx) &&
                       aligned(4 * sizeof(float), p.gamma);
  const int threads = p.shares.block();
  if (p.D <= std::int64_t{kNarrow} * kThreads) {
    const auto kernel = vectors ? &backward_rows<T, norm, 4, kNarrow, InRegisters<kNarrow>>
                                : &backward_rows<T, norm, 1, kNarrow, InRegisters<kNarrow>>;
    return launch_together(kernel, blocks, threads, vectors ? Ring<T, norm>::bytes(p.shares) : 0,
                           stream, p);
  }
  const auto kernel = vectors ? &backward_rows<T, norm, 4, kWide, InShared<kWide>>
                              : &backward_rows<T, norm, 1, kWide, InShared<kWide>>;
  constexpr std::size_t shared_bytes = 3 * kWide * kThreads * sizeof(float);
  launch_together(kernel, blocks, threads, shared_bytes, stream, p);
}

// The arguments are valid, D is not 0. Fields of `p` that follow from the others are set here.
template <class T, Norm norm>
int backward(assay_ctx* ctx, Backward<T> p) {
  const cudaStream_t stream = stream_of(ctx);
  if (p.rows == 0) {
    const std::size_t bytes = static_cast<std::size_t>(p.D) * sizeof(float);
    if (p.dgamma != nullptr) cudaMemsetAsync(p.dgamma, 0, bytes, stream);
    if (p.dbeta != nullptr) cudaMemsetAsync(p.dbeta, 0, bytes, stream);
    return launch_status();
  }
  const bool sums = p.dgamma != nullptr || p.dbeta != nullptr;
  if (!sums && p.dx == nullptr) return ASSAY_OK;
  const std::int64_t multiprocessors = multiprocessors_of(ctx);
  p.partial_stride = ceil_div(2 * p.D, 8) * 8;
  const std::int64_t partial_bytes = p.partial_stride * std::int64_t{sizeof(float)};
  std::int64_t blocks = std::min(p.rows, multiprocessors);
  if (p.D <= kMostColumns) {
    p.shares = shares_of(p.rows, p.D, multiprocessors);
    blocks = blocks_of(p.rows, p.shares, multiprocessors);
  } else {
    blocks = std::min(blocks, std::max<std::int64_t>(1, kMostScratch / partial_bytes));
  }
  if (sums) {
    const auto bytes = static_cast<std::size_t>(blocks * partial_bytes);
    p.partial = static_cast<float*>(ctx->alloc(ctx, bytes, 256, 1));
    if (p.partial == nullptr) return ASSAY_ENOMEM;
  }
  launch_backward<T, norm>(blocks, stream, p);
  if (sums) ctx->free(ctx, p.partial);
  return launch_status();
}

template <class T>
int forward(assay_ctx* ctx, Forward<T> p) {
  const cudaStream_t stream = stream_of(ctx);
  const auto launch = [&](auto kernel, std::int64_t blocks, int threads) {
    kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(p);
    return launch_status();
  };
  const std::int64_t multiprocessors = multiprocessors_of(ctx);
  if (p.D > kMostColumns)
    return launch(&forward_long_rows<T>, std::min(p.rows, multiprocessors), kThreads);
  p.shares = shares_of(p.rows, p.D, multiprocessors);
  const std::int64_t blocks = ceil_div(p.rows, p.shares.rows_at_once);
  const bool vectors = p.D % 4 == 0 && aligned(4 * sizeof(T), p.x, p.y) &&
                       aligned(4 * sizeof(float), p.gamma, p.beta);
  const bool narrow = p.D <= std::int64_t{kNarrow} * kThreads;
  return launch(vectors  ? narrow ? &forward_rows<T, 4, kNarrow> : &forward_rows<T, 4, kWide>
                 : narrow ? &forward_rows<T, 1, kNarrow>
                         : &forward_rows<T, 1, kWide>,
                blocks, p.shares.block());
}

int check(const ln_params* p, bool inputs_present) {
  if (p == nullptr || p->size != sizeof(ln_params)) return ASSAY_EINVAL;
  if (p->rows < 0 || p->D < 0 || !(p->eps >= 0)) return ASSAY_EINVAL;
  if (p->rows > 0 && p->D > 0 && !inputs_present) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 || p->dtype == ASSAY_BF16 ? ASSAY_OK : ASSAY_ENOTSUP;
}

template <class T, Norm norm>
int backward_as(assay_ctx* ctx, const ln_params& p, const void* dy, const void* x,
                const float* gamma, const void* cache, const void* dres, void* dx, float* dgamma,
                float* dbeta) {
  return backward<T, norm>(ctx, {.rows = p.rows,
                                 .D = p.D,
                                 .eps = p.eps,
                                 .dy = static_cast<const T*>(dy),
                                 .x = static_cast<const T*>(x),
                                 .gamma = gamma,
                                 .cache = static_cast<const RowStatistics*>(cache),
                                 .dres = static_cast<const T*>(dres),
                                 .dx = static_cast<T*>(dx),
                                 .dgamma = dgamma,
                                 .dbeta = dbeta,
                                 .partial = nullptr,
                                 .partial_stride = 0,
                                 .shares = {}});
}

template <Norm norm>
int backward_any(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                 const float* gamma, const void* cache, const void* dres, void* dx, float* dgamma,
                 float* dbeta) {
  const bool present =
      dy != nullptr && x != nullptr && gamma != nullptr && (norm == Norm::rms || cache != nullptr);
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->D == 0) return ASSAY_OK;
  const auto run =
      p->dtype == ASSAY_F32 ? &backward_as<float, norm> : &backward_as<__nv_bfloat16, norm>;
  return run(ctx, *p, dy, x, gamma, cache, dres, dx, dgamma, dbeta);
}

template <class T>
int forward_as(assay_ctx* ctx, const ln_params& p, const void* x, const float* gamma,
               const float* beta, void* y, void* cache) {
  return forward<T>(ctx, {.rows = p.rows,
                          .D = p.D,
                          .eps = p.eps,
                          .x = static_cast<const T*>(x),
                          .gamma = gamma,
                          .beta = beta,
                          .y = static_cast<T*>(y),
                          .cache = static_cast<RowStatistics*>(cache),
                          .shares = {}});
}

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  if (check(p, true) == ASSAY_EINVAL) return 0;
  return static_cast<std::size_t>(p->rows) * sizeof(RowStatistics);
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const bool present =
      x != nullptr && gamma != nullptr && beta != nullptr && y != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->rows == 0 || p->D == 0) return ASSAY_OK;
  const auto run = p->dtype == ASSAY_F32 ? &forward_as<float> : &forward_as<__nv_bfloat16>;
  return run(ctx, *p, x, gamma, beta, y, cache);
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  return backward_any<Norm::layer>(ctx, p, dy, x, gamma, cache, nullptr, dx, dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy,
                                    const void* x, const float* gamma, const void* cache,
                                    const void* dres, void* dx, float* dgamma, float* dbeta) {
  if (check(p, true) == ASSAY_OK && p->rows > 0 && p->D > 0 && dres == nullptr) return ASSAY_EINVAL;
  return backward_any<Norm::layer>(ctx, p, dy, x, gamma, cache, dres, dx, dgamma, dbeta);
}

extern "C" int rms_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                            const float* gamma, void* dx, float* dgamma) {
  return backward_any<Norm::rms>(ctx, p, dy, x, gamma, nullptr, nullptr, dx, dgamma, nullptr);
}
