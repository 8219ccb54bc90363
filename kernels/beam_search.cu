// Beam search over a model that is called once a step: one launch a step, and one copy back.
//
// The shape. A step looks at a row of V values for each of B K beams. B 4, K 8, V 32,000, fp32:
// 4 MB, 0.9 us of an H200's 4.8 TB/s; one item with 64 beams and V 50,257: 13 MB, 2.7 us. The
// arithmetic is a comparison a value. What comes back are K candidates a row, 8 bytes each: 2 KB
// and 33 KB.
//
// The limiting resource is what a step costs whatever it does: the model wants its rows from the
// host, so there is one launch (3 us) and one copy back (3 us) a step, and no more: sums of the
// beams go along as parameters of the launch, and all rows of all items share it.
//
// One pass. A block has a row and reads it once, into shared memory (200 KB for V 50,257). On the
// way every thread keeps the largest value that it has seen. Let M be the candidates that are
// wanted. The warps give the largest of these maxima, together some 2 M; the M-th of them is a
// bound that at least M values of the row reach. A second look, at shared memory, collects what is
// not below it, hardly more than M values, and only these are compared exactly.
//
// Banks. The row is read and written in 16 bytes a thread, side by side. Listed scores lie apart
// from the values and tokens, 8 bytes each. Replayed is only that lanes which list something
// together take their places one after another: 0.03 % of all passes in the two shapes, up to a
// quarter where nearly all of a short row is listed. One atomic for all of them costs more issue
// slots than it saves, 1 % of the time.
//
// Exactness. What decides is the score in double, (acc + (x - shift)) / len^alpha, and lower tokens
// come first among equals. Rounding may make scores of different values equal, so the bound is a
// score, and the values looked at begin a little below it. The log-sum-exp of logits is formed in
// double, over the whole row.
//
// Rows with more candidates than the list has room for (many equal values, or M in the thousands)
// go another way: the M-th score is found by bisection of its 64 bits, then the last token among
// equals, and what is above goes out. That reads the row some 80 times, and is rare.
//
// The host keeps beams as nodes of a tree (parent, token), 8 bytes a beam and token, and a text is
// a way to the root: nothing is copied when beams change places. It selects among the candidates
// with what the device cannot know: finished beams, groups, banned tokens. Banned tokens and
// tokens that other groups took may cost a row some of its candidates, so that many more are asked.
//
// Tried and rejected, with modelled times of the two shapes: the smallest of M such maxima as the
// bound. Some hundred values reach it where 8 are wanted, and comparing each with each took most
// of the time: 99.0 us for 8 steps and 102.1 us for 6, now 64.7 and 63.6.
//
// Considered and rejected: K passes over the row (K times the bytes); a sorted list in registers
// for each thread (K registers, and an insertion for every value that is large for its thread);
// candidates as a sum and a token, 16 bytes (33 KB more a step for 64 beams, 0.5 us); a second
// kernel that selects for each item on the device (3 us to save 0.5 us of copying).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "abi.h"
#include "common/device.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// --- the device: candidates of a row ---

// What the rows start from travels as a parameter of the launch where it is small.
constexpr int kInlineRows = 448;
struct Sums {
  const double* device;  // null: they are here
  double acc[kInlineRows];
};

struct Rows {
  const void* values;  // [n, V]
  std::int32_t V, dtype;
  std::int32_t wanted;  // M
  bool logits;
  bool cached;     // the row fits shared memory
  double divisor;  // len^alpha and the like; 1 where sums select
};

struct alignas(8) Candidate {  // one access
  float value;
  std::int32_t token;
};

// Of a row, and behind it `wanted` candidates, in no order.
struct Header {
  double shift;  // subtracted from every value
  std::int32_t count, unused;
};

__host__ __device__ constexpr std::size_t result_bytes(std::int32_t wanted) {
  return sizeof(Header) + static_cast<std::size_t>(wanted) * sizeof(Candidate);
}

// Integers that order like the numbers.
__device__ std::uint32_t ordered(float x) {
  const std::uint32_t bits = __float_as_uint(x + 0.0f);  // -0 becomes 0
  return (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
}
__device__ float number(std::uint32_t o) {
  return __uint_as_float((o & 0x80000000) != 0 ? o & 0x7fffffff : ~o);
}
__device__ std::uint64_t ordered(double x) {
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x + 0.0));
  return bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float widen(__half x) { return __half2float(x); }

__device__ std::int32_t block_count(std::int32_t x) {
  return block_reduce(x, [](std::int32_t a, std::int32_t b) { return a + b; });
}

