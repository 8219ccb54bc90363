// Sample entrant of assay, not a model's answer. One launch and one copy back a step. A block
// streams the values of a row, 16 a thread at a time, and keeps what reaches a bound: the first is
// found by bisection over the threads' maxima, the next by bisection over what was kept. Order is
// that of the scores in double: a value stands for all values that give the same score, so that
// equal scores are in order of token. The host merges the rows of a group with its finished beams,
// and keeps texts as links back. Where tokens may be banned or have been taken by other groups, it
// asks for as many candidates more. All of both functions, and early stops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"

namespace {

// --- the device: the best continuations of each row ---

constexpr int kWarp = 32, kMostThreads = 512;
constexpr int kVector = 4, kAccesses = 4, kPerThread = kVector * kAccesses;
constexpr int kRound = 1024;      // candidates of a row that are found at a time
constexpr int kInlineRows = 448;  // whose sums travel as a parameter of the launch

// A value and its token; the larger key comes first.
using Key = unsigned long long;

struct Candidate {
  float value;
  std::int32_t token;  // -1: none
};

struct Rows {
  const void* values;  // [n, V]
  std::int32_t V, wanted;
  std::int32_t excluded;  // a token that is no candidate, or -1
  bool logits;
  double divisor;      // a sum / divisor is what selects
  const double* sums;  // of the rows' beams; null: they are here
  double here[kInlineRows];
  double* shifts;    // [n]: what is subtracted from the values, written
  Candidate* found;  // [n, wanted], in no order
};

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float widen(__half x) { return __half2float(x); }

__device__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);  // -0 has the bits of +0
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ float value_of(unsigned ordered) {
  return __uint_as_float((ordered & 0x80000000u) != 0 ? ordered ^ 0x80000000u : ~ordered);
}

// The score that a value gives. Larger values never give smaller scores.
struct Score {
  double base, shift, divisor;

  __device__ double operator()(float x) const {
    return (base + (static_cast<double>(x) - shift)) / divisor;
  }

  // The least value, ordered, that gives the same score as x, which is finite.
  __device__ unsigned least_equal(float x) const {
    const double score = (*this)(x);
    unsigned same = ordered(x), smaller = ordered(-INFINITY);
    if (same - 1 == smaller || (*this)(value_of(same - 1)) != score) return same;
    while (same - smaller > 1) {
      const unsigned middle = smaller + (same - smaller) / 2;
      ((*this)(value_of(middle)) == score ? same : smaller) = middle;
    }
    return same;
  }
};

struct Shared {
  int n;
  unsigned least[kWarp], greatest[kWarp];  // of the warps
  float maxima[kWarp];
  double sums[kWarp];
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

__host__ __device__ int most_before_cut(int wanted) { return 2 * wanted + 256; }

// The best `wanted` of the keys below `ceiling`. All threads call what is not push.
class Best {
 public:
  __device__ Best(Key* keys, Shared& shared, int wanted, Key ceiling)
      : keys_(keys), shared_(shared), wanted_(wanted), ceiling_(ceiling) {
    __syncthreads();  // the list before has been read
    if (threadIdx.x == 0) shared_.n = 0;
    __syncthreads();
  }

  __device__ float bound_value() const { return bound_value_; }

  // A lower bound, from one value of each thread; -inf is no candidate.
  __device__ void start(float mine, const Score& score) {
    if (wanted_ > static_cast<int>(blockDim.x)) return;
    const unsigned own = ordered(mine);
    const Range range = block_range({own, own}, shared_);
    const auto count = [own](unsigned bound) { return __syncthreads_count(own >= bound); };
    const int enough = wanted_ + wanted_ / 4 + 4;
    const unsigned value = bisect(range.least, range.greatest + 1, wanted_, enough, count);
    if (value > ordered(-INFINITY)) set_bound(Key{score.least_equal(value_of(value))} << 32);
  }

  __device__ void push(Key key) {
    if (key >= bound_ && key < ceiling_) keys_[atomicAdd(&shared_.n, 1)] = key;
  }

  // To be called between rounds of pushes.
  __device__ void settle() {
    __syncthreads();
    const int n = shared_.n;
    __syncthreads();
    if (n > most_before_cut(wanted_)) cut(n, wanted_ + wanted_ / 2 + 16);
  }

