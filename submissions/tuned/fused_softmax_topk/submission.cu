// Sample entrant of assay, not a model's answer. A block streams a row, or a slice of one where
// rows are few, 16 logits a thread at a time, and keeps what reaches a bound in a list in shared
// memory. The first bound is found by bisection over the threads' maxima: each is a logit of its
// own, so K of them above a bound are K logits. When the list has grown to a few K, bisection over
// its keys finds a tighter bound and cuts it. Keys hold value and column, so that ties are exact
// and the result does not depend on who came first. A second launch merges the slices' lists by the
// same means. Supports bf16, logarithms, the nucleus, and K up to 5120.
#include <cuda_bf16.h>

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kVector = 4, kAccesses = 4, kPerThread = kVector * kAccesses;
constexpr int kMostK = 5120, kMostSlices = 64;
constexpr std::int64_t kMostColumns = std::int64_t{1} << 30;

// A logit and its column; the larger key comes first. -0 has the bits of +0.
using Key = unsigned long long;

__device__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ Key key_of(float x, std::int64_t column) {
  return Key{ordered(x)} << 32 | ~static_cast<unsigned>(column);
}
__device__ float value_of(Key key) {
  const auto top = static_cast<unsigned>(key >> 32);
  return __uint_as_float((top & 0x80000000u) != 0 ? top ^ 0x80000000u : ~top);
}
__device__ int column_of(Key key) { return static_cast<int>(~static_cast<unsigned>(key)); }
__device__ Key lowest_key() { return Key{ordered(-INFINITY)} << 32; }

// How long the list may be after a cut, and before one.
__host__ __device__ int most_after_cut(int K) { return K + K / 2 + 16; }
__host__ __device__ int most_before_cut(int K) { return 2 * K + 256; }

// 2^x, to two units in the last place; 0 where it is below the normal numbers.
__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The sum of 2^((x - max) scale). NaN and +inf make it NaN; -inf adds nothing.
struct Sum {
  float max = -FLT_MAX, sum = 0;

  __device__ void merge(const Sum& other, float scale) {
    const float both = fmaxf(max, other.max);
    sum = sum * power_of_two((max - both) * scale) +
          other.sum * power_of_two((other.max - both) * scale);
    max = both;
  }
};

struct SliceHead {
  Sum sum;
  int n;  // of its list
};

struct Problem {
  std::int64_t rows, V, ld;
  int K;
  float temperature, scale;  // scale: log2(e) / temperature
  std::int32_t* idx;
  float *prob, *lse;  // lse may be null
  bool logarithm;
  float top_p;
  std::int32_t* kept;  // or null
  int slices;
  std::int64_t slice;  // columns
  SliceHead* heads;    // [rows, slices]
  Key* lists;          // [rows, slices, most_after_cut(K)]
};

struct Shared {
  int n;
  unsigned least[kWarp], greatest[kWarp];  // of the warps
  Sum sums[kWarp];
};

struct Range {
  unsigned least, greatest;
};

// Over the block, in every thread. All of them have read the result before when it is called again.
__device__ Range block_range(Range mine, Shared& shared) {
  const int lane = threadIdx.x % kWarp, warps = static_cast<int>(blockDim.x) / kWarp;
  mine = {__reduce_min_sync(~0u, mine.least), __reduce_max_sync(~0u, mine.greatest)};
  if (lane == 0) {
    shared.least[threadIdx.x / kWarp] = mine.least;
    shared.greatest[threadIdx.x / kWarp] = mine.greatest;
  }
  __syncthreads();
  const int warp = min(lane, warps - 1);
  return {__reduce_min_sync(~0u, shared.least[warp]),
          __reduce_max_sync(~0u, shared.greatest[warp])};
}

// The largest bound that leaves `least`, or one that leaves no more than `most`. count(bound): how
// many it leaves; low leaves enough, high does not.
template <class Number, class Count>
__device__ Number bisect(Number low, Number high, int least, int most, const Count& count) {
  while (high - low > 1) {
    const Number middle = low + (high - low) / 2;
    const int left = count(middle);
    if (left < least) {
      high = middle;
    } else {
      low = middle;
      if (left <= most) break;
    }
  }
  return low;
}

