// The expert implementation for a CPU.
//
// Napkin arithmetic. Attention, P = 8192, N = 60, Hq/Hkv = 16/4, D = 128: 4 Hq D N P = 4.0 GF over 34 MB of
// keys and values, so 120 flops a byte: bound by arithmetic. A 2.6 GHz core with two 16-lane FMA units
// does 166 GF/s, two of them need 12 ms at best; the 7.9 M exponentials at 12 operations a lane
// add 1 ms. What matters is that all query rows of a key head (heads times nodes: 240) pass over a tile
// of keys while it is in the L2 cache, and that the inner loops are nothing but FMAs.
//   Lanes are query rows: scores, weights and outputs are stored transposed, so a key or value element
//   is one broadcast, the softmax needs no horizontal step, and neither keys nor values are packed.
//   The prefix is visible to every row and needs no mask at all. The few ancestors of a row are
//   visited one by one before, and nothing that is masked is ever read.
// Acceptance, B = 64, N = 64, V = 32000: 524 MB of logits, of which the walk needs only n_acc + 1 rows
// an item, about 60 MB: 3 to 6 ms at 10 to 20 GB/s. Rows are read when the walk reaches them.
// Measured on two cores of an EPYC: attention 24.6 ms, 163 GF/s; acceptance 2.3 ms.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "abi.h"

namespace {

#ifdef __AVX512F__
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kRows = 2 * kLanes;        // query rows of a block
constexpr std::int64_t kTile = 64;       // keys of a tile
constexpr std::int64_t kMostBlocks = 8;  // blocks that share a tile

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
Vec splat(float f) { return f - Vec{}; }
Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2] (coefficients of Cephes' expf), about 2 ulp;
// 0 below -87 and for NaN.
Vec exp_nonpositive(Vec x) {
  const Vec clamped = x > -87.0f ? x : splat(-87.0f);
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23 rounds to an integer
  const Vec shifted = clamped * 1.44269504f + magic;
  const Vec n = shifted - magic;
  Vec r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec y = splat(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  const VecI exponent = (std::bit_cast<VecI>(shifted) - std::bit_cast<VecI>(magic)) << 23;
  const Vec scaled = std::bit_cast<Vec>(std::bit_cast<VecI>(y) + exponent);
  return x > -87.0f ? scaled : Vec{};
}

// Runs body(thread) on up to `threads` threads, this one included.
template <class Body>
void on_threads(std::int64_t threads, const Body& body) {
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  body(0);
  for (std::thread& other : others) other.join();
}

// An array from the context's allocator.
template <class T>
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t n)
      : ctx_(ctx),
        data_(static_cast<T*>(ctx->alloc(
            ctx, static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T), 64, 0))) {}
  ~Scratch() { ctx_->free(ctx_, data_); }
  Scratch(const Scratch&) = delete;
  bool failed() const { return data_ == nullptr; }
  T* data() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  assay_ctx* ctx_;
  T* data_;
};

bool valid_tree(std::int64_t n, const std::int32_t* parent) {
  if (n > 0 && parent == nullptr) return false;
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent[i] < -1 || parent[i] >= i) return false;
  }
  return true;
}

bool valid_cu(std::int32_t B, const std::int64_t* cu) {
  if (B < 0) return false;
  if (B == 0) return true;
  if (cu == nullptr || cu[0] != 0) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] < cu[b]) return false;
  }
  return true;
}

bool valid_trees(std::int32_t B, const std::int64_t* cu, const std::int32_t* parent) {
  if (!valid_cu(B, cu)) return false;
  if (B > 0 && cu[B] > 0 && parent == nullptr) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] > cu[b] && !valid_tree(cu[b + 1] - cu[b], parent + cu[b])) return false;
  }
  return true;
}

bool valid_prefixes(std::int32_t B, const std::int64_t* P) {
  if (B > 0 && P == nullptr) return false;
  return std::all_of(P, P + B, [](std::int64_t p) { return p >= 1; });
}