  // Leaves the best alone. Returns how many there are.
  __device__ int finish() {
    __syncthreads();
    const int n = shared_.n;
    __syncthreads();
    if (n > wanted_) cut(n, wanted_);
    return shared_.n;
  }

 private:
  __device__ void set_bound(Key bound) {
    bound_ = bound;
    bound_value_ = value_of(static_cast<unsigned>(bound >> 32));
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

  // Raises the bound until it leaves `wanted` keys, or not more than `most`, and removes the
  // others. Values are bisected first, tokens only where values are equal.
  __device__ void cut(int n, int most) {
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
    const unsigned value = bisect(range.least, range.greatest + 1, wanted_, most, values);
    Key bound = Key{value} << 32;
    if (values(value) > most) bound = bisect(bound, bound + (Key{1} << 32), wanted_, most, keys);
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
  int wanted_;
  Key ceiling_;
  Key bound_ = 0;
  float bound_value_ = -INFINITY;
};

template <class T>
struct alignas(kVector * sizeof(T)) Vector {
  T values[kVector];
};

// Four values from x[first] on, an aligned place; those outside 0 .. count-1 are -inf.
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

// log(sum(exp(x))) of a row in double, for every thread; 0 if every x is -inf.
template <class T>
__device__ double log_sum(const T* x, std::int32_t V, Shared& shared) {
  const int threads = blockDim.x, lane = threadIdx.x % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, warps = threads / kWarp;
  float max = -INFINITY;
  for (std::int32_t v = threadIdx.x; v < V; v += threads) max = fmaxf(max, widen(x[v]));
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    max = fmaxf(max, __shfl_xor_sync(~0u, max, offset));
  if (lane == 0) shared.maxima[warp] = max;
  __syncthreads();
  for (int w = 0; w < warps; ++w) max = fmaxf(max, shared.maxima[w]);
  if (max == -INFINITY) return 0;
  double sum = 0;
  for (std::int32_t v = threadIdx.x; v < V; v += threads)
    sum += exp(static_cast<double>(widen(x[v])) - static_cast<double>(max));
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (lane == 0) shared.sums[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < warps; ++w) sum += shared.sums[w];
  return static_cast<double>(max) + log(sum);
}

// A block for each row.
template <class T>
__global__ void __launch_bounds__(kMostThreads) best_of_rows(const __grid_constant__ Rows rows) {
  extern __shared__ Key keys[];
  __shared__ Shared shared;
  const std::int64_t row = blockIdx.x;
  const T* x = static_cast<const T*>(rows.values) + row * rows.V;
  const Score score{rows.sums != nullptr ? rows.sums[row] : rows.here[row],
                    rows.logits ? log_sum(x, rows.V, shared) : 0.0, rows.divisor};
  if (threadIdx.x == 0) rows.shifts[row] = score.shift;
  // Vectors start where memory is aligned, up to three values before the row.
  const auto address = reinterpret_cast<std::uintptr_t>(x);
  const int before = static_cast<int>(address % sizeof(Vector<T>) / sizeof(T));
  const int threads = blockDim.x;
  Candidate* found = rows.found + row * rows.wanted;
  Key ceiling = ~Key{0};
  for (int done = 0; done < rows.wanted; done += kRound) {
    const int wanted = min(rows.wanted - done, kRound);
    Best best(keys, shared, wanted, ceiling);
    for (int tile = -before; tile < rows.V; tile += kPerThread * threads) {
      const int mine = tile + kVector * static_cast<int>(threadIdx.x);
      const auto token_of = [&](int i) {
        return mine + i / kVector * kVector * threads + i % kVector;
      };
      float z[kPerThread];
#pragma unroll
      for (int a = 0; a < kAccesses; ++a)
        load(x, mine + a * kVector * threads, rows.V, z + a * kVector);
      if (rows.excluded >= 0) {
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
          if (token_of(i) == rows.excluded) z[i] = -INFINITY;
        }
      }
      float max = -INFINITY;
#pragma unroll
      for (const float value : z) max = fmaxf(max, value);
      if (tile <= 0 && done == 0) best.start(max, score);
      if (max >= best.bound_value() && max > -INFINITY) {
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
          if (!(z[i] >= best.bound_value()) || z[i] == -INFINITY) continue;
          const auto token = static_cast<unsigned>(token_of(i));
          best.push(Key{score.least_equal(z[i])} << 32 | ~token);
        }
      }
      best.settle();
    }
    const int n = best.finish();
    for (int i = threadIdx.x; i < wanted; i += threads) {
      const auto token = i < n ? static_cast<std::int32_t>(~static_cast<unsigned>(keys[i])) : -1;
      found[done + i] = {token < 0 ? 0.0f : widen(x[token]), token};
    }
    if (n < wanted) {
      ceiling = 0;  // there are no more
    } else if (done + wanted < rows.wanted) {
      for (int i = 0; i < n; ++i) ceiling = min(ceiling, keys[i]);
    }
  }
}

template <class T>
void launch(const Rows& rows, std::int32_t n, cudaStream_t stream) {
  const int wanted = std::min(rows.wanted, kRound);
  int threads = wanted <= 32 ? 256 : kMostThreads;
  while (threads > kWarp && threads / 2 * kPerThread >= rows.V + kVector) threads /= 2;
  const auto bytes = static_cast<int>(
      static_cast<std::size_t>(most_before_cut(wanted) + kPerThread * threads) * sizeof(Key));
  cudaFuncSetAttribute(best_of_rows<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  best_of_rows<T><<<static_cast<unsigned>(n), threads, bytes, stream>>>(rows);
}

// --- the host: items, lists and texts ---

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Extension {
  double key, acc;
  std::int32_t parent, token;

  bool operator<(const Extension& e) const {  // better first
    if (key != e.key) return key > e.key;
    return parent != e.parent ? parent < e.parent : token < e.token;
  }
};

struct Beam {
  double acc, score;
  std::int64_t state;
  std::int32_t link;                // the last token's place in the item's links, -1: none
  std::int32_t len, token, serial;  // serial: of finished beams, from 0; -1: active

  bool done() const { return serial >= 0; }
  // The order of the answer.
  bool ahead(const Beam& b) const {
    if (score != b.score) return score > b.score;
    if (done() != b.done()) return done();
    return done() && serial < b.serial;
  }
};

struct Link {
  std::int32_t before, token;
};

// Lists of groups stand one after the other, K / groups places each.
struct Item {
  Beam *list, *next, *bank;
  std::int32_t* sizes;  // [groups]
  Link* links;
  std::int32_t banked, serials, n_links;
  bool settled;  // it makes no more steps, and answers with finished beams alone
};

// Memory of the context, all of which goes back at the end.
class Memory {
 public:
  explicit Memory(assay_ctx* ctx) : ctx_(ctx) {}
  ~Memory() {
    for (int i = 0; i < n_; ++i) ctx_->free(ctx_, blocks_[i]);
  }
  Memory(const Memory&) = delete;
  template <class T>
  bool get(T*& p, std::int64_t n, int space = 0) {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T);
    p = static_cast<T*>(ctx_->alloc(ctx_, bytes, 256, space));
    if (p != nullptr) blocks_[n_++] = p;
    return p != nullptr;
  }

 private:
  assay_ctx* ctx_;
  void* blocks_[20];
  int n_ = 0;
};

struct Results {
  std::int32_t* seq;
  std::int32_t* len;
  double *acc, *score;
  std::int32_t *finished, *n_out;
};

class Searcher {
 public:
  Searcher(assay_ctx* ctx, const bs_params& p, const assay_lm& lm, const bs_options& options)
      : ctx_(ctx),
        p_(p),
        lm_(lm),
        o_(options),
        memory_(ctx),
        K_(p.K),
        places_(p.K / options.groups) {}

