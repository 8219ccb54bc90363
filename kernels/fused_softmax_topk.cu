// Softmax and top-k for a GPU of the H100 class: one launch, every logit read once.
//
// The problem. rows x V logits are read, K columns and probabilities a row are written: 4 bytes a
// logit (2 in bf16), beside which the outputs are nothing. A multiprocessor has 18 bytes a clock of
// the memory's 4.8 TB/s, so 32 logits every 7 clocks: 28 issue slots, of which 14 may be integer
// and 3.5 special functions. Reading costs about 10 slots a logit of a warp: load, keep, maximum,
// difference, 2^x, sum. What is left, almost two thirds, is there to find the K. 16 x 128256 is 8.2
// MB, 1.7 us: less than a launch (3 us), so a second one would cost more than all logits do.
//
// Tiles. A block has one row, or a slice of one where there are fewer rows than multiprocessors;
// slices of a row meet by the grid's barrier (a cooperative launch). The slice is kept on the chip,
// up to 200 KiB in shared memory: 50257 fp32 logits fit. So the bound of the K may be found after
// all is read, and nothing is read again. Longer slices pass in several tiles. Where there are more
// rows than multiprocessors, two blocks of half the threads and half the memory share one: memory
// is busy with the row of one while the other selects. Rows of odd ld are not aligned: up to 7
// logits (15 in bf16) at either end are single loads, so that the rest are accesses of 16 bytes
// that begin at a sector, four of them under way in a thread: 1024 * 64 bytes = 64 KiB a
// multiprocessor, twice what 4.8 TB/s need at 900 ns of latency.
//
// Sum. Each thread keeps its maximum and the sum of 2^((x - max) log2(e) / T); one extra 2^x every
// 16 logits moves the sum to a new maximum. NaN and +inf need no test: both make the sum NaN.
//
// Selection. A thread's maximum is one logit, and different threads have different ones. So the
// q-th largest of the threads' maxima is a lower bound of the q-th largest logit, and close to it
// while q is well below the number of threads. Bisection finds it: a comparison a thread and a
// barrier that counts. Of a row in S slices each says its q-th, q = K / S; where S of them have q
// logits above a bound each, the row has K: the bound is the smallest (or, q being rounded up, the
// one that makes K). With that bound each thread looks again through those of its logits that may
// pass, in shared memory; of 128256 random logits and K = 256 about 350 pass. They are sorted by
// value and column as one 64-bit key: every key is different, so ties are exact and the result does
// not depend on who came first.
// Whatever the data, the bound is only where to start: when more pass than there is room for,
// bisection over the keys themselves (64 steps at most) finds a bound that K to 2 K of them pass.
//
// Banks. Keys have 8 bytes, so that half a warp takes all banks once where its keys lie side by
// side. Steps of the sort below 16 would take half of the banks twice, so those up to 32 are done
// between registers, without a barrier. Replayed are atomics: lanes whose keys pass together take
// their places one after another, up to 5 % of all passes in the three shapes below, and most of
// them where nearly all of a small row passes. One atomic for a warp costs more issue slots than
// it saves: 1 % of the time. The nucleus of top-p, which one warp adds up at the end, reads halves
// of keys.
//
// Merge. Slices put keys that pass into scratch memory, 2 K at most each. One block of the row
// waits for all others, collects, sorts and writes. K up to 8192: the keys of twice as many fit
// beside a tile.
//
// Modelled on an H200: 8.5 us for 128 x 50257 and K = 50 (floor 8.4), 5.2 us for 512 x 4096 and K =
// 8 (floor 4.8), where memory and launch are the limit; about 9.2 us for 16 x 128256 and K = 256
// (floor 4.7), where the merging blocks' sort comes last. Measured on one: 32.4 us for 256 x 50257,
// 37.2 us for 4096 x 4096, 26.1 us for 16 x 128256, where copies take 12.0, 15.7 and 1.9: waiting at
// barriers, which the model does not price, is the limit.
//
// Tried and rejected:
// - a heap or sorted list of K a thread: K log K of registers or local memory, and K lists to merge
// - a buffer that is sorted when it is full (textbook): each sort of 2048 takes 66 steps of the
//   block, 6000 clocks, where 128256 / 8 logits are read in 3500
// - radix select over the logits: a histogram takes an atomic each, and logits of one exponent meet
//   in one bin, 32 passes a warp
// - the exact K-th of each slice before the merge: S K keys of 8 bytes each way are 6 % of the
//   bytes for K = 256, and the merge sorts 2048 in place of 512
// - no common bound: each slice lists K / S + 3 sqrt(K / S), and what ends above the K-th of all is
//   read again. One barrier less, but where the winners lie side by side one block reads and sorts
//   alone: 12 us in place of 8.5
// - the slice in registers: 49 of 64 a thread at V = 50257, and loops that must be unrolled
// - 2^(x s - max s) as one multiply-add: the rounding of max s is lost from the sum, 1e-3 at 1e4
#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cstdint>
#include <utility>