// The list of candidates of a block. All threads call what is not push.
class Candidates {
 public:
  __device__ Candidates(Key* keys, Shared& shared, int K) : keys_(keys), shared_(shared), K_(K) {
    if (threadIdx.x == 0) shared_.n = 0;
    __syncthreads();
  }

  __device__ float bound_value() const { return bound_value_; }

  // A lower bound of the K-th key, from one value of each thread.
  __device__ void start(float mine) {
    if (K_ > static_cast<int>(blockDim.x)) return;
    const unsigned own = ordered(mine);
    const Range range = block_range({own, own}, shared_);
    const auto count = [own](unsigned bound) { return __syncthreads_count(own >= bound); };
    set_bound(Key{bisect(range.least, range.greatest + 1, K_, K_ + K_ / 4 + 4, count)} << 32);
  }

  __device__ void push(Key key) {
    if (key >= bound_) keys_[atomicAdd(&shared_.n, 1)] = key;
  }

  // To be called between rounds of pushes.
  __device__ void settle() {
    __syncthreads();
    const int n = shared_.n;
    __syncthreads();
    if (n > most_before_cut(K_)) cut(n);
  }

  // The keys, K and a few more, in no order. Returns how many.
  __device__ int finish() {
    __syncthreads();
    const int n = shared_.n;
    __syncthreads();
    if (n > most_after_cut(K_)) cut(n);
    return shared_.n;
  }

 private:
  __device__ void set_bound(Key bound) {
    bound_ = bound;
    bound_value_ = value_of(bound);
  }

  // Of the first n keys, how many `pass` says yes to.
  template <class Pass>
  __device__ int count(int n, const Pass& pass) const {
    int passed = 0;
    for (int first = 0; first < n; first += static_cast<int>(blockDim.x)) {
      const int i = first + static_cast<int>(threadIdx.x);
      passed += __syncthreads_count(i < n && pass(i));
    }
    return passed;
  }

  // Raises the bound until it leaves K keys, or not many more, and removes the others. Values are
  // bisected first, columns only where values are equal.
  __device__ void cut(int n) {
    const auto top = [this](int i) { return reinterpret_cast<const unsigned*>(keys_)[2 * i + 1]; };
    Range range{~0u, 0};
    for (int i = threadIdx.x; i < n; i += static_cast<int>(blockDim.x)) {
      range.least = min(range.least, top(i));
      range.greatest = max(range.greatest, top(i));
    }
    range = block_range(range, shared_);
    const auto values = [&](unsigned bound) {
      return count(n, [&](int i) { return top(i) >= bound; });
    };
    const auto keys = [&](Key bound) { return count(n, [&](int i) { return keys_[i] >= bound; }); };
    const unsigned value = bisect(range.least, range.greatest + 1, K_, most_after_cut(K_), values);
    Key bound = Key{value} << 32;
    if (values(value) > most_after_cut(K_))
      bound = bisect(bound, bound | ~0u, K_, most_after_cut(K_), keys);
    set_bound(bound);
    if (threadIdx.x == 0) shared_.n = 0;
    for (int first = 0; first < n; first += static_cast<int>(blockDim.x)) {
      const int i = first + static_cast<int>(threadIdx.x);
      const Key key = i < n ? keys_[i] : 0;
      __syncthreads();  // what is read now may be overwritten, what comes later may not
      if (i < n) push(key);
    }
    __syncthreads();
  }

  Key* keys_;
  Shared& shared_;
  int K_;
  Key bound_ = lowest_key();
  float bound_value_ = -INFINITY;
};