  bool allocate() {
    const std::int64_t n = std::int64_t{p_.B} * K_;
    const std::int64_t row_bytes = lm_.V * std::int64_t{o_.row_dtype == ASSAY_F32 ? 4 : 2};
    const std::int64_t most_banned =
        o_.n_bad + std::int64_t{o_.no_repeat_ngram > 0 ? p_.max_new : 0};
    each_ = static_cast<std::int32_t>(std::min<std::int64_t>(K_ + most_banned, lm_.V));
    Beam* beams;
    Link* links;
    std::int32_t* sizes;
    if (!memory_.get(items_, p_.B) || !memory_.get(beams, 3 * n) ||
        !memory_.get(links, n * p_.max_new) || !memory_.get(sizes, std::int64_t{p_.B} * o_.groups))
      return false;
    if (p_.max_new > 0 &&
        (!memory_.get(values_, n * row_bytes, 1) || !memory_.get(found_, found_bytes(n), 1) ||
         !memory_.get(host_found_, found_bytes(n)) || !memory_.get(sums_, n) ||
         !memory_.get(state_, n) || !memory_.get(parent_, n) || !memory_.get(item_, n) ||
         !memory_.get(token_, n) || !memory_.get(pool_, std::int64_t{places_} * each_)))
      return false;
    if (n > kInlineRows && p_.max_new > 0 && !memory_.get(device_sums_, n, 1)) return false;
    if (bans() && (!memory_.get(text_, p_.max_new) || !memory_.get(banned_, lm_.V))) return false;
    if (o_.groups > 1 && !memory_.get(taken_, lm_.V)) return false;
    if (bans()) std::fill_n(banned_, lm_.V, 0);
    if (o_.groups > 1) std::fill_n(taken_, lm_.V, 0);
    for (std::int64_t b = 0; b < p_.B; ++b) {
      Beam* mine = beams + 3 * K_ * b;
      items_[b] = {
          mine, mine + K_, mine + 2 * K_, sizes + b * o_.groups, links + b * K_ * p_.max_new, 0,
          0,    0,         false};
      for (std::int32_t g = 0; g < o_.groups; ++g) {
        items_[b].sizes[g] = 1;
        mine[g * places_] = {0, 0, -1, -1, 0, 0, -1};
      }
    }
    return true;
  }