// A row, in global memory and, where it fits, in shared memory. Threads read back what they wrote,
// four values at a time where the row allows it, so that no barrier is needed.
template <class T>
struct Row {
  const T* values;
  float* cache;  // or null
  std::int32_t V;

  // The first token whose four lie aligned, for fp32.
  __device__ std::int32_t head() const {
    if (sizeof(T) != 4) return V;
    const auto misaligned =
        static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(values) / sizeof(T) % 4);
    return min(V, (4 - misaligned) % 4);
  }

  // Calls visit(four values, their first token, how many). kFirst: from global memory.
  template <bool kFirst, class Visit>
  __device__ void each(const Visit& visit) const {
    const auto first = static_cast<std::int32_t>(threadIdx.x);
    const auto step = static_cast<std::int32_t>(blockDim.x);
    const std::int32_t begin = head(), quads = (V - begin) / 4, rest = begin + 4 * quads;
    for (std::int32_t i = first; i < quads; i += step) {
      const std::int32_t v = begin + 4 * i;
      float4 x;
      // The cache holds the quads from its beginning on.
      if (!kFirst && cache != nullptr) {
        x = reinterpret_cast<const float4*>(cache)[i];
      } else {
        x = *reinterpret_cast<const float4*>(values + v);
        if (cache != nullptr) reinterpret_cast<float4*>(cache)[i] = x;
      }
      visit(x, v, 4);
    }
    for (std::int32_t v = first; v < begin; v += step)
      visit(make_float4(widen(values[v]), 0, 0, 0), v, 1);
    for (std::int32_t v = rest + first; v < V; v += step)
      visit(make_float4(widen(values[v]), 0, 0, 0), v, 1);
  }

  template <class Visit>
  __device__ void each_value(const Visit& visit) const {
    for (auto v = static_cast<std::int32_t>(threadIdx.x); v < V;
         v += static_cast<std::int32_t>(blockDim.x))
      visit(widen(values[v]), v);
  }
};

// What a value is worth to its beam.
struct Score {
  double acc, shift, divisor;
  __device__ double operator()(float x) const {
    return (acc + (static_cast<double>(x) - shift)) / divisor;
  }
};

constexpr int kListed = 1024;  // candidates that are compared with each other

// Scores apart from the rest: of neighbours a half warp meets every bank once.
struct List {
  double score[kListed];
  Candidate candidate[kListed];
  // Whether i comes before one of that score and token.
  __device__ bool before(std::int32_t i, double other, std::int32_t token) const {
    return score[i] != other ? score[i] > other : candidate[i].token < token;
  }
};

// log(sum(exp(x))) of a row whose largest value is `largest`; 0 if that is -inf.
template <class T>
__device__ double log_sum_exp(const Row<T>& row, float largest) {
  if (largest == -INFINITY) return 0;
  double sum = 0;
  row.each_value([&](float x, std::int32_t) {
    sum += exp(static_cast<double>(x) - static_cast<double>(largest));
  });
  return static_cast<double>(largest) + log(block_sum(sum));
}

constexpr std::int32_t kMostTops = 512;

// A value that at least `wanted` of the row are no smaller than, and not many more; -inf if the
// warps see too few, or too many are wanted. `largest` is what the thread has seen. Each warp gives
// the largest of these, together some twice as many as are wanted; the wanted-th of them is the
// bound.
__device__ float lower_bound(float largest, std::int32_t wanted) {
  __shared__ std::uint32_t tops[kMostTops];
  __shared__ std::uint32_t bound;
  const auto warps = static_cast<std::int32_t>(blockDim.x / kWarp);
  const std::int32_t each = (2 * wanted + warps - 1) / warps, all = each * warps;
  if (each > kWarp || all > kMostTops) return -INFINITY;
  std::uint32_t mine = ordered(largest);
  for (std::int32_t i = 0; i < each; ++i) {
    const std::uint32_t top = __reduce_max_sync(kAll, mine);
    const unsigned holders = __ballot_sync(kAll, mine == top);
    if (static_cast<int>(threadIdx.x % kWarp) == __ffs(static_cast<int>(holders)) - 1) mine = 0;
    if (threadIdx.x % kWarp == 0) tops[threadIdx.x / kWarp * each + i] = top;
  }
  __syncthreads();
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < all;
       i += static_cast<std::int32_t>(blockDim.x)) {
    const std::uint32_t top = tops[i];
    std::int32_t before = 0;
    for (std::int32_t j = 0; j < all; ++j) before += tops[j] > top || (tops[j] == top && j < i);
    if (before == wanted - 1) bound = top;
  }
  __syncthreads();
  return bound == 0 ? -INFINITY : number(bound);
}