float widen(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

std::uint16_t narrow(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

bool has_null(std::int64_t B, const void* const* pointers) {
  return B > 0 &&
         (pointers == nullptr || std::find(pointers, pointers + B, nullptr) != pointers + B);
}

// --- attention -------------------------------------------------------------------------------------

// out[c][row] (+)= sum over i < n of a[i][row] * b(i, c) for kCount columns c and the rows of a block.
// a: vectors of a block, kRows apart. b(i, c) = b[i * step_i + c * step_c].
template <int kCount, bool kAdd>
inline void multiply(const float* a, std::int64_t n, const float* b, std::int64_t step_i,
                     std::int64_t step_c, float* out) {
  Vec acc[kCount][2];
  for (int c = 0; c < kCount; ++c) {
    acc[c][0] = kAdd ? load(out + c * kRows) : Vec{};
    acc[c][1] = kAdd ? load(out + c * kRows + kLanes) : Vec{};
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const Vec a0 = load(a + i * kRows), a1 = load(a + i * kRows + kLanes);
    const float* row = b + i * step_i;
    for (int c = 0; c < kCount; ++c) {
      const float x = row[c * step_c];
      acc[c][0] += a0 * x;
      acc[c][1] += a1 * x;
    }
  }
  for (int c = 0; c < kCount; ++c) {
    store(out + c * kRows, acc[c][0]);
    store(out + c * kRows + kLanes, acc[c][1]);
  }
}

template <bool kAdd>
void multiply_all(const float* a, std::int64_t n, const float* b, std::int64_t step_i,
                  std::int64_t step_c, std::int64_t columns, float* out) {
  std::int64_t c = 0;
  for (; c + 8 <= columns; c += 8) {
    multiply<8, kAdd>(a, n, b + c * step_c, step_i, step_c, out + c * kRows);
  }
  for (; c < columns; ++c) multiply<1, kAdd>(a, n, b + c * step_c, step_i, step_c, out + c * kRows);
}

// A block of query rows of one key head: its transposed queries and its running softmax.
struct Block {
  float *q, *o;      // [D][kRows]
  float *max, *sum;  // [kRows]
};

template <class T>
class Attention {
 public:
  Attention(const fa_params* p, const std::int64_t* P, const std::int64_t* cu,
            const std::int32_t* parent, const T* q, const void* const* kc, const void* const* vc,
            T* o, float* lse)
      : p_(p),
        P_(P),
        cu_(cu),
        parent_(parent),
        q_(q),
        kc_(kc),
        vc_(vc),
        o_(o),
        lse_(lse),
        D_(p->D),
        group_(p->Hq / p->Hkv),
        stride_(p->Hkv * p->D) {}

  std::int32_t run(assay_ctx* ctx) {
    const std::int64_t threads = std::max(1, ctx->nthreads);
    std::int64_t total = 0, most = 0;
    for (std::int64_t b = 0; b < p_->B; ++b) {
      total += blocks(b) * p_->Hkv;
      most = std::max(most, blocks(b));
    }
    per_task_ = std::clamp<std::int64_t>(total / (2 * threads), 1, std::min(kMostBlocks, most));
    std::int64_t tasks = 0;
    for (std::int64_t b = 0; b < p_->B; ++b) tasks += tasks_of(b);
    const std::int64_t workers = std::min(threads, tasks);
    const std::int64_t each = scratch_floats();
    auto* scratch = static_cast<float*>(
        ctx->alloc(ctx, static_cast<std::size_t>(workers * each) * sizeof(float), 64, 0));
    if (scratch == nullptr) return ASSAY_ENOMEM;
    std::atomic<std::int64_t> next{0};
    on_threads(workers, [&](std::int64_t t) {
      for (std::int64_t i = next++; i < tasks; i = next++) task(i, scratch + t * each);
    });
    ctx->free(ctx, scratch);
    return ASSAY_OK;
  }

 private:
  std::int64_t nodes(std::int64_t b) const { return cu_[b + 1] - cu_[b]; }
  std::int64_t rows(std::int64_t b) const { return nodes(b) * group_; }
  std::int64_t blocks(std::int64_t b) const { return (rows(b) + kRows - 1) / kRows; }
  std::int64_t tasks_of(std::int64_t b) const {
    return (blocks(b) + per_task_ - 1) / per_task_ * p_->Hkv;
  }
  std::int64_t block_floats() const { return (2 * D_ + 2) * kRows; }
  std::int64_t scratch_floats() const {
    const std::int64_t widened = std::is_same_v<T, float> ? 0 : 2 * kTile * D_;
    return (per_task_ * block_floats() + kTile * kRows + widened + kRows) / 16 * 16 + 16;
  }

  static float read(float x) { return x; }
  static float read(std::uint16_t x) { return widen(x); }
  static void write(float& to, float x) { to = x; }
  static void write(std::uint16_t& to, float x) { to = narrow(x); }

  // Rows of an item and key head: node-major, so that a block holds few nodes and all their heads.
  std::int64_t q_index(std::int64_t b, std::int64_t head, std::int64_t row) const {
    return (cu_[b] + row / group_) * p_->Hq + head * group_ + row % group_;
  }

  void task(std::int64_t index, float* scratch) const {
    std::int64_t b = 0;
    while (index >= tasks_of(b)) index -= tasks_of(b++);
    const std::int64_t head = index % p_->Hkv, first = index / p_->Hkv * per_task_;
    const std::int64_t count = std::min(per_task_, blocks(b) - first);
    Block all[kMostBlocks];
    float* at = scratch;
    for (std::int64_t i = 0; i < count; ++i, at += block_floats()) {
      all[i] = {at, at + D_ * kRows, at + 2 * D_ * kRows, at + (2 * D_ + 1) * kRows};
      start(b, head, (first + i) * kRows, all[i]);
    }
    float* p = scratch + per_task_ * block_floats();
    float* tile = p + kTile * kRows;
    const T* k = static_cast<const T*>(kc_[b]) + head * D_;
    const T* v = static_cast<const T*>(vc_[b]) + head * D_;
    for (std::int64_t j = 0; j < P_[b]; j += kTile) {
      const std::int64_t n = std::min(kTile, P_[b] - j);
      if constexpr (std::is_same_v<T, float>) {
        for (std::int64_t i = 0; i < count; ++i) {
          absorb(all[i], k + j * stride_, v + j * stride_, stride_, n, p);
        }
      } else {
        widen_rows(k + j * stride_, n, tile);
        widen_rows(v + j * stride_, n, tile + kTile * D_);
        for (std::int64_t i = 0; i < count; ++i) absorb(all[i], tile, tile + kTile * D_, D_, n, p);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) finish(b, head, (first + i) * kRows, all[i]);
  }

  void widen_rows(const T* from, std::int64_t n, float* to) const {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t d = 0; d < D_; ++d) to[j * D_ + d] = read(from[j * stride_ + d]);
    }
  }

  // Queries, scaled and transposed, and the softmax over the node itself and its ancestors.
  void start(std::int64_t b, std::int64_t head, std::int64_t first, const Block& block) const {
    std::memset(block.q, 0, static_cast<std::size_t>(block_floats()) * sizeof(float));
    const std::int64_t count = std::min<std::int64_t>(kRows, rows(b) - first);
    for (std::int64_t r = 0; r < count; ++r) {
      const T* q = q_ + q_index(b, head, first + r) * D_;
      for (std::int64_t d = 0; d < D_; ++d) block.q[d * kRows + r] = read(q[d]) * p_->scale;
      block.max[r] = -kInf;
      for (std::int64_t a = (first + r) / group_; a >= 0; a = parent_[cu_[b] + a]) {
        absorb_one(b, head, P_[b] + a, r, block);
      }
    }
  }

  void absorb_one(std::int64_t b, std::int64_t head, std::int64_t key, std::int64_t r,
                  const Block& block) const {
    const T* k = static_cast<const T*>(kc_[b]) + key * stride_ + head * D_;
    const T* v = static_cast<const T*>(vc_[b]) + key * stride_ + head * D_;
    float score = 0;
    for (std::int64_t d = 0; d < D_; ++d) score += block.q[d * kRows + r] * read(k[d]);
    const float old = block.max[r], max = score > old || std::isnan(score) ? score : old;
    const float correction = old == -kInf ? 0.0f : std::exp(old - max), p = std::exp(score - max);
    block.max[r] = max;
    block.sum[r] = block.sum[r] * correction + p;
    for (std::int64_t d = 0; d < D_; ++d) {
      float& o = block.o[d * kRows + r];
      o = o * correction + p * read(v[d]);
    }
  }

  // One tile of keys that all rows see. p: room for [kTile][kRows].
  void absorb(const Block& block, const float* k, const float* v, std::int64_t stride,
              std::int64_t n, float* p) const {
    multiply_all<false>(block.q, D_, k, 1, stride, n, p);
    for (int half = 0; half < kRows; half += kLanes) {
      const Vec old = load(block.max + half);
      Vec max = old;
      for (std::int64_t j = 0; j < n; ++j) max = larger(load(p + j * kRows + half), max);
      Vec sum{};
      for (std::int64_t j = 0; j < n; ++j) {
        const Vec e = exp_nonpositive(load(p + j * kRows + half) - max);
        store(p + j * kRows + half, e);
        sum += e;
      }
      const Vec correction = exp_nonpositive(old - max);
      store(block.max + half, max);
      store(block.sum + half, load(block.sum + half) * correction + sum);
      if (std::memcmp(&old, &max, sizeof max) == 0) continue;
      for (std::int64_t d = 0; d < D_; ++d) {
        float* o = block.o + d * kRows + half;
        store(o, load(o) * correction);
      }
    }
    multiply_all<true>(p, n, v, stride, 1, D_, block.o);
  }

  void finish(std::int64_t b, std::int64_t head, std::int64_t first, const Block& block) const {
    const std::int64_t count = std::min<std::int64_t>(kRows, rows(b) - first);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t at = q_index(b, head, first + r);
      const float scale = 1 / block.sum[r];
      for (std::int64_t d = 0; d < D_; ++d) write(o_[at * D_ + d], block.o[d * kRows + r] * scale);
      if (lse_ != nullptr) lse_[at] = block.max[r] + std::log(block.sum[r]);
    }
  }

  const fa_params* p_;
  const std::int64_t *P_, *cu_;
  const std::int32_t* parent_;
  const T* q_;
  const void *const *kc_, *const *vc_;
  T* o_;
  float* lse_;
  std::int64_t D_, group_, stride_, per_task_ = 1;
};