  int run() {
    for (step_ = 1; step_ <= p_.max_new; ++step_) {
      divisor_ = divisor(step_);
      const std::int32_t rows = gather();
      if (rows == 0) break;
      int status = lm_.step(lm_.user, ctx_, rows, item_, parent_, token_,
                            reinterpret_cast<float*>(values_), state_);
      if (status != ASSAY_OK) return status;
      status = find(rows);
      if (status != ASSAY_OK) return status;
      for (std::int32_t row = 0; row < rows;) row = advance(items_[item_[row]], row, rows);
    }
    return ASSAY_OK;
  }

  void write(const Results& to) {
    for (std::int32_t b = 0; b < p_.B; ++b) {
      Item& it = items_[b];
      Beam* end = it.list;
      for (std::int32_t g = 0; g < o_.groups; ++g) {
        for (std::int32_t i = 0; i < it.sizes[g]; ++i) {
          const Beam& beam = it.list[g * places_ + i];
          if (beam.done() || !it.settled) *end++ = beam;
        }
      }
      // Finished beams of one score are in order of their serial, active ones of their place.
      std::stable_sort(it.list, end, [](const Beam& x, const Beam& y) { return x.ahead(y); });
      const Beam *listed = it.list, *dropped = it.bank, *last = it.bank + it.banked;
      std::int32_t k = 0;
      for (; k < K_ && (listed < end || dropped < last); ++k) {
        const bool banked = listed == end || (dropped < last && dropped->ahead(*listed));
        write_beam(it, banked ? *dropped++ : *listed++, std::int64_t{b} * K_ + k, to);
      }
      to.n_out[b] = k;
      if (p_.max_new > 0) {
        std::fill_n(to.seq + (std::int64_t{b} * K_ + k) * p_.max_new,
                    std::int64_t{K_ - k} * p_.max_new, -1);
      }
    }
  }

 private:
  bool bans() const { return o_.no_repeat_ngram > 0 || o_.n_bad > 0; }

  // Of n rows: their shifts, then their candidates.
  std::int64_t found_bytes(std::int64_t n) const {
    return n * static_cast<std::int64_t>(sizeof(double) + sizeof(Candidate) * each_);
  }

  double divisor(std::int32_t len) const {
    return std::pow(p_.penalty == 0 ? static_cast<double>(len) : (5.0 + len) / 6.0, p_.alpha);
  }

  template <class Do>
  void for_each_beam(Item& it, const Do& body) {
    for (std::int32_t g = 0; g < o_.groups; ++g) {
      for (std::int32_t i = 0; i < it.sizes[g]; ++i) body(it.list[g * places_ + i]);
    }
  }