// The most of `wanted` candidates, exactly, whatever the row is like.
template <class T>
__device__ std::int32_t select_by_bisection(const Row<T>& row, const Score& score,
                                            std::int32_t wanted, Candidate* out) {
  __shared__ std::int32_t next;
  const auto at_least = [&](std::uint64_t bound) {
    std::int32_t n = 0;
    row.each_value(
        [&](float x, std::int32_t) { n += x > -INFINITY && ordered(score(x)) >= bound ? 1 : 0; });
    return block_count(n);
  };
  // The largest bound that `wanted` values reach; 0 if there are not so many.
  std::uint64_t bound = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const std::uint64_t higher = bound | std::uint64_t{1} << bit;
    if (at_least(higher) >= wanted) bound = higher;
  }
  const std::int32_t above = bound == ~std::uint64_t{0} ? 0 : at_least(bound + 1);
  // Of those that are equal to it, the lowest tokens: the smallest `last` with enough up to it.
  std::int32_t low = 0, last = row.V - 1;
  while (low < last) {
    const std::int32_t middle = (low + last) / 2;
    std::int32_t n = 0;
    row.each_value([&](float x, std::int32_t v) {
      n += v <= middle && x > -INFINITY && ordered(score(x)) == bound ? 1 : 0;
    });
    if (block_count(n) + above >= wanted) {
      last = middle;
    } else {
      low = middle + 1;
    }
  }
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  row.each_value([&](float x, std::int32_t v) {
    if (x == -INFINITY) return;
    const std::uint64_t mine = ordered(score(x));
    if (mine > bound || (mine == bound && v <= last)) out[atomicAdd(&next, 1)] = {x, v};
  });
  __syncthreads();
  return next;
}

// A block for each row.
template <class T>
__global__ void __launch_bounds__(1024)
    best_of_row(const __grid_constant__ Sums sums, Rows rows, unsigned char* results) {
  extern __shared__ __align__(16) float cache[];
  __shared__ List list;
  __shared__ std::int32_t count;
  const std::int64_t at = blockIdx.x;
  const Row<T> row{static_cast<const T*>(rows.values) + at * rows.V, rows.cached ? cache : nullptr,
                   rows.V};
  unsigned char* result = results + at * static_cast<std::int64_t>(result_bytes(rows.wanted));
  auto& header = *reinterpret_cast<Header*>(result);
  auto* out = reinterpret_cast<Candidate*>(result + sizeof(Header));

  float largest = -INFINITY;
  row.template each<true>([&](float4 x, std::int32_t, int n) {
    largest = fmaxf(largest, x.x);
    if (n == 4) largest = fmaxf(fmaxf(largest, x.y), fmaxf(x.z, x.w));
  });
  Score score{sums.device != nullptr ? sums.device[at] : sums.acc[at], 0, rows.divisor};
  if (rows.logits) {
    score.shift =
        log_sum_exp(row, block_reduce(largest, [](float a, float b) { return fmaxf(a, b); }));
  }
  const float bound = rows.V > kListed / 4 ? lower_bound(largest, rows.wanted) : -INFINITY;
  const double least = bound > -INFINITY ? score(bound) : -INFINITY;
  // Smaller values whose scores are rounded to the same are within a few units of the last place.
  const double slack = 0x1p-49 * (fabs(score.acc) + fabs(score.shift) + fabs(bound));
  const float lowest = bound > -INFINITY ? __double2float_rd(bound - slack) : -INFINITY;

  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  row.template each<false>([&](float4 x, std::int32_t v, int n) {
    float most = x.x;
    if (n == 4) most = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
    if (most < lowest) return;
    const float values[4] = {x.x, x.y, x.z, x.w};
    for (int i = 0; i < n; ++i) {
      if (values[i] == -INFINITY || values[i] < lowest) continue;
      const double mine = score(values[i]);
      if (!(mine >= least)) continue;
      const std::int32_t place = atomicAdd(&count, 1);
      if (place >= kListed) continue;
      list.score[place] = mine;
      list.candidate[place] = {values[i], v + i};
    }
  });
  __syncthreads();
  const std::int32_t n = count;
  if (n > kListed) {
    const std::int32_t chosen = select_by_bisection(row, score, rows.wanted, out);
    if (threadIdx.x == 0) header = {score.shift, chosen, 0};
    return;
  }
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < n;
       i += static_cast<std::int32_t>(blockDim.x)) {
    const double score_of_mine = list.score[i];
    const Candidate mine = list.candidate[i];
    std::int32_t rank = 0;
    for (std::int32_t j = 0; j < n && rank < rows.wanted; ++j)
      rank += list.before(j, score_of_mine, mine.token) ? 1 : 0;
    if (rank < rows.wanted) out[rank] = mine;
  }
  if (threadIdx.x == 0) header = {score.shift, min(n, rows.wanted), 0};
}