#include "abi.h"
#include "common/device.h"

namespace {

constexpr int kMostThreads = kMostWarps * kWarp;
constexpr int kMostSlices = 256;
constexpr int kMostK = 8192;
constexpr int kUnder = 4;  // accesses under way in a thread
constexpr int kSharedBytes = 216 << 10;
constexpr std::int64_t kLeastSlice = 4096;  // logits, below which a row is not divided

// A logit and its column; a larger key comes first. -0 and +0 have the same bits.
using Key = unsigned long long;

__device__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);
  return bits ^ (static_cast<unsigned>(static_cast<int>(bits) >> 31) | 0x80000000u);
}
__device__ float value_of(unsigned ordered) {
  return __uint_as_float((ordered & 0x80000000u) != 0 ? ordered ^ 0x80000000u : ~ordered);
}
__device__ Key key_of(float x, unsigned column) { return Key{ordered(x)} << 32 | ~column; }
__device__ float value_of(Key key) { return value_of(static_cast<unsigned>(key >> 32)); }
__device__ int column_of(Key key) { return static_cast<int>(~static_cast<unsigned>(key)); }
__device__ Key lowest_key() { return Key{ordered(-INFINITY)} << 32; }

struct SliceHead {  // of a slice, in scratch memory
  float max, sum;
  unsigned bound;  // a value that at least q of its logits reach, ordered
  int passed;      // how many keys are in its list
};

struct Problem {
  std::int64_t rows, V, ld;
  int K;
  float temperature;
  const void* logits;
  std::int32_t* idx;
  float *prob, *lse;   // lse may be null
  bool logarithm;      // prob is its logarithm
  float top_p;         // of the nucleus
  std::int32_t* kept;  // its size, or null
  // How the work is divided.
  int slices;
  std::int64_t slice_columns;
  int k;         // min(K, V)
  int capacity;  // keys in front of shared memory
  int tile;      // accesses of 16 bytes behind them
  int room;      // keys that fit into all of shared memory: a power of two
  // Scratch memory, where rows have several slices.
  SliceHead* heads;  // [rows * slices]
  Key* lists;        // [rows * slices, list_capacity]
  int list_capacity;
};

__device__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Sums and maxima over the block, in every thread. All threads call; two barriers.
struct BlockReduce {
  unsigned (&words)[kMostWarps];

  template <class Combine>
  __device__ unsigned operator()(unsigned of_warp, unsigned neutral, Combine combine) const {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    if (lane == 0) words[warp] = of_warp;
    __syncthreads();
    const unsigned v = lane < static_cast<int>(blockDim.x) / kWarp ? words[lane] : neutral;
    const unsigned result = combine(v);
    __syncthreads();
    return result;
  }
  __device__ unsigned max(unsigned v) const {
    const auto warp_max = [](unsigned x) { return __reduce_max_sync(~0u, x); };
    return (*this)(warp_max(v), 0, warp_max);
  }
  __device__ unsigned min(unsigned v) const {
    const auto warp_min = [](unsigned x) { return __reduce_min_sync(~0u, x); };
    return (*this)(warp_min(v), ~0u, warp_min);
  }
  __device__ unsigned sum(unsigned v) const {
    const auto warp_sum = [](unsigned x) { return __reduce_add_sync(~0u, x); };
    return (*this)(warp_sum(v), 0, warp_sum);
  }
  __device__ float sum(float v) const {
    const auto warp_sum = [](unsigned bits) {
      float x = __uint_as_float(bits);
      for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
      return __float_as_uint(x);
    };
    return __uint_as_float((*this)(warp_sum(__float_as_uint(v)), 0, warp_sum));
  }
};