// Sorts n keys, largest first; keys has room for the power of two above n.
__device__ void sort(Key* keys, int n) {
  int size = 2;
  while (size < n) size *= 2;
  const bool one_warp = size <= 2 * kWarp;
  if (one_warp && threadIdx.x >= kWarp) return;
  const auto meet = [one_warp] { one_warp ? __syncwarp() : __syncthreads(); };
  const int threads = one_warp ? kWarp : static_cast<int>(blockDim.x);
  for (int i = n + static_cast<int>(threadIdx.x); i < size; i += threads) keys[i] = 0;
  meet();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
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
  }
}

__device__ Sum block_sum(Sum mine, float scale, Sum* sums) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    Sum other;
    other.max = __shfl_xor_sync(~0u, mine.max, offset);
    other.sum = __shfl_xor_sync(~0u, mine.sum, offset);
    mine.merge(other, scale);
  }
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = mine;
  __syncthreads();
  mine = sums[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / kWarp; ++w) mine.merge(sums[w], scale);
  return mine;
}

// How many leading slots add up to top_p. prob [K] was written by this block. One warp calls it.
__device__ int nucleus(const Problem& p, const float* prob) {
  const auto n = static_cast<int>(min(std::int64_t{p.K}, p.V));
  const int lane = threadIdx.x;
  float before = 0;
  for (int first = 0; first < n; first += kWarp) {
    float sum = first + lane < n ? prob[first + lane] : 0.0f;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const float other = __shfl_up_sync(~0u, sum, offset);
      if (lane >= offset) sum += other;
    }
    const unsigned reached = __ballot_sync(~0u, first + lane < n && before + sum >= p.top_p);
    if (reached != 0) return first + __ffs(static_cast<int>(reached));
    before += __shfl_sync(~0u, sum, kWarp - 1);
  }
  return n;
}

// Writes a row from its n keys, in no order, and its sum.
__device__ void write_row(const Problem& p, std::int64_t row, Key* keys, int n, const Sum& sum) {
  std::int32_t* idx = p.idx + row * p.K;
  float* prob = p.prob + row * p.K;
  const int thread = threadIdx.x, threads = blockDim.x;
  const bool poisoned = isnan(sum.sum), masked = sum.sum == 0;
  const float log_sum = logf(sum.sum);
  if (p.K > 0 && !poisoned) sort(keys, n);
  __syncthreads();
  for (int k = thread; k < p.K; k += threads) {
    float logarithm = -INFINITY;
    int column = -1;
    if (k < p.V && !poisoned) {
      column = column_of(keys[k]);
      if (!masked) logarithm = (value_of(keys[k]) - sum.max) / p.temperature - log_sum;
    }
    if (poisoned) logarithm = NAN;
    idx[k] = column;
    prob[k] = p.logarithm ? logarithm : expf(logarithm);
  }
  if (thread == 0 && p.lse != nullptr) {
    p.lse[row] = poisoned ? NAN : masked ? -INFINITY : sum.max / p.temperature + log_sum;
  }
  if (p.kept == nullptr) return;
  __syncthreads();
  if (thread >= kWarp) return;
  const int kept = poisoned || masked || p.K == 0 ? 0 : nucleus(p, prob);
  if (thread == 0) p.kept[row] = kept;
}

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
struct alignas(kVector * sizeof(T)) Vector {
  T values[kVector];
};