template <class T>
bool launch(const Sums& sums, Rows rows, std::int32_t n, unsigned char* results,
            cudaStream_t stream) {
  // Of a block on sm_90, less what the kernel declares.
  constexpr std::size_t kRoom = 232448 - sizeof(List) - 4096;
  const auto kernel = best_of_row<T>;
  const std::size_t bytes = static_cast<std::size_t>(rows.V) * sizeof(float);
  rows.cached = sizeof(T) == sizeof(float) && bytes + 16 <= kRoom;
  const std::size_t shared = rows.cached ? bytes + 16 : 0;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(kRoom));
  const auto threads = static_cast<unsigned>(std::clamp((rows.V / 16 + 31) / 32 * 32, 64, 1024));
  kernel<<<static_cast<unsigned>(n), threads, shared, stream>>>(sums, rows, results);
  return cudaGetLastError() == cudaSuccess;
}

// --- memory ---

// Lets standard containers take their memory from the context.
template <class T>
struct FromContext {
  using value_type = T;
  assay_ctx* ctx;

  explicit FromContext(assay_ctx* c) : ctx(c) {}
  template <class U>
  FromContext(const FromContext<U>& other) : ctx(other.ctx) {}

  T* allocate(std::size_t n) {
    void* p = ctx->alloc(ctx, n * sizeof(T), alignof(std::max_align_t), 0);
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) { ctx->free(ctx, p); }
  template <class U>
  bool operator==(const FromContext<U>& other) const {
    return ctx == other.ctx;
  }
};

template <class T>
class Array : public std::vector<T, FromContext<T>> {
 public:
  explicit Array(assay_ctx* ctx) : std::vector<T, FromContext<T>>(FromContext<T>(ctx)) {}
};

// A block on the device, which grows and does not keep what it held.
class DeviceBlock {
 public:
  explicit DeviceBlock(assay_ctx* ctx) : ctx_(ctx) {}
  ~DeviceBlock() { release(); }
  DeviceBlock(const DeviceBlock&) = delete;
  unsigned char* room(std::size_t bytes) {
    if (bytes <= bytes_) return data_;
    release();
    data_ = static_cast<unsigned char*>(ctx_->alloc(ctx_, bytes, 256, 1));
    if (data_ == nullptr) throw std::bad_alloc();
    bytes_ = bytes;
    return data_;
  }

 private:
  void release() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
    data_ = nullptr;
    bytes_ = 0;
  }
  assay_ctx* ctx_;
  unsigned char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// --- the host: beams ---

struct Outputs {
  std::int32_t* seq;
  std::int32_t* len;
  double* acc;
  double* score;
  std::int32_t* finished;
  std::int32_t* n_out;
};

struct Node {
  std::int32_t parent;  // the beam without its last token; -1: no token
  std::int32_t token;
};

struct Beam {
  double acc = 0, score = 0;
  std::int64_t state = -1;
  std::int64_t order = 0;  // of a finished beam among those of its item
  std::int32_t node = -1, len = 0, last = 0;
  bool finished = false;
};

// An element of the pool: a finished beam of the list (token -1), or a beam and the token after it.
struct Extension {
  double key, acc, score;
  std::int32_t place, token;

  bool before(const Extension& o) const {
    if (key != o.key) return key > o.key;
    if ((token < 0) != (o.token < 0)) return token < 0;
    return place != o.place ? place < o.place : token < o.token;
  }
};

// The order of the answer; what it leaves equal stays in the order of the list.
bool ahead(const Beam& a, const Beam& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.finished != b.finished) return a.finished;
  return a.finished && a.order < b.order;
}

struct Item {
  explicit Item(assay_ctx* ctx) : beams(ctx), sizes(ctx), dropped(ctx) {}
  Array<Beam> beams;          // the lists of the groups, W places each
  Array<std::int32_t> sizes;  // of the lists
  Array<Beam> dropped;        // finished beams that left their list: the best K, in order
  std::int64_t finished = 0;  // beams that ever became so
};