// --- acceptance ------------------------------------------------------------------------------------

constexpr std::int32_t kNotANumber = -1;

// The lowest index of the largest logit, or kNotANumber: the maximum of each block of 2048 first,
// then the place in the first block that holds the largest.
std::int32_t argmax(const float* x, std::int32_t V) {
  constexpr std::int32_t kBlock = 2048;
  float best = -kInf;
  std::int32_t best_block = 0;
  for (std::int32_t begin = 0; begin < V; begin += kBlock) {
    const std::int32_t n = std::min(kBlock, V - begin);
    Vec m[4] = {splat(-kInf), splat(-kInf), splat(-kInf), splat(-kInf)};
    VecI nan{};
    std::int32_t j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
      for (int i = 0; i < 4; ++i) {
        const Vec v = load(x + begin + j + i * kLanes);
        nan |= v != v;
        m[i] = larger(v, m[i]);
      }
    }
    const Vec all = larger(larger(m[0], m[1]), larger(m[2], m[3]));
    float max = -kInf;
    bool bad = false;
    for (int i = 0; i < kLanes; ++i) {
      max = std::max(max, all[i]);
      bad |= nan[i] != 0;
    }
    for (; j < n; ++j) {
      bad |= std::isnan(x[begin + j]);
      max = x[begin + j] > max ? x[begin + j] : max;
    }
    if (bad) return kNotANumber;
    if (max > best) {
      best = max;
      best_block = begin;
    }
  }
  const float* block = x + best_block;
  return static_cast<std::int32_t>(std::find(block, x + V, best) - x);
}