// Where to begin: an ordered value that at least q of the threads' maxima reach, and few more.
__device__ unsigned bound_of_maxima(unsigned mine, int q, const BlockReduce& block) {
  unsigned low = block.min(mine), high = block.max(mine);  // low is reached by all
  if (__syncthreads_count(mine >= high) >= q) return high;
  while (high - low > 1) {
    const unsigned middle = low + (high - low) / 2;
    const int n = __syncthreads_count(mine >= middle);
    if (n < q) {
      high = middle;
      continue;
    }
    low = middle;
    if (n <= q + q / 4) break;
  }
  return low;
}

// A key that at least `least` and at most `most` keys reach, by a function that counts those of the
// whole block; `low` is reached by at least `least`. Keys are different, so there is one.
template <class Count>
__device__ Key bisect(Key low, int least, int most, Count count) {
  Key high = Key{ordered(INFINITY)} << 32 | 0xffffffffu;
  while (high - low > 1) {
    const Key middle = low + (high - low) / 2;
    const unsigned n = count(middle);
    if (n < static_cast<unsigned>(least)) {
      high = middle;
      continue;
    }
    low = middle;
    if (n <= static_cast<unsigned>(most)) break;
  }
  return low;
}

__device__ unsigned count_in(const Key* keys, int n, Key bound) {
  unsigned mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine += keys[i] >= bound;
  return mine;
}

// Keeps the keys that reach the bound. All threads call; ends with a barrier.
__device__ void compact(Key* keys, int& n, Key bound) {
  const int before = n;
  __syncthreads();
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  for (int first = 0; first < before; first += blockDim.x) {
    const int i = first + static_cast<int>(threadIdx.x);
    const Key key = i < before ? keys[i] : 0;
    __syncthreads();  // what is written lies before what is yet to be read
    if (i < before && key >= bound) keys[atomicAdd(&n, 1)] = key;
    __syncthreads();
  }
}

// The steps of up to 32 of a bitonic network, for 64 keys of a warp from place `base` on, two a
// lane: between registers. In shared memory steps below 16 would meet half of the banks twice. Runs
// are those from `run` to `last_run`.
__device__ void sort_in_warp(Key* keys, int size, int base, int run, int last_run) {
  const int lane = threadIdx.x % kWarp;
  Key key[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int place = base + h * kWarp + lane;
    key[h] = place < size ? keys[place] : 0;
  }
  for (; run <= last_run; run *= 2) {
    if (run > kWarp && (key[0] < key[1]) == ((base & run) == 0)) {
      const Key low = key[0];
      key[0] = key[1];
      key[1] = low;
    }
    for (int step = min(run, kWarp) / 2; step > 0; step /= 2) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int place = base + h * kWarp + lane;
        const bool larger = ((place & step) == 0) == ((place & run) == 0);
        const Key other = __shfl_xor_sync(kAll, key[h], step);
        if ((other > key[h]) == larger) key[h] = other;
      }
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int place = base + h * kWarp + lane;
    if (place < size) keys[place] = key[h];
  }
}

// Sorts keys[0, size), size a power of two, largest first: a bitonic network, a pair a thread. Only
// the warps that have pairs meet at its barriers.
__device__ void sort(Key* keys, int size) {
  constexpr int kWarpKeys = 2 * kWarp;
  const int threads = min(max(size / 2, kWarp), static_cast<int>(blockDim.x));
  if (static_cast<int>(threadIdx.x) < threads) {
    const auto meet = [&] {
      if (threads == kWarp) {
        __syncwarp();
      } else {
        asm volatile("barrier.sync 1, %0;" ::"r"(threads) : "memory");
      }
    };
    const auto in_warps = [&](int first_run, int last_run) {
      const int first = static_cast<int>(threadIdx.x) / kWarp * kWarpKeys;
      for (int base = first; base < size; base += 2 * threads)
        sort_in_warp(keys, size, base, first_run, last_run);
      meet();
    };
    in_warps(2, min(size, kWarpKeys));
    for (int run = 2 * kWarpKeys; run <= size; run *= 2) {
      for (int step = run / 2; step > kWarp; step /= 2) {
        for (int pair = threadIdx.x; pair < size / 2; pair += threads) {
          const int low = 2 * pair - (pair & (step - 1)), high = low + step;
          const Key a = keys[low], b = keys[high];
          if ((a < b) == ((low & run) == 0)) {
            keys[low] = b;
            keys[high] = a;
          }
        }
        meet();
      }
      in_warps(run, run);
    }
  }
  __syncthreads();
}