class Search {
 public:
  Search(assay_ctx* ctx, const bs_params& p, const bs_options& o, const assay_lm& lm)
      : ctx_(ctx),
        p_(p),
        o_(o),
        lm_(lm),
        K_(p.K),
        T_(p.max_new),
        W_(p.K / o.groups),
        items_(ctx),
        nodes_(ctx),
        pool_(ctx),
        next_(ctx),
        banned_(ctx),
        banned_begin_(ctx),
        text_(ctx),
        taken_(ctx),
        item_(ctx),
        token_(ctx),
        parent_(ctx),
        state_(ctx),
        acc_(ctx),
        results_(ctx),
        values_(ctx),
        device_results_(ctx),
        device_acc_(ctx) {
    for (std::int32_t b = 0; b < p.B; ++b) {
      Item item(ctx);
      item.beams.resize(static_cast<std::size_t>(K_));
      item.sizes.assign(static_cast<std::size_t>(o.groups), 1);
      items_.push_back(std::move(item));
    }
  }

  int run() {
    if (T_ == 0) return ASSAY_OK;
    const auto most = static_cast<std::size_t>(p_.B) * static_cast<std::size_t>(K_);
    const std::size_t element = o_.row_dtype == ASSAY_F32 ? 4 : 2;
    unsigned char* values = values_.room(most * static_cast<std::size_t>(lm_.V) * element);
    state_.resize(most);
    for (step_ = 1; step_ <= T_; ++step_) {
      gather();
      if (item_.empty()) return ASSAY_OK;
      const auto n = static_cast<std::int32_t>(item_.size());
      int status = lm_.step(lm_.user, ctx_, n, item_.data(), parent_.data(), token_.data(),
                            reinterpret_cast<float*>(values), state_.data());
      if (status != ASSAY_OK) return status;
      status = extend(n, values);
      if (status != ASSAY_OK) return status;
      std::size_t row = 0;
      for (std::size_t b = 0; b < items_.size(); ++b) {
        if (row < item_.size() && item_[row] == static_cast<std::int32_t>(b))
          row = advance(items_[b], row);
      }
    }
    return ASSAY_OK;
  }

  void write(const Outputs& to) {
    Array<const Beam*> answer(ctx_);
    answer.reserve(static_cast<std::size_t>(2 * K_));  // all memory before the first output
    for (std::int32_t b = 0; b < p_.B; ++b) {
      const Item& item = items_[static_cast<std::size_t>(b)];
      answer.clear();
      each_beam(item, [&](const Beam& beam) {
        // Patience that ended the search lets no active beam into the answer.
        if (beam.finished || !patience_ends(item)) answer.push_back(&beam);
      });
      for (const Beam& beam : item.dropped) answer.push_back(&beam);
      insertion_sort(answer);
      const std::int64_t n = std::min<std::int64_t>(std::ssize(answer), K_);
      to.n_out[b] = static_cast<std::int32_t>(n);
      if (T_ > 0) std::fill_n(to.seq + b * K_ * T_, K_ * T_, -1);
      for (std::int64_t k = 0; k < n; ++k) {
        const Beam& beam = *answer[static_cast<std::size_t>(k)];
        const std::int64_t at = b * K_ + k;
        if (beam.len > 0) write_text(beam, to.seq + at * T_);
        to.len[at] = beam.len;
        to.acc[at] = beam.acc;
        to.score[at] = beam.score;
        to.finished[at] = beam.finished ? 1 : 0;
      }
    }
  }

 private:
  // --- scores ---

  double divisor(std::int64_t len) const {
    const auto length = static_cast<double>(len);
    return p_.penalty != 0 ? std::pow((5 + length) / 6, p_.alpha) : std::pow(length, p_.alpha);
  }
  double score(double acc, std::int64_t len) const {
    return len == 0 && p_.penalty == 0 ? 0 : acc / divisor(len);
  }

  // --- lists ---

  template <class Visit>
  void each_beam(const Item& item, const Visit& visit) const {
    for (std::size_t g = 0; g < item.sizes.size(); ++g) {
      for (std::int64_t i = 0; i < item.sizes[g]; ++i)
        visit(item.beams[g * static_cast<std::size_t>(W_) + static_cast<std::size_t>(i)]);
    }
  }

  bool patience_ends(const Item& item) const {
    return o_.patience > 0 &&
           static_cast<double>(item.finished) >= o_.patience * static_cast<double>(K_);
  }