// What one step decides: an accepted child, or (child -1) the bonus token.
struct Step {
  std::int32_t child = -1, token = -1;
};

struct Tree {
  std::int64_t n;
  const std::int32_t *parent, *token;

  std::int32_t child_with(std::int32_t cur, std::int32_t wanted) const {
    for (std::int64_t i = cur + 1; i < n; ++i) {
      if (parent[i] == cur && token[i] == wanted) return static_cast<std::int32_t>(i);
    }
    return -1;
  }
};

// The lowest index at which the running sum of w exceeds u times its total.
std::int32_t draw(const double* w, std::int32_t V, double u) {
  double total = 0, sum = 0;
  for (std::int32_t j = 0; j < V; ++j) total += w[j];
  std::int32_t last = 0;
  for (std::int32_t j = 0; j < V; ++j) {
    sum += w[j];
    if (w[j] > 0) last = j;
    if (sum > u * total) return j;
  }
  return last;
}

// p = max(0, p - q), normalised; unchanged if nothing remains.
void subtract(double* p, const double* q, std::int32_t V) {
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += std::max(0.0, p[j] - q[j]);
  if (!(sum > 0)) return;
  for (std::int32_t j = 0; j < V; ++j) p[j] = std::max(0.0, p[j] - q[j]) / sum;
}