__device__ int power_of_two(int n) {  // n or more
  return n <= 1 ? 1 : 1 << (32 - __clz(n - 1));
}

// 16 bytes of logits.
template <class T>
struct Pack;

template <>
struct Pack<float> {
  static constexpr int kSize = 4;
  float x[kSize];
  __device__ explicit Pack(uint4 v) {
    x[0] = __uint_as_float(v.x), x[1] = __uint_as_float(v.y);
    x[2] = __uint_as_float(v.z), x[3] = __uint_as_float(v.w);
  }
  __device__ float largest() const { return fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3])); }
};

template <>
struct Pack<__nv_bfloat16> {
  static constexpr int kSize = 8;
  float x[kSize];
  __device__ explicit Pack(uint4 v) {
    const unsigned pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) x[2 * i] = low(pairs[i]), x[2 * i + 1] = high(pairs[i]);
  }
  __device__ float largest() const {
    float most = x[0];
#pragma unroll
    for (int i = 1; i < kSize; ++i) most = fmaxf(most, x[i]);
    return most;
  }
  __device__ static float low(unsigned pair) { return __uint_as_float(pair << 16); }
  __device__ static float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
};

// A thread's maximum and the sum of 2^((x - max) scale). The maximum is finite from the start, so
// that nothing is subtracted from itself but +inf.
struct Sum {
  float max = -FLT_MAX, sum = 0;

  __device__ void move_to(float larger, float scale) {
    sum *= exp2_approx((max - larger) * scale);
    max = larger;
  }
  __device__ void rise(float larger, float scale) { move_to(fmaxf(max, larger), scale); }
  // None is larger than max.
  template <int n>
  __device__ void add(const float (&x)[n], float scale) {
#pragma unroll
    for (int i = 0; i < n; ++i) sum += exp2_approx((x[i] - max) * scale);
  }
};

// A slice of a row: accesses of 16 bytes, and single logits before and behind them, at most one for
// each of the first threads.
template <class T>
struct Slice {
  static constexpr int kPack = Pack<T>::kSize;
  const T* row;
  std::int64_t body = 0, packs = 0;  // the first column at a sector; accesses from there
  std::int64_t loose = -1;           // this thread's single column, or -1

  __device__ Slice(const T* r, std::int64_t begin, std::int64_t end) : row(r) {
    if (begin >= end) return;
    const auto address = reinterpret_cast<std::uintptr_t>(row + begin);
    const auto head = static_cast<std::int64_t>((0 - address) % 32 / sizeof(T));
    body = min(begin + head, end);
    packs = (end - body) / kPack;
    const std::int64_t tail = body + packs * kPack, i = threadIdx.x;
    if (i < body - begin) {
      loose = begin + i;
    } else if (i - (body - begin) < end - tail) {
      loose = tail + i - (body - begin);
    }
  }
  __device__ const uint4* pack(std::int64_t i) const {
    return reinterpret_cast<const uint4*>(row + body) + i;
  }
};

// The part of a slice that is on the chip. A thread looks only at what it has put there itself.
template <class T>
struct Tile {
  uint4* kept;
  std::int64_t first_column = 0;
  int packs = 0;
  float largest = -INFINITY;  // of this thread's logits in it
  float loose = 0;
  std::int64_t loose_column = -1;

  __device__ void read(const Slice<T>& slice, std::int64_t first, int n, Sum& sum, float scale) {
    first_column = slice.body + first * Slice<T>::kPack;
    packs = n;
    largest = -INFINITY;
    loose_column = first == 0 ? slice.loose : -1;
    if (loose_column >= 0) {
      const float x[1] = {static_cast<float>(slice.row[loose_column])};
      loose = largest = x[0];
      sum.rise(x[0], scale);
      sum.add(x, scale);
    }
    const int threads = blockDim.x;
    int i = threadIdx.x;
    const uint4* from = slice.pack(first + i);
    for (; i + (kUnder - 1) * threads < n; i += kUnder * threads, from += kUnder * threads)
      take<kUnder>(from, i, sum, scale);
    for (; i < n; i += threads, from += threads) take<1>(from, i, sum, scale);
  }