  // With keep_finished: K finished beams are better than any active one is or can still become.
  bool decided(const Item& item) const {
    if (p_.keep_finished == 0) return false;
    double bound = -kInf;
    each_beam(item, [&](const Beam& beam) {
      if (beam.finished) return;
      bound = std::max({bound, beam.score, score(beam.acc, beam.len + 1), score(beam.acc, T_)});
    });
    std::int64_t better = 0;
    each_beam(item, [&](const Beam& beam) { better += beam.finished && beam.score > bound; });
    for (const Beam& beam : item.dropped) better += beam.score > bound;
    return better >= K_;
  }

  // The rows of the next call.
  void gather() {
    item_.clear(), token_.clear(), parent_.clear(), acc_.clear();
    banned_.clear(), banned_begin_.clear();
    most_banned_ = 0;
    for (std::size_t b = 0; b < items_.size(); ++b) {
      const Item& item = items_[b];
      if (decided(item) || patience_ends(item)) continue;
      each_beam(item, [&](const Beam& beam) {
        if (beam.finished) return;
        item_.push_back(static_cast<std::int32_t>(b));
        parent_.push_back(beam.state);
        token_.push_back(beam.last);
        acc_.push_back(beam.acc);
        banned_begin_.push_back(banned_.size());
        ban(beam);
      });
    }
    banned_begin_.push_back(banned_.size());
  }

  // --- what may not follow ---

  void write_text(const Beam& beam, std::int32_t* text) const {
    std::int32_t node = beam.node;
    for (std::int32_t at = beam.len; at-- > 0; node = nodes_[static_cast<std::size_t>(node)].parent)
      text[at] = nodes_[static_cast<std::size_t>(node)].token;
  }