void remove_token(double* q, std::int32_t x, std::int32_t V) {
  q[x] = 0;
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += q[j];
  if (!(sum > 0)) return;
  for (std::int32_t j = 0; j < V; ++j) q[j] /= sum;
}

bool softmax(const float* x, std::int32_t V, float temperature, double* p) {
  if (argmax(x, V) == kNotANumber) return false;
  const double max = x[argmax(x, V)];
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += p[j] = std::exp((x[j] - max) / temperature);
  for (std::int32_t j = 0; j < V; ++j) p[j] /= sum;
  return true;
}

// One sampled step; false if the logits hold a NaN. p and q: room for V numbers each.
bool sample(const Tree& tree, std::int32_t cur, std::int32_t V, const float* logits,
            const float* q_row, const float* u, const dv_sampling& s, double* p, double* q,
            Step& step) {
  if (!softmax(logits, V, s.temperature, p)) return false;
  if (s.mode == DV_SAMPLE_TREE) {
    step.token = draw(p, V, u[0]);
    step.child = tree.child_with(cur, step.token);
    return true;
  }
  std::copy(q_row, q_row + V, q);
  for (std::int64_t i = cur + 1; i < tree.n; ++i) {
    if (tree.parent[i] != cur) continue;
    const std::int32_t x = tree.token[i];
    if (*u++ * q[x] < p[x]) {
      step = {static_cast<std::int32_t>(i), x};
      return true;
    }
    subtract(p, q, V);
    if (s.mode == DV_SAMPLE_NO_REPL) remove_token(q, x, V);
  }
  step = {-1, draw(p, V, *u)};
  return true;
}

bool valid_sampling(const dv_sampling& s) {
  if (s.size != sizeof(dv_sampling) || !(s.temperature > 0) || s.uniform == nullptr) return false;
  return s.mode == DV_SAMPLE_TREE || (s.root_q != nullptr && s.node_q != nullptr);
}

// One item's way down its tree.
struct Walk {
  Tree tree;
  std::int32_t V, eos, budget, b;
  std::int64_t first;  // of the item's nodes
  const float *root_logits, *node_logits;
  const dv_sampling* sampling;  // null: greedy

  // False if logits that were needed hold a NaN. p, q: room for sampling.
  bool run(std::int32_t* path, std::int32_t& count, std::int32_t& bonus, double* p,
           double* q) const {
    std::fill(path, path + tree.n, -1);
    count = 0;
    bonus = -1;
    std::int32_t cur = -1;
    while (count < budget) {
      Step step;
      if (!decide(cur, count, p, q, step)) return false;
      if (step.child < 0) {
        bonus = step.token;
        return true;
      }
      path[count++] = step.child;
      if (eos >= 0 && step.token == eos) return true;
      cur = step.child;
    }
    return true;
  }