  // f(x, column) for each of this thread's logits of at least `least`.
  template <class F>
  __device__ void each(float least, F f) const {
    if (!(largest >= least)) return;
    if (loose_column >= 0 && loose >= least) f(loose, static_cast<unsigned>(loose_column));
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
      const Pack<T> pack(kept[i]);
      if (!(pack.largest() >= least)) continue;
#pragma unroll
      for (int e = 0; e < Slice<T>::kPack; ++e) {
        if (pack.x[e] >= least)
          f(pack.x[e], static_cast<unsigned>(first_column + i * Slice<T>::kPack + e));
      }
    }
  }

 private:
  // `count` accesses, all under way before the first is used.
  template <int count>
  __device__ void take(const uint4* from, int i, Sum& sum, float scale) {
    const int threads = blockDim.x;
    uint4 v[count];
#pragma unroll
    for (int u = 0; u < count; ++u) v[u] = __ldcs(from + u * threads);
    float most = -INFINITY;
#pragma unroll
    for (int u = 0; u < count; ++u) {
      kept[i + u * threads] = v[u];
      most = fmaxf(most, Pack<T>(v[u]).largest());
    }
    largest = fmaxf(largest, most);
    sum.rise(most, scale);
#pragma unroll
    for (int u = 0; u < count; ++u) sum.add(Pack<T>(v[u]).x, scale);
  }
};

// The keys of a block that reach its bound, all of those that were read so far.
struct Candidates {
  Key* keys;
  int& n;  // shared
  int capacity;
  Key bound = lowest_key();

  // Adds those of the tile; raises the bound when there is no room for all.
  template <class T>
  __device__ void collect(const Tile<T>& tile, int k, const BlockReduce& block) {
    const int before = n;
    __syncthreads();
    append(tile);
    const bool fits = n <= capacity;
    __syncthreads();
    if (fits) return;
    if (threadIdx.x == 0) n = before;
    bound = bisect(bound, k, capacity / 2, [&](Key middle) {
      unsigned mine = count_in(keys, before, middle);
      tile.each(value_of(middle),
                [&](float x, unsigned column) { mine += key_of(x, column) >= middle; });
      return block.sum(mine);
    });
    drop();
    append(tile);
  }
  // At least k stay.
  __device__ void raise(int k, int most, const BlockReduce& block) {
    bound =
        bisect(bound, k, most, [&](Key middle) { return block.sum(count_in(keys, n, middle)); });
    drop();
  }
  __device__ void drop() { compact(keys, n, bound); }

 private:
  // Counts those that find no room.
  template <class T>
  __device__ void append(const Tile<T>& tile) {
    tile.each(value_of(bound), [&](float x, unsigned column) {
      const Key key = key_of(x, column);
      if (key < bound) return;
      const int at = atomicAdd(&n, 1);
      if (at < capacity) keys[at] = key;
    });
    __syncthreads();
  }
};

// What a row comes to. The keys are sorted.
__device__ void write_row(const Problem& p, std::int64_t row, Key* keys, int n, float max,
                          float sum) {
  const bool poisoned = isnan(sum);
  const float log_sum = logf(sum);
  if (threadIdx.x == 0 && p.lse != nullptr) {
    // In double: the quotient alone, rounded at its size, may be all of the error that is allowed.
    const double lse = static_cast<double>(max) / static_cast<double>(p.temperature) +
                       static_cast<double>(log_sum);
    p.lse[row] = poisoned ? NAN : sum > 0 ? static_cast<float>(lse) : -INFINITY;
  }
  for (int i = threadIdx.x; i < p.K; i += blockDim.x) {
    int column = -1;
    float logp = poisoned ? NAN : -INFINITY;
    if (!poisoned && i < min(n, p.k)) {
      column = column_of(keys[i]);
      const float x = value_of(keys[i]);
      // The difference first: x / T - lse would round twice at the size of lse.
      if (x > -INFINITY) logp = (x - max) / p.temperature - log_sum;
    }
    const float probability = p.logarithm ? logp : expf(logp);
    p.idx[row * p.K + i] = column;
    p.prob[row * p.K + i] = probability;
    if (p.kept != nullptr && i < n) keys[i] = __float_as_uint(probability);
  }
  if (p.kept == nullptr) return;
  // The nucleus: the first warp adds up 32 slots at a time.
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  const bool empty = poisoned || !(sum > 0);
  const int slots = empty ? 0 : min(n, p.k), lane = threadIdx.x;
  int kept = slots;
  float before = 0;
  for (int first = 0; first < slots; first += kWarp) {
    const int i = first + lane;
    float part = i < slots ? __uint_as_float(static_cast<unsigned>(keys[i])) : 0;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const float left = __shfl_up_sync(~0u, part, offset);
      if (lane >= offset) part += left;
    }
    const unsigned reached = __ballot_sync(~0u, i < slots && before + part >= p.top_p);
    if (reached != 0) {
      kept = first + __ffs(static_cast<int>(reached));
      break;
    }
    before += __shfl_sync(~0u, part, kWarp - 1);
  }
  if (lane == 0) p.kept[row] = kept;
}