  // Adds the tokens that may not follow the beam, sorted.
  void ban(const Beam& beam) {
    const std::size_t first = banned_.size();
    if (p_.eos >= 0 && beam.len + 1 < p_.min_new) banned_.push_back(p_.eos);
    const std::int64_t n = o_.no_repeat_ngram, len = beam.len;
    if (n > 0 || o_.n_bad > 0) {
      text_.resize(static_cast<std::size_t>(T_));
      write_text(beam, text_.data());
    }
    const std::int32_t* text = text_.data();
    for (std::int64_t at = 0; n > 0 && at + n <= len; ++at) {
      if (std::equal(text + at, text + at + n - 1, text + len - n + 1))
        banned_.push_back(text[at + n - 1]);
    }
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      const std::int64_t before = o_.bad_len[i] - 1;
      if (before <= len && std::equal(o_.bad[i], o_.bad[i] + before, text + len - before))
        banned_.push_back(o_.bad[i][before]);
    }
    const auto begin = banned_.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, banned_.end());
    banned_.erase(std::unique(begin, banned_.end()), banned_.end());
    most_banned_ = std::max(most_banned_, std::ssize(banned_) - static_cast<std::ptrdiff_t>(first));
  }

  bool is_banned(std::size_t row, std::int32_t token) const {
    return std::binary_search(banned_.begin() + static_cast<std::ptrdiff_t>(banned_begin_[row]),
                              banned_.begin() + static_cast<std::ptrdiff_t>(banned_begin_[row + 1]),
                              token);
  }

  // --- a step ---

  // The best continuations of the rows that the model returned.
  int extend(std::int32_t n, const void* values) {
    // Of W that stay, banned ones and those that the other groups took may have to be replaced.
    const std::int64_t taken = o_.diversity > 0 ? K_ - W_ : 0;
    Rows rows{};
    rows.values = values;
    rows.V = lm_.V;
    rows.dtype = o_.row_dtype;
    rows.wanted =
        static_cast<std::int32_t>(std::min<std::int64_t>(lm_.V, W_ + taken + most_banned_));
    rows.logits = lm_.kind == BS_LOGITS;
    rows.divisor = p_.rank_mode == 0 ? divisor(step_) : 1;
    stride_ = result_bytes(rows.wanted);
    const std::size_t bytes = static_cast<std::size_t>(n) * stride_;
    results_.resize(bytes);
    unsigned char* device = device_results_.room(bytes);
    Sums sums{};
    const cudaStream_t stream = stream_of(ctx_);
    if (n <= kInlineRows) {
      std::copy(acc_.begin(), acc_.end(), sums.acc);
    } else {
      const std::size_t sum_bytes = acc_.size() * sizeof(double);
      unsigned char* room = device_acc_.room(sum_bytes);
      cudaMemcpyAsync(room, acc_.data(), sum_bytes, cudaMemcpyHostToDevice, stream);
      sums.device = reinterpret_cast<const double*>(room);
    }
    const auto run = o_.row_dtype == ASSAY_F32    ? launch<float>
                     : o_.row_dtype == ASSAY_BF16 ? launch<__nv_bfloat16>
                                                  : launch<__half>;
    if (!run(sums, rows, n, device, stream)) return ASSAY_EINTERNAL;
    cudaMemcpyAsync(results_.data(), device, bytes, cudaMemcpyDeviceToHost, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
  }

  // One step of an item, whose rows start at `row`; returns the row behind them.
  std::size_t advance(Item& item, std::size_t row) {
    taken_.clear();
    for (std::size_t g = 0; g < item.sizes.size(); ++g) row = advance_list(item, g, row);
    return row;
  }

  std::size_t advance_list(Item& item, std::size_t g, std::size_t row) {
    Beam* list = item.beams.data() + g * static_cast<std::size_t>(W_);
    const double by = divisor(step_);
    pool_.clear();
    for (std::int32_t i = 0; i < item.sizes[g]; ++i) {
      Beam& beam = list[i];
      if (beam.finished) {
        pool_.push_back({p_.rank_mode == 0 ? beam.score : beam.acc, beam.acc, beam.score, i, -1});
        continue;
      }
      add_candidates(beam, i, by, row);
      beam.state = state_[row++];
    }
    const auto n = std::min<std::ptrdiff_t>(W_, std::ssize(pool_));
    std::partial_sort(pool_.begin(), pool_.begin() + n, pool_.end(),
                      [](const Extension& a, const Extension& b) { return a.before(b); });
    replace(item, g, static_cast<std::int32_t>(n));
    return row;
  }

  void add_candidates(const Beam& beam, std::int32_t place, double by, std::size_t row) {
    const unsigned char* result = results_.data() + row * stride_;
    Header header;
    std::memcpy(&header, result, sizeof header);
    for (std::int32_t c = 0; c < header.count; ++c) {
      Candidate candidate;
      std::memcpy(&candidate,
                  result + sizeof header + static_cast<std::size_t>(c) * sizeof candidate,
                  sizeof candidate);
      if (is_banned(row, candidate.token)) continue;
      const double acc = beam.acc + (static_cast<double>(candidate.value) - header.shift);
      // Tokens that the groups before took compete with less.
      const auto taken =
          static_cast<double>(std::count(taken_.begin(), taken_.end(), candidate.token));
      const double compared = taken > 0 ? acc - o_.diversity * taken : acc;
      pool_.push_back(
          {p_.rank_mode == 0 ? compared / by : compared, acc, acc / by, place, candidate.token});
    }
  }

  // The first n of the pool become the list.
  void replace(Item& item, std::size_t g, std::int32_t n) {
    Beam* list = item.beams.data() + g * static_cast<std::size_t>(W_);
    next_.clear();
    for (std::int32_t j = 0; j < n; ++j) {
      const Extension& e = pool_[static_cast<std::size_t>(j)];
      Beam beam = list[e.place];
      if (e.token >= 0) {
        nodes_.push_back({beam.node, e.token});
        beam.node = static_cast<std::int32_t>(nodes_.size()) - 1;
        beam.acc = e.acc;
        beam.score = e.score;
        beam.last = e.token;
        ++beam.len;
        beam.finished = e.token == p_.eos;
        if (beam.finished) beam.order = item.finished++;
        taken_.push_back(e.token);
      }
      next_.push_back(beam);
    }
    if (p_.keep_finished != 0) save_dropped(item, list, item.sizes[g], n);
    std::copy(next_.begin(), next_.end(), list);
    item.sizes[g] = n;
  }

  void save_dropped(Item& item, const Beam* list, std::int32_t size, std::int32_t kept) {
    for (std::int32_t i = 0; i < size; ++i) {
      if (!list[i].finished) continue;
      const auto end = pool_.begin() + kept;
      const bool stays = std::any_of(
          pool_.begin(), end, [&](const Extension& e) { return e.token < 0 && e.place == i; });
      if (stays) continue;
      const auto at = std::upper_bound(item.dropped.begin(), item.dropped.end(), list[i], ahead);
      item.dropped.insert(at, list[i]);
      if (std::ssize(item.dropped) > K_) item.dropped.pop_back();
    }
  }

  // Stable, and without memory of its own.
  static void insertion_sort(Array<const Beam*>& beams) {
    for (std::size_t i = 1; i < beams.size(); ++i) {
      const Beam* beam = beams[i];
      std::size_t at = i;
      for (; at > 0 && ahead(*beam, *beams[at - 1]); --at) beams[at] = beams[at - 1];
      beams[at] = beam;
    }
  }

  assay_ctx* ctx_;
  const bs_params& p_;
  const bs_options& o_;
  const assay_lm& lm_;
  std::int64_t K_, T_, W_, step_ = 0;
  std::ptrdiff_t most_banned_ = 0;
  std::size_t stride_ = 0;  // of results
  Array<Item> items_;
  Array<Node> nodes_;
  Array<Extension> pool_;
  Array<Beam> next_;
  Array<std::int32_t> banned_;  // of each row
  Array<std::size_t> banned_begin_;
  Array<std::int32_t> text_;
  Array<std::int32_t> taken_;  // tokens that the item's groups took in this step
  Array<std::int32_t> item_, token_;
  Array<std::int64_t> parent_, state_;
  Array<double> acc_;
  Array<unsigned char> results_;
  DeviceBlock values_, device_results_, device_acc_;
};