  bool decide(std::int32_t cur, std::int32_t count, double* p, double* q, Step& step) const {
    const std::int64_t row = (cur < 0 ? b : first + cur) * V;
    const float* logits = (cur < 0 ? root_logits : node_logits) + row;
    if (sampling == nullptr) {
      step.token = argmax(logits, V);
      if (step.token == kNotANumber) return false;
      step.child = tree.child_with(cur, step.token);
      return true;
    }
    const float* draft = cur < 0 ? sampling->root_q : sampling->node_q;
    const float* u = sampling->uniform + b * sampling->u_item + count * sampling->u_step;
    return sample(tree, cur, V, logits, draft == nullptr ? nullptr : draft + row, u, *sampling, p,
                  q, step);
  }
};

}  // namespace

extern "C" {

int dv_mask(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent,
            int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos) {
  if (!valid_trees(B, cu, parent) || !valid_prefixes(B, P) || ldm < 0) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0) return ASSAY_OK;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] - cu[b] > 64 * ldm) return ASSAY_EINVAL;
  }
  if (bits == nullptr || depth == nullptr || pos == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      // A node sees what its parent sees, and itself.
      const std::int32_t up = parent[i];
      std::uint64_t* row = bits + i * ldm;
      if (up < 0) {
        std::fill(row, row + ldm, 0);
      } else {
        std::copy_n(bits + (cu[b] + up) * ldm, ldm, row);
      }
      const std::int64_t self = i - cu[b];
      row[self / 64] |= std::uint64_t{1} << (self % 64);
      depth[i] = up < 0 ? 1 : depth[cu[b] + up] + 1;
      pos[i] = P[b] + depth[i] - 1;
    }
  }
  return ASSAY_OK;
}

int dv_full_mask(assay_ctx*, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !valid_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  const std::int64_t side = P + n;
  std::memset(M, 0, static_cast<std::size_t>(side * side));
  for (std::int64_t i = 0; i < P; ++i)
    std::memset(M + i * side, 1, static_cast<std::size_t>(i + 1));
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint8_t* row = M + (P + i) * side;
    std::memset(row, 1, static_cast<std::size_t>(P));
    for (std::int64_t a = i; a >= 0; a = parent[a]) row[P + a] = 1;
  }
  return ASSAY_OK;
}

int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                 const int32_t* parent, const void* q, const void* const* kc, const void* const* vc,
                 void* o, float* lse) {
  if (p == nullptr || p->size != sizeof(fa_params) || p->B < 0 || p->B > INT32_MAX)
    return ASSAY_EINVAL;
  const auto B = static_cast<std::int32_t>(p->B);
  if (p->Hq < 0 || p->Hkv < 1 || p->Hq % p->Hkv != 0 || p->D < 1) return ASSAY_EINVAL;
  if (!valid_trees(B, cu, parent) || !valid_prefixes(B, P)) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0 || p->Hq == 0) return ASSAY_OK;
  if (has_null(B, kc) || has_null(B, vc) || q == nullptr || o == nullptr) return ASSAY_EINVAL;
  if (p->Dv != p->D || p->dtype == ASSAY_F16) return ASSAY_ENOTSUP;
  if (p->dtype == ASSAY_F32) {
    return Attention<float>(p, P, cu, parent, static_cast<const float*>(q), kc, vc,
                            static_cast<float*>(o), lse)
        .run(ctx);
  }
  return Attention<std::uint16_t>(p, P, cu, parent, static_cast<const std::uint16_t*>(q), kc, vc,
                                  static_cast<std::uint16_t*>(o), lse)
      .run(ctx);
}