// Sorts what was found and writes the row; n keys, of which the k largest of the row are some.
__device__ void finish_row(const Problem& p, std::int64_t row, Candidates& c, float max, float sum,
                           const BlockReduce& block) {
  if (p.k > 0) {
    const int most = 2 * power_of_two(p.k);
    if (c.n > most) c.raise(p.k, most, block);
    const int n = c.n, size = power_of_two(n);
    for (int i = n + static_cast<int>(threadIdx.x); i < size; i += blockDim.x) c.keys[i] = 0;
    __syncthreads();
    sort(c.keys, size);
  }
  write_row(p, row, c.keys, c.n, max, sum);
}

// The bound that all slices of a row agree on: of each, q of its logits reach its own.
__device__ Key bound_of_slices(const Problem& p, const SliceHead* heads, int q, unsigned& chosen) {
  const int slices_for_k = (p.k + q - 1) / q;
  for (int s = threadIdx.x; s < p.slices; s += blockDim.x) {
    const unsigned mine = heads[s].bound;
    int rank = 0;
    for (int t = 0; t < p.slices; ++t) {
      const unsigned other = heads[t].bound;
      rank += other > mine || (other == mine && t < s);
    }
    if (rank == slices_for_k - 1) chosen = mine;
  }
  __syncthreads();
  return Key{chosen} << 32;
}

// Maximum and sum of a row from those of its slices.
__device__ void add_slices(const Problem& p, const SliceHead* heads, float scale, float& max,
                           float& sum, const BlockReduce& block) {
  Sum mine;
  for (int s = threadIdx.x; s < p.slices; s += blockDim.x) {
    mine.rise(heads[s].max, scale);
    mine.sum += heads[s].sum * exp2_approx((heads[s].max - mine.max) * scale);
  }
  max = value_of(block.max(ordered(mine.max)));
  mine.move_to(max, scale);
  sum = block.sum(mine.sum);
}