// Four logits from x[first] on, an aligned place; those outside 0 .. count-1 are -inf.
template <class T>
__device__ void load(const T* x, int first, int count, float* out) {
  if (first >= 0 && first + kVector <= count) {
    const auto v = *reinterpret_cast<const Vector<T>*>(x + first);
#pragma unroll
    for (int i = 0; i < kVector; ++i) out[i] = widen(v.values[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    out[i] = first + i >= 0 && first + i < count ? widen(x[first + i]) : -INFINITY;
  }
}

// A block for each slice of each row.
template <class T>
__global__ void __launch_bounds__(1024) best_of_slice(Problem p, const T* logits) {
  extern __shared__ Key keys[];
  __shared__ Shared shared;
  const std::int64_t row = blockIdx.x / p.slices, begin = blockIdx.x % p.slices * p.slice;
  const T* x = logits + row * p.ld + begin;
  const auto count = static_cast<int>(min(p.slice, p.V - begin));
  // Vectors start where memory is aligned, up to three columns before the slice.
  const auto address = reinterpret_cast<std::uintptr_t>(x);
  const int before = static_cast<int>(address % sizeof(Vector<T>) / sizeof(T));
  const int threads = blockDim.x;
  Candidates list(keys, shared, p.K);
  Sum sum;
  for (int tile = -before; tile < count; tile += kPerThread * threads) {
    const int mine = tile + kVector * static_cast<int>(threadIdx.x);
    float z[kPerThread];
    float max = -INFINITY;
#pragma unroll
    for (int a = 0; a < kAccesses; ++a) {
      load(x, mine + a * kVector * threads, count, z + a * kVector);
#pragma unroll
      for (int i = 0; i < kVector; ++i) max = fmaxf(max, z[a * kVector + i]);
    }
    const float old = sum.max;
    sum.max = fmaxf(old, max);
    float added = 0;
#pragma unroll
    for (const float logit : z) added += power_of_two((logit - sum.max) * p.scale);
    sum.sum = sum.sum * power_of_two((old - sum.max) * p.scale) + added;

    if (p.K == 0) continue;
    if (tile <= 0) list.start(max);
    if (max >= list.bound_value()) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        if (!(z[i] >= list.bound_value())) continue;
        const int column = mine + i / kVector * kVector * threads + i % kVector;
        if (column >= 0 && column < count) list.push(key_of(z[i], begin + column));
      }
    }
    list.settle();
  }
  const Sum all = block_sum(sum, p.scale, shared.sums);
  const int n = p.K > 0 ? list.finish() : 0;
  if (p.slices == 1) return write_row(p, row, keys, n, all);
  if (threadIdx.x == 0) p.heads[blockIdx.x] = {all, n};
  Key* out = p.lists + std::int64_t{blockIdx.x} * most_after_cut(p.K);
  for (int i = threadIdx.x; i < n; i += threads) out[i] = keys[i];
}

// A block for each row: one list from those of its slices.
__global__ void __launch_bounds__(1024) merge_slices(Problem p) {
  extern __shared__ Key keys[];
  __shared__ Shared shared;
  const std::int64_t row = blockIdx.x;
  const SliceHead* heads = p.heads + row * p.slices;
  const Key* lists = p.lists + row * p.slices * most_after_cut(p.K);
  Candidates list(keys, shared, p.K);
  Sum sum;
  if (static_cast<int>(threadIdx.x) < p.slices) sum = heads[threadIdx.x].sum;
  const Sum all = block_sum(sum, p.scale, shared.sums);
  for (int s = 0; p.K > 0 && s < p.slices; ++s) {
    const int n = heads[s].n;
    const Key* from = lists + std::int64_t{s} * most_after_cut(p.K);
    for (int i = threadIdx.x; i < n; i += static_cast<int>(blockDim.x)) list.push(from[i]);
    list.settle();
  }
  const int n = p.K > 0 ? list.finish() : 0;
  write_row(p, row, keys, n, all);
}

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

int power_of_two_from(std::int64_t n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

template <class Kernel, class... Arguments>
void launch(Kernel* kernel, std::int64_t blocks, int threads, std::size_t shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared_bytes));
  kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(arguments...);
}

template <class T>
void launch_slices(const Problem& p, int threads, std::size_t shared_bytes, cudaStream_t stream,
                   const void* logits) {
  launch(&best_of_slice<T>, p.rows * p.slices, threads, shared_bytes, stream, p,
         static_cast<const T*>(logits));
}

// Keys that shared memory has room for: what is added in one round, and the power of two that is
// sorted.
std::size_t shared_bytes_of(int K, int round) {
  const int room = std::max(most_before_cut(K) + round, power_of_two_from(most_after_cut(K)));
  return static_cast<std::size_t>(room) * sizeof(Key);
}