int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent,
              const int32_t* token, const float* root_logits, const float* node_logits,
              const int32_t* eos, const int32_t* budget, const dv_sampling* sampling,
              int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  if (!valid_trees(B, cu, parent)) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  const std::int64_t nodes = cu[B];
  if (V < 1 || root_logits == nullptr || n_acc == nullptr || bonus == nullptr) return ASSAY_EINVAL;
  if (nodes > 0 && (token == nullptr || node_logits == nullptr || acc_node == nullptr))
    return ASSAY_EINVAL;
  for (std::int64_t i = 0; i < nodes; ++i) {
    if (token[i] < 0 || token[i] >= V) return ASSAY_EINVAL;
  }
  for (std::int32_t b = 0; budget != nullptr && b < B; ++b) {
    if (budget[b] < 0) return ASSAY_EINVAL;
  }
  const bool greedy = sampling == nullptr || sampling->mode == DV_GREEDY;
  if (!greedy && !valid_sampling(*sampling)) return ASSAY_EINVAL;

  // Results are held back until no item can fail any more.
  const std::int64_t threads = std::clamp<std::int64_t>(ctx->nthreads, 1, B);
  const std::int64_t room = greedy ? 0 : V;
  const Scratch<std::int32_t> path(ctx, nodes), count(ctx, B), last(ctx, B);
  const Scratch<double> weights(ctx, 2 * room * threads);
  if (path.failed() || count.failed() || last.failed() || weights.failed()) return ASSAY_ENOMEM;
  std::atomic<std::int32_t> next{0};
  std::atomic<bool> nan{false};
  on_threads(threads, [&](std::int64_t t) {
    double* p = weights.data() + 2 * room * t;
    for (std::int32_t b = next++; b < B && !nan; b = next++) {
      const Walk walk{{cu[b + 1] - cu[b], parent + cu[b], token + cu[b]},
                      V,
                      eos != nullptr ? eos[b] : -1,
                      budget != nullptr ? budget[b] : INT32_MAX,
                      b,
                      cu[b],
                      root_logits,
                      node_logits,
                      greedy ? nullptr : sampling};
      if (!walk.run(path.data() + cu[b], count[b], last[b], p, p + room)) nan = true;
    }
  });
  if (nan) return ASSAY_EINVAL;
  if (nodes > 0) std::copy(path.data(), path.data() + nodes, acc_node);
  std::copy(count.data(), count.data() + B, n_acc);
  std::copy(last.data(), last.data() + B, bonus);
  return ASSAY_OK;
}

int dv_compact(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* acc_node,
               const int32_t* n_acc, int64_t row_bytes, int32_t caches, void* const* kv) {
  if (!valid_cu(B, cu) || !valid_prefixes(B, P) || row_bytes < 0 || caches < 0) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  if (n_acc == nullptr || (cu[B] > 0 && acc_node == nullptr)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (n_acc[b] < 0 || n_acc[b] > cu[b + 1] - cu[b]) return ASSAY_EINVAL;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      const std::int32_t node = acc_node[cu[b] + j];
      if (node <= (j == 0 ? -1 : acc_node[cu[b] + j - 1]) || node >= cu[b + 1] - cu[b])
        return ASSAY_EINVAL;
    }
  }
  if (row_bytes == 0 || caches == 0) return ASSAY_OK;
  if (has_null(std::int64_t{B} * caches, kv)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    for (std::int32_t c = 0; c < caches; ++c) {
      auto* rows = static_cast<char*>(kv[std::int64_t{b} * caches + c]) + P[b] * row_bytes;
      // Ascending: a row's source is never before its place, so it has not been overwritten yet.
      for (std::int32_t j = 0; j < n_acc[b]; ++j) {
        std::memmove(rows + j * row_bytes, rows + acc_node[cu[b] + j] * row_bytes,
                     static_cast<std::size_t>(row_bytes));
      }
    }
  }
  return ASSAY_OK;
}