// Collects the keys of a row from the lists of its slices, into all of shared memory.
__device__ void gather(const Problem& p, const SliceHead* heads, const Key* lists, Candidates& c,
                       const BlockReduce& block) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int warps = blockDim.x / kWarp;
  const auto each = [&](auto f) {
    for (int s = warp; s < p.slices; s += warps) {
      const int n = heads[s].passed;
      for (int i = lane; i < n; i += kWarp) f(lists[std::int64_t{s} * p.list_capacity + i]);
    }
  };
  unsigned mine = 0;
  for (int s = threadIdx.x; s < p.slices; s += blockDim.x) mine += heads[s].passed;
  if (block.sum(mine) > static_cast<unsigned>(p.room)) {
    c.bound = bisect(lowest_key(), p.k, p.room, [&](Key middle) {
      unsigned reach = 0;
      each([&](Key key) { reach += key >= middle; });
      return block.sum(reach);
    });
  } else {
    c.bound = lowest_key();
  }
  if (threadIdx.x == 0) c.n = 0;
  __syncthreads();
  each([&](Key key) {
    if (key >= c.bound) c.keys[atomicAdd(&c.n, 1)] = key;
  });
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(kMostThreads, 1) softmax_topk_rows(const Problem p) {
  extern __shared__ uint4 on_chip[];
  __shared__ unsigned words[kMostWarps];
  __shared__ unsigned chosen;
  __shared__ int passed;
  const BlockReduce block{words};
  const std::int64_t row = blockIdx.x / static_cast<unsigned>(p.slices);
  const int slice_of_row = static_cast<int>(blockIdx.x % static_cast<unsigned>(p.slices));
  const std::int64_t begin = min(slice_of_row * p.slice_columns, p.V);
  const std::int64_t end = min(begin + p.slice_columns, p.V);
  const float scale = fminf(1.44269504f / p.temperature, FLT_MAX);

  const Slice<T> slice(static_cast<const T*>(p.logits) + row * p.ld, begin, end);
  Tile<T> tile{on_chip + p.capacity / 2};
  Candidates candidates{reinterpret_cast<Key*>(on_chip), passed, p.capacity};
  SliceHead* heads = p.heads + row * p.slices;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();

  Sum sum;
  const int q = p.slices > 1 ? (p.k + p.slices - 1) / p.slices : p.k;
  const auto bound = [&](int rank) {
    if (rank > static_cast<int>(blockDim.x) / 2) return ordered(-INFINITY);
    const float mine = sum.max > -FLT_MAX ? sum.max : -INFINITY;
    return bound_of_maxima(ordered(mine), rank, block);
  };
  std::int64_t first = 0;
  bool last = false;
  while (!last) {
    const auto n = static_cast<int>(min(slice.packs - first, std::int64_t{p.tile}));
    tile.read(slice, first, n, sum, scale);
    last = first + n >= slice.packs;
    if (p.k > 0) {
      if (last && p.slices > 1) {
        const unsigned mine = bound(q);
        if (threadIdx.x == 0) heads[slice_of_row].bound = mine;
        cooperative_groups::this_grid().sync();
        candidates.bound = max(candidates.bound, bound_of_slices(p, heads, q, chosen));
        if (first > 0) candidates.drop();
      } else if (first == 0) {
        candidates.bound = max(candidates.bound, Key{bound(p.k)} << 32);
      }
      candidates.collect(tile, p.k, block);
    }
    first += n;
  }

  float row_max = value_of(block.max(ordered(sum.max)));
  sum.move_to(row_max, scale);
  float row_sum = block.sum(sum.sum);
  if (p.slices > 1) {
    if (passed > p.list_capacity) candidates.raise(p.k, p.list_capacity, block);
    const int n = passed;
    Key* list = p.lists + (row * p.slices + slice_of_row) * p.list_capacity;
    for (int i = threadIdx.x; i < n; i += blockDim.x) list[i] = candidates.keys[i];
    if (threadIdx.x == 0) {
      heads[slice_of_row].max = row_max;
      heads[slice_of_row].sum = row_sum;
      heads[slice_of_row].passed = n;
    }
    // Only the blocks that merge wait.
    const auto grid = cooperative_groups::this_grid();
    auto arrived = grid.barrier_arrive();
    if (slice_of_row != 0) return;
    grid.barrier_wait(std::move(arrived));
    add_slices(p, heads, scale, row_max, row_sum, block);
    const Key* lists = p.lists + row * p.slices * std::int64_t{p.list_capacity};
    if (p.k > 0) gather(p, heads, lists, candidates, block);
  }
  finish_row(p, row, candidates, row_max, row_sum, block);
}

int power_of_two_up(std::int64_t n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

struct Launch {
  unsigned blocks, threads;
  std::size_t shared_bytes;
};

// Divides the work: slices of rows, threads, shared memory.
Launch divide(Problem& p, std::int64_t multiprocessors, std::int64_t element_bytes) {
  const std::int64_t pack = 16 / element_bytes;
  p.k = static_cast<int>(std::min<std::int64_t>(p.K, p.V));
  const std::int64_t slices = std::min(multiprocessors / p.rows, ceil_div(p.V, kLeastSlice));
  p.slices = static_cast<int>(std::clamp<std::int64_t>(slices, 1, kMostSlices));
  p.slice_columns = ceil_div(ceil_div(p.V, p.slices), pack) * pack;
  const std::int64_t packs = ceil_div(p.slice_columns, pack);
  // Eight accesses a thread, four of them at a time, where that leaves less than 1024 threads.
  // Two blocks a multiprocessor, where the keys leave room for two tiles: see Tiles.
  const bool few_keys = 2 * power_of_two_up(p.k) <= kSharedBytes / (16 * int{sizeof(Key)});
  const int together = p.rows > multiprocessors && few_keys ? 2 : 1;
  const int threads =
      std::clamp(power_of_two_up(ceil_div(packs, 8)), kWarp, kMostThreads / together);
  p.capacity = p.k == 0 ? 2 : std::max(2 * threads, 2 * power_of_two_up(p.k));
  const std::int64_t key_bytes = std::int64_t{p.capacity} * std::int64_t{sizeof(Key)};
  p.tile = static_cast<int>(std::min((kSharedBytes / together - key_bytes) / 16, packs));
  p.list_capacity = static_cast<int>(ceil_div(2 * p.k, 4) * 4);
  std::int64_t bytes = key_bytes + std::int64_t{p.tile} * 16;
  if (p.slices > 1) {  // the merge takes what the lists may hold, if there is as much
    const std::int64_t lists = std::int64_t{p.slices} * p.list_capacity * std::int64_t{sizeof(Key)};
    bytes = std::max(bytes, std::min<std::int64_t>(lists, 128 << 10));
  }
  p.room = p.capacity;
  while (p.room * 2 * std::int64_t{sizeof(Key)} <= bytes) p.room *= 2;
  return {static_cast<unsigned>(p.rows * p.slices), static_cast<unsigned>(threads),
          static_cast<std::size_t>(bytes)};
}

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  if (p == nullptr || p->size != sizeof(stk_params)) return false;
  if (p->rows < 0 || p->V < 0 || p->ld < p->V || p->K < 0) return false;
  if (!(p->temperature > 0) || !(p->temperature < INFINITY)) return false;
  if (p->rows > 0 && p->V > 0 && logits == nullptr) return false;
  return p->rows == 0 || p->K == 0 || (idx != nullptr && prob != nullptr);
}