int multiprocessors_of(const assay_ctx* ctx) {
  int n = 0;
  cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, ctx->device);
  return std::max(n, 1);
}

int solve(assay_ctx* ctx, Problem p, std::int32_t dtype, const void* logits) {
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  const std::int64_t most =
      std::clamp<std::int64_t>(multiprocessors_of(ctx) / p.rows, 1, kMostSlices);
  p.slices = static_cast<int>(std::clamp<std::int64_t>(p.V / 4096, 1, most));
  p.slice = divide_up(divide_up(p.V, p.slices), 8) * 8;
  // More threads where K is larger, fewer where a tile would be mostly empty.
  int threads = p.K <= 64 ? 256 : p.K <= 256 ? 512 : 1024;
  while (threads > 64 && threads / 2 * kPerThread >= p.slice + kVector) threads /= 2;

  void* scratch = nullptr;
  if (p.slices > 1) {
    const auto parts = static_cast<std::size_t>(p.rows * p.slices);
    const auto list = static_cast<std::size_t>(most_after_cut(p.K));
    scratch = ctx->alloc(ctx, parts * (list * sizeof(Key) + sizeof(SliceHead)), 256, 1);
    if (scratch == nullptr) return ASSAY_ENOMEM;
    p.lists = static_cast<Key*>(scratch);
    p.heads = reinterpret_cast<SliceHead*>(p.lists + parts * list);
  }
  const std::size_t bytes = shared_bytes_of(p.K, kPerThread * threads);
  if (dtype == ASSAY_F32) {
    launch_slices<float>(p, threads, bytes, stream, logits);
  } else {
    launch_slices<__nv_bfloat16>(p, threads, bytes, stream, logits);
  }
  if (p.slices > 1) {
    const std::size_t merge_bytes = shared_bytes_of(p.K, most_after_cut(p.K));
    launch(&merge_slices, p.rows,
           p.K <= 64    ? 128
           : p.K <= 512 ? 256
                        : 1024,
           merge_bytes, stream, p);
    ctx->free(ctx, scratch);
  }
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  if (p == nullptr || p->size != sizeof(stk_params)) return false;
  if (p->rows < 0 || p->V < 0 || p->ld < p->V || p->K < 0) return false;
  if (!(p->temperature > 0) || !(p->temperature < INFINITY)) return false;
  if (p->rows > 0 && p->V > 0 && logits == nullptr) return false;
  return p->rows == 0 || p->K == 0 || (idx != nullptr && prob != nullptr);
}

int run(assay_ctx* ctx, const stk_params* p, const void* logits, std::int32_t* idx, float* prob,
        float* lse, bool logarithm, float top_p, std::int32_t* kept) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  if (p->K > kMostK || p->V > kMostColumns || p->rows > INT_MAX) return ASSAY_ENOTSUP;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  if (p->rows == 0) return ASSAY_OK;
  constexpr float kLog2E = 1.44269504f;
  return solve(ctx,
               {.rows = p->rows,
                .V = p->V,
                .ld = p->ld,
                .K = p->K,
                .temperature = p->temperature,
                .scale = std::min(kLog2E / p->temperature, FLT_MAX),
                .idx = idx,
                .prob = prob,
                .lse = lse,
                .logarithm = logarithm,
                .top_p = top_p,
                .kept = kept,
                .slices = 1,
                .slice = 0,
                .heads = nullptr,
                .lists = nullptr},
               p->dtype, logits);
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return run(ctx, p, logits, idx, prob, lse, false, 1, nullptr);
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                std::int32_t* idx, float* logprob, float* lse) {
  return run(ctx, p, logits, idx, logprob, lse, true, 1, nullptr);
}

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, std::int32_t* idx, float* prob, float* lse,
                                  std::int32_t* count) {
  if (!(top_p > 0 && top_p <= 1)) return ASSAY_EINVAL;
  if (p != nullptr && p->rows > 0 && count == nullptr) return ASSAY_EINVAL;
  return run(ctx, p, logits, idx, prob, lse, false, top_p, count);
}