int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                int64_t* n_out) {
  if (loop == nullptr || loop->size != sizeof(dv_loop) || model == nullptr || n_out == nullptr)
    return ASSAY_EINVAL;
  if (model->size != sizeof(dv_model) || model->V < 1 || model->max_nodes < 0) return ASSAY_EINVAL;
  if (loop->n_prompt < 1 || loop->prompt == nullptr || loop->max_new < 0) return ASSAY_EINVAL;
  if (loop->max_new > 0 && out == nullptr) return ASSAY_EINVAL;
  const std::int64_t most = loop->n_prompt + model->max_nodes + 1;  // rows of one verify
  const std::int64_t ldm = (most + 63) / 64;
  const Scratch<std::int32_t> text(ctx, loop->n_prompt + loop->max_new), token(ctx, most),
      parent(ctx, model->max_nodes), acc(ctx, model->max_nodes);
  const Scratch<std::int64_t> pos(ctx, most), keep(ctx, most);
  const Scratch<std::uint64_t> bits(ctx, most * ldm);
  const Scratch<float> logits(ctx, most * model->V);
  if (text.failed() || token.failed() || parent.failed() || acc.failed() || pos.failed() ||
      keep.failed() || bits.failed() || logits.failed()) {
    return ASSAY_ENOMEM;
  }
  std::copy(loop->prompt, loop->prompt + loop->n_prompt, text.data());
  std::int64_t length = loop->n_prompt;  // of the text
  std::int64_t cached = 0;               // rows that the model holds
  std::int64_t emitted = 0;
  bool ended = false;
  while (emitted < loop->max_new && !ended) {
    // Rows: what the model has not seen of the text (the prompt, later the bonus), then the tree.
    const std::int64_t pending = length - cached;
    std::copy(text.data() + cached, text.data() + length, token.data());
    std::int32_t n = 0;
    int status =
        model->draft(model->user, length, text.data(), &n, parent.data(), token.data() + pending);
    if (status != ASSAY_OK) return status;
    if (n < 0 || n > model->max_nodes || !valid_tree(n, parent.data())) return ASSAY_EINVAL;
    std::fill(bits.data(), bits.data() + (pending + n) * ldm, 0);
    for (std::int64_t r = 0; r < pending + n; ++r) {
      std::uint64_t* row = bits.data() + r * ldm;
      const auto see = [&](std::int64_t j) { row[j / 64] |= std::uint64_t{1} << (j % 64); };
      for (std::int64_t j = 0; j < std::min(r + 1, pending); ++j) see(j);
      pos[r] = cached + r;
      if (r < pending) continue;
      std::int64_t depth = 0;
      for (std::int64_t a = r - pending; a >= 0; a = parent[a], ++depth) see(pending + a);
      pos[r] = length + depth - 1;
    }
    status = model->verify(model->user, pending + n, token.data(), pos.data(), ldm, bits.data(),
                           logits.data());
    if (status != ASSAY_OK) return status;

    const std::int64_t cu[2] = {0, n};
    const auto budget =
        static_cast<std::int32_t>(std::min<std::int64_t>(loop->max_new - emitted, INT32_MAX));
    std::int32_t n_acc = 0, bonus = -1;
    status = dv_accept(ctx, 1, model->V, cu, parent.data(), token.data() + pending,
                       logits.data() + (pending - 1) * model->V, logits.data() + pending * model->V,
                       &loop->eos, &budget, nullptr, acc.data(), &n_acc, &bonus);
    if (status != ASSAY_OK) return status;

    for (std::int64_t j = 0; j < pending; ++j) keep[j] = j;
    for (std::int32_t j = 0; j < n_acc; ++j) {
      keep[pending + j] = pending + acc[j];
      text[length++] = token[pending + acc[j]];
    }
    cached = length;
    if (bonus >= 0) text[length++] = bonus;
    emitted = length - loop->n_prompt;
    ended = bonus < 0 || bonus == loop->eos;
    if (ended || emitted == loop->max_new) break;
    status = model->commit(model->user, pending + n_acc, keep.data());
    if (status != ASSAY_OK) return status;
  }
  std::copy(text.data() + loop->n_prompt, text.data() + length, out);
  std::fill(out + emitted, out + loop->max_new, -1);
  *n_out = emitted;
  return ASSAY_OK;
}

}  // extern "C"