  // What the model is asked for, and how many candidates a row has to give. Returns the number of
  // rows.
  std::int32_t gather() {
    std::int32_t rows = 0, most_banned = 0;
    for (std::int32_t b = 0; b < p_.B; ++b) {
      Item& it = items_[b];
      it.settled = it.settled || is_settled(it);
      if (it.settled) continue;
      for_each_beam(it, [&](const Beam& beam) {
        if (beam.done()) return;
        if (bans()) most_banned = std::max(most_banned, mark_banned(it, beam));
        item_[rows] = b;
        parent_[rows] = beam.state;
        token_[rows] = beam.token;
        sums_[rows++] = beam.acc;
      });
    }
    // Each group before may have made some tokens worse, and those that are banned are left out.
    wanted_ =
        static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{K_} + most_banned, lm_.V));
    return rows;
  }

  // Marks the tokens that may not follow a beam with a stamp_ of its own. Returns how many.
  std::int32_t mark_banned(const Item& it, const Beam& beam) {
    ++stamp_;
    std::int32_t n = 0, link = beam.link;
    const std::int32_t len = beam.len;
    for (std::int32_t t = len; t-- > 0; link = it.links[link].before)
      text_[t] = it.links[link].token;
    const auto ban = [&](std::int32_t token) {
      if (banned_[token] == stamp_) return;
      banned_[token] = stamp_;
      ++n;
    };
    const std::int32_t before = o_.no_repeat_ngram - 1;  // tokens of an n-gram but its last
    for (std::int32_t i = 0; before >= 0 && i + before < len; ++i) {
      if (std::equal(text_ + i, text_ + i + before, text_ + len - before)) ban(text_[i + before]);
    }
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      const std::int32_t m = o_.bad_len[i] - 1;
      if (m <= len && std::equal(o_.bad[i], o_.bad[i] + m, text_ + len - m)) ban(o_.bad[i][m]);
    }
    return n;
  }

  // Whether K finished beams beat all that the active ones can still become. A score lies between
  // those of the shortest and of the longest text.
  bool is_settled(Item& it) {
    double most = -kInf;
    for_each_beam(it, [&](const Beam& beam) {
      if (!beam.done()) most = std::max(most, beam.acc);
    });
    if (p_.keep_finished == 0 || most == -kInf) return false;
    const double bound = std::max(most / divisor_, most / divisor(p_.max_new));
    std::int64_t beating = 0;
    const auto count = [&](const Beam& beam) {
      beating += beam.done() && beam.score > bound ? 1 : 0;
    };
    for_each_beam(it, count);
    std::for_each(it.bank, it.bank + it.banked, count);
    return beating >= K_;
  }

  int find(std::int32_t n) {
    const auto stream = static_cast<cudaStream_t>(ctx_->stream);
    Rows rows{};
    rows.values = values_;
    rows.V = lm_.V;
    rows.wanted = wanted_;
    rows.excluded = step_ < p_.min_new ? p_.eos : -1;
    rows.logits = lm_.kind == BS_LOGITS;
    rows.divisor = p_.rank_mode == 0 ? divisor_ : 1.0;
    rows.shifts = reinterpret_cast<double*>(found_);
    rows.found = reinterpret_cast<Candidate*>(rows.shifts + n);
    if (n <= kInlineRows) {
      std::copy_n(sums_, n, rows.here);
    } else {
      rows.sums = device_sums_;
      cudaMemcpyAsync(device_sums_, sums_, static_cast<std::size_t>(n) * sizeof(double),
                      cudaMemcpyHostToDevice, stream);
    }
    const auto run = o_.row_dtype == ASSAY_F32    ? &launch<float>
                     : o_.row_dtype == ASSAY_BF16 ? &launch<__nv_bfloat16>
                                                  : &launch<__half>;
    run(rows, n, stream);
    const std::size_t bytes =
        static_cast<std::size_t>(n) *
        (sizeof(double) + sizeof(Candidate) * static_cast<std::size_t>(wanted_));
    cudaMemcpyAsync(host_found_, found_, bytes, cudaMemcpyDeviceToHost, stream);
    if (cudaGetLastError() != cudaSuccess) return ASSAY_EINTERNAL;
    return cudaStreamSynchronize(stream) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
  }

  // A step of an item, whose rows begin at `row`; returns the row behind its last.
  std::int32_t advance(Item& it, std::int32_t row, std::int32_t rows) {
    for (std::int32_t g = 0; g < o_.groups; ++g) {
      row = collect(it, g, row, rows);
      rebuild(it, g);
    }
    if (o_.groups > 1) std::fill_n(taken_, lm_.V, 0);
    std::swap(it.list, it.next);
    if (o_.patience > 0 && it.serials >= o_.patience * K_) it.settled = true;
    return row;
  }

  // Fills pool_ with the best continuations of a group, in order; returns the row behind its last.
  std::int32_t collect(Item& it, std::int32_t group, std::int32_t row, std::int32_t rows) {
    const auto* shifts = reinterpret_cast<const double*>(host_found_);
    const auto* found = reinterpret_cast<const Candidate*>(shifts + rows);
    n_ = 0;
    for (std::int32_t i = 0; i < it.sizes[group]; ++i) {
      Beam& beam = it.list[group * places_ + i];
      if (beam.done()) continue;
      beam.state = state_[row];
      if (bans()) mark_banned(it, beam);
      for (std::int32_t k = 0; k < wanted_; ++k) {
        const Candidate& c = found[std::int64_t{row} * wanted_ + k];
        if (c.token < 0 || (bans() && banned_[c.token] == stamp_)) continue;
        const double acc = beam.acc + (static_cast<double>(c.value) - shifts[row]);
        const double compared = o_.groups > 1 ? acc - o_.diversity * taken_[c.token] : acc;
        pool_[n_++] = {p_.rank_mode == 0 ? compared / divisor_ : compared, acc, i, c.token};
      }
      ++row;
    }
    const std::int64_t most = std::min<std::int64_t>(n_, places_);
    std::partial_sort(pool_, pool_ + most, pool_ + n_);
    n_ = most;
    return row;
  }

  // Merges the finished beams of a group's list with the pool.
  void rebuild(Item& it, std::int32_t group) {
    const Beam* list = it.list + group * places_;
    Beam* next = it.next + group * places_;
    const std::int32_t size = it.sizes[group];
    std::int32_t n = 0, old = 0;
    std::int64_t fresh = 0;
    const auto to_finished = [&] {
      while (old < size && !list[old].done()) ++old;
    };
    for (; n < places_; ++n) {
      to_finished();
      const bool has_old = old < size, has_fresh = fresh < n_;
      if (!has_old && !has_fresh) break;
      const double key = !has_old ? 0 : p_.rank_mode == 0 ? list[old].score : list[old].acc;
      const bool takes_old = has_old && (!has_fresh || key >= pool_[fresh].key);
      next[n] = takes_old ? list[old++] : extended(it, list, pool_[fresh++]);
    }
    for (to_finished(); p_.keep_finished != 0 && old < size; to_finished()) bank(it, list[old++]);
    it.sizes[group] = n;
  }

  Beam extended(Item& it, const Beam* list, const Extension& e) {
    const Beam& parent = list[e.parent];
    it.links[it.n_links] = {parent.link, e.token};
    if (o_.groups > 1) ++taken_[e.token];
    const std::int32_t serial = e.token == p_.eos ? it.serials++ : -1;
    return {e.acc, e.acc / divisor_, parent.state, it.n_links++, step_, e.token, serial};
  }

  // The best K of the finished beams that were dropped, best first.
  void bank(Item& it, const Beam& beam) {
    std::int32_t at = it.banked;
    while (at > 0 && beam.ahead(it.bank[at - 1])) --at;
    if (at == K_) return;
    if (it.banked < K_) ++it.banked;
    std::copy_backward(it.bank + at, it.bank + it.banked - 1, it.bank + it.banked);
    it.bank[at] = beam;
  }

  void write_beam(const Item& it, const Beam& beam, std::int64_t at, const Results& to) {
    std::int32_t* seq = to.seq + at * p_.max_new;
    std::int32_t link = beam.link;
    for (std::int32_t t = beam.len; t-- > 0; link = it.links[link].before)
      seq[t] = it.links[link].token;
    if (p_.max_new > 0) std::fill(seq + beam.len, seq + p_.max_new, -1);
    to.len[at] = beam.len;
    to.acc[at] = beam.acc;
    to.score[at] = beam.score;
    to.finished[at] = beam.done() ? 1 : 0;
  }

  assay_ctx* ctx_;
  const bs_params& p_;
  const assay_lm& lm_;
  const bs_options& o_;
  Memory memory_;
  std::int32_t K_, places_;  // places_: of a group's list
  std::int32_t each_ = 0;    // most candidates of a row
  std::int32_t wanted_ = 0;  // of this step
  std::int32_t step_ = 0;
  double divisor_ = 1;
  Item* items_ = nullptr;
  char *values_ = nullptr, *found_ = nullptr, *host_found_ = nullptr;
  double *sums_ = nullptr, *device_sums_ = nullptr;
  std::int64_t *state_ = nullptr, *parent_ = nullptr;
  std::int32_t *item_ = nullptr, *token_ = nullptr;
  std::int32_t* text_ = nullptr;    // of a beam
  std::int64_t* banned_ = nullptr;  // [V]: stamps of those who may not take the token
  std::int64_t stamp_ = 0;
  std::int32_t* taken_ = nullptr;  // [V]: by the groups before, in this step
  Extension* pool_ = nullptr;
  std::int64_t n_ = 0;  // of the pool
};