int launch(assay_ctx* ctx, const void* kernel, Problem& p, const Launch& l) {
  const cudaStream_t stream = stream_of(ctx);
  void* arguments[] = {&p};
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (p.slices == 1) {
    cudaLaunchKernel(kernel, dim3(l.blocks), dim3(l.threads), arguments, l.shared_bytes, stream);
    return ASSAY_OK;
  }
  const auto slices = static_cast<std::size_t>(l.blocks);
  const std::size_t list_bytes = slices * static_cast<std::size_t>(p.list_capacity) * sizeof(Key);
  void* scratch = ctx->alloc(ctx, list_bytes + slices * sizeof(SliceHead), 256, 1);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  p.lists = static_cast<Key*>(scratch);
  p.heads = reinterpret_cast<SliceHead*>(static_cast<char*>(scratch) + list_bytes);
  cudaLaunchCooperativeKernel(kernel, dim3(l.blocks), dim3(l.threads), arguments, l.shared_bytes,
                              stream);
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

struct Wanted {
  bool logarithm = false;
  float top_p = 1;
  std::int32_t* kept = nullptr;
};

int run(assay_ctx* ctx, const stk_params* p, const void* logits, std::int32_t* idx, float* prob,
        float* lse, const Wanted& wanted) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  const bool f32 = p->dtype == ASSAY_F32;
  if (p->V > INT_MAX || std::min<std::int64_t>(p->K, p->V) > kMostK) return ASSAY_ENOTSUP;
  if (p->rows == 0) return ASSAY_OK;
  if (p->rows > INT_MAX) return ASSAY_ENOTSUP;
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ctx->device);
  Problem problem{.rows = p->rows,
                  .V = p->V,
                  .ld = p->ld,
                  .K = p->K,
                  .temperature = p->temperature,
                  .logits = logits,
                  .idx = idx,
                  .prob = prob,
                  .lse = lse,
                  .logarithm = wanted.logarithm,
                  .top_p = wanted.top_p,
                  .kept = wanted.kept};
  const Launch l = divide(problem, multiprocessors, f32 ? sizeof(float) : sizeof(__nv_bfloat16));
  const auto kernel = f32 ? &softmax_topk_rows<float> : &softmax_topk_rows<__nv_bfloat16>;
  if (const int status = launch(ctx, reinterpret_cast<const void*>(kernel), problem, l);
      status != ASSAY_OK)
    return status;
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return run(ctx, p, logits, idx, prob, lse, {});
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                std::int32_t* idx, float* logprob, float* lse) {
  return run(ctx, p, logits, idx, logprob, lse, {.logarithm = true});
}

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, std::int32_t* idx, float* prob, float* lse,
                                  std::int32_t* count) {
  if (!valid(p, logits, idx, prob) || !(top_p > 0 && top_p <= 1)) return ASSAY_EINVAL;
  if (p->rows > 0 && count == nullptr) return ASSAY_EINVAL;
  return run(ctx, p, logits, idx, prob, lse, {.top_p = top_p, .kept = count});
}