// --- what is legal ---

bool valid(const bs_params* p, const assay_lm* lm, const Outputs& to) {
  if (p == nullptr || p->size != sizeof(bs_params) || lm == nullptr || lm->size != sizeof(assay_lm))
    return false;
  if (p->B < 0 || p->K < 1 || p->max_new < 0 || p->min_new < 0 || lm->V < 1 || lm->step == nullptr)
    return false;
  if (p->eos < -1 || p->eos >= lm->V || !std::isfinite(p->alpha)) return false;
  const auto flag = [](std::int32_t x) { return x == 0 || x == 1; };
  if (!flag(p->rank_mode) || !flag(p->penalty) || !flag(p->keep_finished) || !flag(lm->kind))
    return false;
  if (p->B == 0) return true;
  if (p->prompt_len == nullptr || p->prompt == nullptr) return false;
  if (std::any_of(p->prompt_len, p->prompt_len + p->B, [](std::int32_t n) { return n < 0; }))
    return false;
  if (p->max_new > 0 && to.seq == nullptr) return false;
  return to.len != nullptr && to.acc != nullptr && to.score != nullptr && to.finished != nullptr &&
         to.n_out != nullptr;
}

bool valid_options(const bs_params& p, const bs_options* o, const assay_lm& lm) {
  if (o == nullptr || o->size != sizeof(bs_options)) return false;
  if (o->row_dtype < ASSAY_F32 || o->row_dtype > ASSAY_F16 || o->no_repeat_ngram < 0) return false;
  if (o->groups < 1 || p.K % o->groups != 0) return false;
  if (!(o->diversity >= 0) || !std::isfinite(o->diversity)) return false;
  if (!(o->patience >= 0) || !std::isfinite(o->patience)) return false;
  if (o->patience > 0 && p.keep_finished == 0) return false;
  if (o->n_bad < 0 || (o->n_bad > 0 && (o->bad_len == nullptr || o->bad == nullptr))) return false;
  for (std::int32_t i = 0; i < o->n_bad; ++i) {
    if (o->bad_len[i] < 1 || o->bad[i] == nullptr) return false;
    const auto no_token = [&](std::int32_t t) { return t < 0 || t >= lm.V; };
    if (std::any_of(o->bad[i], o->bad[i] + o->bad_len[i], no_token)) return false;
  }
  return true;
}

int search(assay_ctx* ctx, const bs_params& p, const bs_options& options, const assay_lm& lm,
           const Outputs& to) {
  try {
    Search search(ctx, p, options, lm);
    const int status = search.run();
    if (status == ASSAY_OK) search.write(to);
    return status;
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

}  // namespace

extern "C" {

int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq, int32_t* len,
                double* acc, double* score, int32_t* finished, int32_t* n_out) {
  const Outputs to{seq, len, acc, score, finished, n_out};
  if (!valid(p, lm, to)) return ASSAY_EINVAL;
  constexpr bs_options kNone{sizeof(bs_options), ASSAY_F32, 0, 0, nullptr, nullptr, 1, 0, 0};
  return search(ctx, *p, kNone, *lm, to);
}

int beam_search_with_options(assay_ctx* ctx, const bs_params* p, const bs_options* options,
                             const assay_lm* lm, int32_t* seq, int32_t* len, double* acc,
                             double* score, int32_t* finished, int32_t* n_out) {
  const Outputs to{seq, len, acc, score, finished, n_out};
  if (!valid(p, lm, to) || !valid_options(*p, options, *lm)) return ASSAY_EINVAL;
  return search(ctx, *p, *options, *lm, to);
}

}  // extern "C"