bool is_flag(std::int32_t x) { return x == 0 || x == 1; }

bool valid(const bs_params* p, const assay_lm* lm, const Results& to) {
  if (p == nullptr || lm == nullptr) return false;
  if (p->size != sizeof(bs_params) || lm->size != sizeof(assay_lm)) return false;
  if (lm->step == nullptr || lm->V < 1 || !is_flag(lm->kind)) return false;
  if (p->B < 0 || p->K < 1 || p->max_new < 0 || p->min_new < 0) return false;
  if (p->eos < -1 || p->eos >= lm->V || !std::isfinite(p->alpha)) return false;
  if (!is_flag(p->rank_mode) || !is_flag(p->keep_finished) || !is_flag(p->penalty)) return false;
  if (p->B == 0) return true;
  if (p->prompt_len == nullptr || p->prompt == nullptr || (p->max_new > 0 && to.seq == nullptr))
    return false;
  for (std::int32_t b = 0; b < p->B; ++b) {
    if (p->prompt_len[b] < 0) return false;
  }
  return to.len != nullptr && to.acc != nullptr && to.score != nullptr && to.finished != nullptr &&
         to.n_out != nullptr;
}

bool valid(const bs_options& o, const bs_params& p, std::int32_t V) {
  if (o.size != sizeof(bs_options)) return false;
  if (o.row_dtype != ASSAY_F32 && o.row_dtype != ASSAY_BF16 && o.row_dtype != ASSAY_F16)
    return false;
  if (o.no_repeat_ngram < 0 || o.n_bad < 0 || o.groups < 1 || p.K % o.groups != 0) return false;
  if (!std::isfinite(o.diversity) || o.diversity < 0) return false;
  if (!std::isfinite(o.patience) || o.patience < 0 || (o.patience > 0 && p.keep_finished != 1))
    return false;
  if (o.n_bad > 0 && (o.bad_len == nullptr || o.bad == nullptr)) return false;
  for (std::int32_t i = 0; i < o.n_bad; ++i) {
    if (o.bad_len[i] < 1 || o.bad[i] == nullptr) return false;
    const auto unknown = [V](std::int32_t token) { return token < 0 || token >= V; };
    if (std::any_of(o.bad[i], o.bad[i] + o.bad_len[i], unknown)) return false;
  }
  return true;
}

int search(assay_ctx* ctx, const bs_params& p, const assay_lm& lm, const bs_options& options,
           const Results& to) {
  if (p.B == 0) return ASSAY_OK;
  Searcher searcher(ctx, p, lm, options);
  if (!searcher.allocate()) return ASSAY_ENOMEM;
  const int status = searcher.run();
  if (status == ASSAY_OK) searcher.write(to);
  return status;
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  const Results to{seq, len, acc, score, finished, n_out};
  if (!valid(p, lm, to)) return ASSAY_EINVAL;
  bs_options none{};
  none.row_dtype = ASSAY_F32;
  none.groups = 1;
  return search(ctx, *p, *lm, none, to);
}

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p, const bs_options* o,
                                        const assay_lm* lm, int32_t* seq, int32_t* len, double* acc,
                                        double* score, int32_t* finished, int32_t* n_out) {
  const Results to{seq, len, acc, score, finished, n_out};
  if (!valid(p, lm, to) || o == nullptr || !valid(*o, *p, lm->V)) return ASSAY_EINVAL;
  return search(ctx, *p, *lm, *o, to);
}
