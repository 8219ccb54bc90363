// A sample entrant by assay's authors, "tuned": threads, vectors and one pass over memory.
// Attention packs each tile of 64 keys once, transposed, for up to 128 query rows of a key head: lanes are keys
// for the scores and head dimensions for the values, four query rows at a time. Acceptance spreads items over
// threads and searches a row of logits sixteen lanes at a time. Every optional part is there.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Scratch that goes back when it leaves its scope.
template <class T>
struct Buffer {
  Buffer(assay_ctx* c, std::int64_t n)
      : ctx(c), data(static_cast<T*>(c->alloc(c, sizeof(T) * static_cast<std::size_t>(n > 0 ? n : 1), 64, 0))) {}
  ~Buffer() {
    if (data != nullptr) ctx->free(ctx, data);
  }
  Buffer(const Buffer&) = delete;
  T& operator[](std::int64_t i) { return data[i]; }
  explicit operator bool() const { return data != nullptr; }
  assay_ctx* ctx;
  T* data;
};

bool good_tree(std::int64_t n, const std::int32_t* parent) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent == nullptr || parent[i] >= i || parent[i] < -1) return false;
  }
  return true;
}

bool good_offsets(std::int32_t B, const std::int64_t* cu) {
  if (B < 0 || (B > 0 && (cu == nullptr || cu[0] != 0))) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b] > cu[b + 1]) return false;
  }
  return true;
}

bool good_batch(std::int32_t B, const std::int64_t* cu, const std::int32_t* parent) {
  if (!good_offsets(B, cu)) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (parent == nullptr && cu[b + 1] > 0) return false;
    if (cu[b + 1] > cu[b] && !good_tree(cu[b + 1] - cu[b], parent + cu[b])) return false;
  }
  return true;
}

bool good_prefixes(std::int32_t B, const std::int64_t* P) {
  for (std::int32_t b = 0; b < B; ++b) {
    if (P == nullptr || P[b] < 1) return false;
  }
  return true;
}

float to_float(float x) { return x; }
float to_float(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }
void from_float(float x, float& to) { to = x; }
void from_float(float x, std::uint16_t& to) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  to = std::isnan(x) ? std::uint16_t{0x7fc0} : static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// Runs body(thread, i) for every i < n on up to `threads` threads.
template <class Body>
void share(std::int64_t threads, std::int64_t n, const Body& body) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&](std::int64_t thread) {
    for (std::int64_t i = next++; i < n; i = next++) body(thread, i);
  };
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
}

// As wide as the registers, and as many rows of queries as they hold the scores of.
#if defined(__AVX512F__)
constexpr std::int64_t kLanes = 16, kQueries = 4;
#else
constexpr std::int64_t kLanes = 8, kQueries = 2;
#endif
constexpr std::int64_t kKeys = 4 * kLanes;
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

// exp(x) for x <= 0 as 2^n 2^f; 0 far below, NaN for NaN.
Vec exp_lanes(Vec x) {
  const Vec low = Vec{} - 87.0f;
  const Vec y = (x < low ? low : x) * 1.44269504f;
  const Vec round = Vec{} + 12582912.0f;
  const Vec n = (y + round) - round;
  const Vec r = ((x < low ? low : x) - n * 0.693145752f) - n * 1.42860677e-6f;
  Vec e = r * (1.0f / 5040) + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  const VecI power = (__builtin_convertvector(n, VecI) + 127) << 23;
  const Vec result = e * std::bit_cast<Vec>(power);
  return x < low ? Vec{} : x == x ? result : x;
}

// One key head of one item. Keys of a tile are packed transposed, so that the lanes of a score vector
// are keys; values are packed with rows padded to whole vectors.
template <class T>
class HeadTask {
 public:
  static std::int64_t floats(std::int64_t D, std::int64_t rows) {
    const std::int64_t wide = (D + kLanes - 1) / kLanes * kLanes;
    return kKeys * (D + wide) + padded(rows) * (D + wide + 2) + kQueries * kKeys + kLanes;
  }

  HeadTask(const fa_params& p, std::int64_t P, const std::int32_t* parent, std::int64_t head, const T* q,
           const T* k, const T* v, T* o, float* lse, float* room, std::int64_t first, std::int64_t rows)
      : p_(p), P_(P), parent_(parent), head_(head), first_(first), rows_(rows), D_(p.D),
        wide_((p.D + kLanes - 1) / kLanes * kLanes), group_(p.Hq / p.Hkv), stride_(p.Hkv * p.D), q_(q),
        k_(k + head * p.D), v_(v + head * p.D), o_(o), lse_(lse) {
    keys_ = room;
    values_ = keys_ + kKeys * D_;
    queries_ = values_ + kKeys * wide_;
    out_ = queries_ + padded(rows) * D_;
    max_ = out_ + padded(rows) * wide_;
    sum_ = max_ + padded(rows);
    weights_ = sum_ + padded(rows);
  }

  void run() {
    start();
    for (std::int64_t j = 0; j < P_; j += kKeys) {
      const std::int64_t n = std::min(kKeys, P_ - j);
      pack(j, n);
      for (std::int64_t r = 0; r < rows_; r += kQueries) tile(r, n);
    }
    for (std::int64_t r = 0; r < rows_; ++r) finish(r);
  }

 private:
  static std::int64_t padded(std::int64_t rows) { return (rows + kQueries - 1) / kQueries * kQueries; }
  std::int64_t global(std::int64_t r) const {
    return (first_ + r) / group_ * p_.Hq + head_ * group_ + (first_ + r) % group_;
  }

  void start() {
    std::fill(queries_, weights_, 0.0f);
    std::fill(max_, max_ + padded(rows_), -kInf);
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t d = 0; d < D_; ++d) queries_[r * D_ + d] = p_.scale * to_float(q_[global(r) * D_ + d]);
    }
  }

  void pack(std::int64_t j, std::int64_t n) {
    for (std::int64_t i = 0; i < kKeys; ++i) {
      const bool real = i < n;
      const T* k = k_ + (j + i) * stride_;
      const T* v = v_ + (j + i) * stride_;
      for (std::int64_t d = 0; d < D_; ++d) keys_[d * kKeys + i] = real ? to_float(k[d]) : 0.0f;
      for (std::int64_t d = 0; d < D_; ++d) values_[i * wide_ + d] = real ? to_float(v[d]) : 0.0f;
      std::fill(values_ + i * wide_ + D_, values_ + (i + 1) * wide_, 0.0f);
    }
  }

  // kQueries query rows against the packed tile.
  void tile(std::int64_t r, std::int64_t n) {
    Vec s[kQueries][4] = {};
    for (std::int64_t d = 0; d < D_; ++d) {
      Vec key[4];
      for (int c = 0; c < 4; ++c) key[c] = load(keys_ + d * kKeys + c * kLanes);
      for (int i = 0; i < kQueries; ++i) {
        const float x = queries_[(r + i) * D_ + d];
        for (int c = 0; c < 4; ++c) s[i][c] += key[c] * x;
      }
    }
    float keep[kQueries];
    for (int i = 0; i < kQueries; ++i) {
      float* w = weights_ + i * kKeys;
      for (int c = 0; c < 4; ++c) store(w + c * kLanes, s[i][c]);
      std::fill(w + n, w + kKeys, -kInf);
      keep[i] = soften(w, r + i);
    }
    for (std::int64_t c = 0; c < wide_; c += 4 * kLanes) {
      switch (std::min<std::int64_t>(4, (wide_ - c) / kLanes)) {
        case 4: accumulate<4>(r, c, n, keep); break;
        case 3: accumulate<3>(r, c, n, keep); break;
        case 2: accumulate<2>(r, c, n, keep); break;
        default: accumulate<1>(r, c, n, keep);
      }
    }
  }

  // Scores to weights; returns what the row's earlier sums are multiplied by.
  float soften(float* w, std::int64_t row) {
    Vec top = load(w);
    for (int c = 1; c < 4; ++c) top = load(w + c * kLanes) > top ? load(w + c * kLanes) : top;
    float max = max_[row];
    for (int l = 0; l < kLanes; ++l) max = std::max(max, top[l]);
    Vec sum{};
    for (int c = 0; c < 4; ++c) {
      const Vec e = exp_lanes(load(w + c * kLanes) - max);
      store(w + c * kLanes, e);
      sum += e;
    }
    float total = 0;
    for (int l = 0; l < kLanes; ++l) total += sum[l];
    const float keep = std::exp(max_[row] - max);
    max_[row] = max;
    sum_[row] = sum_[row] * keep + total;
    return keep;
  }

  template <int kVectors>
  void accumulate(std::int64_t r, std::int64_t c, std::int64_t n, const float* keep) {
    Vec acc[kQueries][kVectors];
    for (int i = 0; i < kQueries; ++i) {
      for (int x = 0; x < kVectors; ++x) acc[i][x] = load(out_ + (r + i) * wide_ + c + x * kLanes) * keep[i];
    }
    for (std::int64_t j = 0; j < n; ++j) {
      Vec value[kVectors];
      for (int x = 0; x < kVectors; ++x) value[x] = load(values_ + j * wide_ + c + x * kLanes);
      for (int i = 0; i < kQueries; ++i) {
        const float w = weights_[i * kKeys + j];
        for (int x = 0; x < kVectors; ++x) acc[i][x] += value[x] * w;
      }
    }
    for (int i = 0; i < kQueries; ++i) {
      for (int x = 0; x < kVectors; ++x) store(out_ + (r + i) * wide_ + c + x * kLanes, acc[i][x]);
    }
  }

  // The node and its ancestors come last, one by one; then the division.
  void finish(std::int64_t r) {
    float* acc = out_ + r * wide_;
    for (std::int64_t a = (first_ + r) / group_; a >= 0; a = parent_[a]) {
      const T* k = k_ + (P_ + a) * stride_;
      const T* v = v_ + (P_ + a) * stride_;
      float s = 0;
      for (std::int64_t d = 0; d < D_; ++d) s += queries_[r * D_ + d] * to_float(k[d]);
      const float max = s <= max_[r] ? max_[r] : s;
      const float keep = std::exp(max_[r] - max), w = std::exp(s - max);
      sum_[r] = sum_[r] * keep + w;
      for (std::int64_t d = 0; d < D_; ++d) acc[d] = acc[d] * keep + w * to_float(v[d]);
      max_[r] = max;
    }
    for (std::int64_t d = 0; d < D_; ++d) from_float(acc[d] / sum_[r], o_[global(r) * D_ + d]);
    if (lse_ != nullptr) lse_[global(r)] = max_[r] + std::log(sum_[r]);
  }

  const fa_params& p_;
  std::int64_t P_;
  const std::int32_t* parent_;
  std::int64_t head_, first_, rows_, D_, wide_, group_, stride_;
  const T *q_, *k_, *v_;
  T* o_;
  float* lse_;
  float *keys_, *values_, *queries_, *out_, *max_, *sum_, *weights_;
};

constexpr std::int64_t kMostRows = 128;  // query rows that share a packed tile

template <class T>
int attend(assay_ctx* ctx, const fa_params& p, const int64_t* P, const int64_t* cu, const int32_t* parent, const void* q,
           const void* const* kc, const void* const* vc, void* o, float* lse) {
  struct Job {
    std::int64_t b, head, first;
  };
  const std::int64_t group = p.Hq / p.Hkv;
  std::int64_t jobs = 0, most = 1;
  for (std::int64_t b = 0; b < p.B; ++b) {
    const std::int64_t rows = (cu[b + 1] - cu[b]) * group;
    jobs += (rows + kMostRows - 1) / kMostRows * p.Hkv;
    most = std::max(most, std::min(rows, kMostRows));
  }
  const std::int64_t threads = std::clamp<std::int64_t>(ctx->nthreads, 1, jobs), room = HeadTask<T>::floats(p.D, most);
  Buffer<float> scratch(ctx, threads * room);
  Buffer<Job> list(ctx, jobs);
  if (!scratch || !list) return ASSAY_ENOMEM;
  std::int64_t filled = 0;
  for (std::int64_t b = 0; b < p.B; ++b) {
    for (std::int64_t first = 0; first < (cu[b + 1] - cu[b]) * group; first += kMostRows) {
      for (std::int64_t head = 0; head < p.Hkv; ++head) list[filled++] = {b, head, first};
    }
  }
  share(threads, jobs, [&](std::int64_t thread, std::int64_t i) {
    const auto [b, head, first] = list[i];
    const std::int64_t n = cu[b + 1] - cu[b], at = cu[b] * p.Hq;
    HeadTask<T>(p, P[b], parent + cu[b], head, static_cast<const T*>(q) + at * p.D, static_cast<const T*>(kc[b]),
                static_cast<const T*>(vc[b]), static_cast<T*>(o) + at * p.D, lse == nullptr ? nullptr : lse + at,
                scratch.data + thread * room, first, std::min(kMostRows, n * group - first))
        .run();
  });
  return ASSAY_OK;
}

// One item's tree, with the target's logits at the root and after every node.
struct Tree {
  std::int64_t n;
  const std::int32_t *parent, *token;
  const float *root, *node;
  std::int32_t V;

  // A node's logits verify its children: this row decides among the children of `cur`.
  const float* logits(std::int64_t cur) const { return cur < 0 ? root : node + cur * V; }

  std::int64_t child(std::int64_t cur, std::int32_t wanted) const {
    for (std::int64_t i = cur + 1; i < n; ++i) {
      if (parent[i] == cur && token[i] == wanted) return i;
    }
    return -1;
  }
};

struct Choice {
  std::int64_t child;  // -1: `token` is the bonus
  std::int32_t token;
};

// -1 if a logit is NaN. The maximum first, then the first place that holds it, found in the block of 1024
// where it was seen last, so that the row is read once.
std::int32_t argmax(const float* x, std::int32_t V) {
  float best = -kInf;
  std::int32_t where = 0;
  for (std::int32_t j = 0; j < V; j += 1024) {
    const std::int32_t n = std::min(1024, V - j), whole = n / (2 * kLanes) * (2 * kLanes);
    Vec a = Vec{} - kInf, b = a;
    VecI bad{};
    for (std::int32_t i = 0; i < whole; i += 2 * kLanes) {
      const Vec u = load(x + j + i), v = load(x + j + i + kLanes);
      bad |= (u != u) | (v != v);
      a = u > a ? u : a;
      b = v > b ? v : b;
    }
    float top = -kInf;
    bool nan = false;
    for (int l = 0; l < kLanes; ++l) {
      top = std::max({top, a[l], b[l]});
      nan |= bad[l] != 0;
    }
    for (std::int32_t i = whole; i < n; ++i) {
      top = std::max(top, x[j + i]);
      nan |= std::isnan(x[j + i]);
    }
    if (nan) return -1;
    where = top > best ? j : where;
    best = std::max(best, top);
  }
  while (x[where] != best) ++where;
  return where;
}

// Sampling by the uniforms that the caller supplies.
class Sampler {
 public:
  Sampler(const dv_sampling& s, std::int32_t V, double* room) : s_(s), V_(V), p_(room), q_(room + V) {}

  bool choose(const Tree& tree, std::int64_t cur, const float* drafted, const float* u, Choice& choice) {
    const std::int32_t top = argmax(tree.logits(cur), V_);
    if (top < 0) return false;
    for (std::int32_t j = 0; j < V_; ++j) {
      p_[j] = std::exp((double{tree.logits(cur)[j]} - double{tree.logits(cur)[top]}) / double{s_.temperature});
    }
    if (s_.mode == DV_SAMPLE_TREE) {
      choice.token = draw(*u);
      choice.child = tree.child(cur, choice.token);
      return true;
    }
    normalise(p_);
    std::copy(drafted, drafted + V_, q_);
    for (std::int64_t i = cur + 1; i < tree.n; ++i) {
      if (tree.parent[i] != cur) continue;
      choice = {i, tree.token[i]};
      if (*u++ * q_[choice.token] < p_[choice.token]) return true;
      reject(choice.token);
    }
    choice.token = draw(*u);
    choice.child = -1;
    return true;
  }

 private:
  void normalise(double* w) {
    double sum = 0;
    for (std::int32_t j = 0; j < V_; ++j) sum += w[j];
    for (std::int32_t j = 0; j < V_ && sum > 0; ++j) w[j] /= sum;
  }

  void reject(std::int32_t x) {
    bool left = false;
    for (std::int32_t j = 0; j < V_; ++j) left |= p_[j] > q_[j];
    for (std::int32_t j = 0; j < V_ && left; ++j) p_[j] = p_[j] > q_[j] ? p_[j] - q_[j] : 0.0;
    normalise(p_);
    if (s_.mode != DV_SAMPLE_NO_REPL) return;
    q_[x] = 0;
    normalise(q_);
  }

  std::int32_t draw(double u) const {
    double total = 0, sum = 0;
    std::int32_t last = 0;
    for (std::int32_t j = 0; j < V_; ++j) total += p_[j];
    for (std::int32_t j = 0; j < V_; ++j) {
      sum += p_[j];
      if (p_[j] > 0) last = j;
      if (sum > u * total) return j;
    }
    return last;
  }

  const dv_sampling& s_;
  std::int32_t V_;
  double *p_, *q_;
};

struct Results {
  std::int32_t *path, *n_acc, *bonus;
};

// False if a NaN stands in logits that are needed.
bool verify_item(const Tree& tree, std::int32_t b, std::int64_t first, std::int32_t eos, std::int32_t budget,
                 const dv_sampling* s, double* room, const Results& out) {
  std::int32_t* path = out.path + first;
  std::fill(path, path + tree.n, -1);
  std::int32_t& count = out.n_acc[b];
  count = 0;
  out.bonus[b] = -1;
  for (std::int64_t cur = -1; count < budget;) {
    Choice choice{-1, -1};
    if (s == nullptr) {
      choice.token = argmax(tree.logits(cur), tree.V);
      if (choice.token < 0) return false;
      choice.child = tree.child(cur, choice.token);
    } else {
      const float* q = s->mode == DV_SAMPLE_TREE ? nullptr
                       : cur < 0 ? s->root_q + std::int64_t{b} * tree.V
                                 : s->node_q + (first + cur) * tree.V;
      const float* u = s->uniform + b * s->u_item + count * s->u_step;
      if (!Sampler(*s, tree.V, room).choose(tree, cur, q, u, choice)) return false;
    }
    if (choice.child < 0) {
      out.bonus[b] = choice.token;
      break;
    }
    path[count++] = static_cast<std::int32_t>(choice.child);
    if (choice.token == eos && eos >= 0) break;
    cur = choice.child;
  }
  return true;
}

}  // namespace

extern "C" {

int dv_mask(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent, int64_t ldm, uint64_t* bits,
            int32_t* depth, int64_t* pos) {
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] - cu[b] > 64 * ldm) return ASSAY_EINVAL;
  }
  if (B > 0 && cu[B] > 0 && (bits == nullptr || depth == nullptr || pos == nullptr)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    for (std::int64_t i = 0; i < cu[b + 1] - cu[b]; ++i) {
      const std::int64_t at = cu[b] + i, up = cu[b] + parent[at];
      std::uint64_t* row = bits + at * ldm;
      for (std::int64_t w = 0; w < ldm; ++w) row[w] = parent[at] < 0 ? 0 : bits[up * ldm + w];
      row[i / 64] |= std::uint64_t{1} << (i % 64);
      depth[at] = parent[at] < 0 ? 1 : depth[up] + 1;
      pos[at] = P[b] + depth[at] - 1;
    }
  }
  return ASSAY_OK;
}

int dv_full_mask(assay_ctx*, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !good_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  const std::int64_t side = P + n;
  for (std::int64_t i = 0; i < side; ++i) {
    std::uint8_t* row = M + i * side;
    for (std::int64_t j = 0; j < side; ++j) row[j] = j < P && j <= i;
    for (std::int64_t a = i - P; a >= 0; a = parent[a]) row[P + a] = 1;
  }
  return ASSAY_OK;
}

int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu, const int32_t* parent,
                 const void* q, const void* const* kc, const void* const* vc, void* o, float* lse) {
  if (p == nullptr || p->size != sizeof(fa_params) || p->B < 0 || p->Hkv < 1 || p->Hq < 0) return ASSAY_EINVAL;
  if (p->Hq % p->Hkv != 0 || p->D < 1) return ASSAY_EINVAL;
  const auto B = static_cast<std::int32_t>(p->B);
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0 || p->Hq == 0) return ASSAY_OK;
  if (q == nullptr || o == nullptr || kc == nullptr || vc == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (kc[b] == nullptr || vc[b] == nullptr) return ASSAY_EINVAL;
  }
  if (p->Dv != p->D || p->dtype == ASSAY_F16) return ASSAY_ENOTSUP;
  const auto run = p->dtype == ASSAY_BF16 ? attend<std::uint16_t> : attend<float>;
  return run(ctx, *p, P, cu, parent, q, kc, vc, o, lse);
}

int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent, const int32_t* token,
              const float* root_logits, const float* node_logits, const int32_t* eos, const int32_t* budget,
              const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  if (!good_batch(B, cu, parent)) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  const std::int64_t nodes = cu[B];
  if (V < 1 || root_logits == nullptr || n_acc == nullptr || bonus == nullptr) return ASSAY_EINVAL;
  if (nodes > 0 && (token == nullptr || node_logits == nullptr || acc_node == nullptr)) return ASSAY_EINVAL;
  for (std::int64_t i = 0; i < nodes; ++i) {
    if (token[i] < 0 || token[i] >= V) return ASSAY_EINVAL;
  }
  for (std::int32_t b = 0; budget != nullptr && b < B; ++b) {
    if (budget[b] < 0) return ASSAY_EINVAL;
  }
  const dv_sampling* s = sampling != nullptr && sampling->mode != DV_GREEDY ? sampling : nullptr;
  if (s != nullptr && (s->size != sizeof(dv_sampling) || !(s->temperature > 0) || s->uniform == nullptr)) {
    return ASSAY_EINVAL;
  }
  if (s != nullptr && (s->mode < DV_GREEDY || s->mode > DV_SAMPLE_NO_REPL)) return ASSAY_EINVAL;
  if (s != nullptr && s->mode != DV_SAMPLE_TREE && (s->root_q == nullptr || s->node_q == nullptr)) return ASSAY_EINVAL;
  const std::int64_t threads = std::clamp<std::int64_t>(ctx->nthreads, 1, B), each = s != nullptr ? 2 * std::int64_t{V} : 0;
  Buffer<std::int32_t> path(ctx, nodes), count(ctx, B), last(ctx, B);
  Buffer<double> room(ctx, threads * each);
  if (!path || !count || !last || !room) return ASSAY_ENOMEM;
  std::atomic<bool> nan{false};
  share(threads, B, [&](std::int64_t thread, std::int64_t i) {
    const auto b = static_cast<std::int32_t>(i);
    const Tree tree{cu[b + 1] - cu[b], parent + cu[b], token + cu[b], root_logits + i * V, node_logits + cu[b] * V, V};
    if (!verify_item(tree, b, cu[b], eos != nullptr ? eos[b] : -1, budget != nullptr ? budget[b] : INT32_MAX, s,
                     room.data + thread * each, {path.data, count.data, last.data})) {
      nan = true;
    }
  });
  if (nan) return ASSAY_EINVAL;
  std::copy(path.data, path.data + nodes, acc_node);
  std::copy(count.data, count.data + B, n_acc);
  std::copy(last.data, last.data + B, bonus);
  return ASSAY_OK;
}

int dv_compact(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* acc_node, const int32_t* n_acc,
               int64_t row_bytes, int32_t caches, void* const* kv) {
  if (!good_offsets(B, cu) || !good_prefixes(B, P) || row_bytes < 0 || caches < 0) return ASSAY_EINVAL;
  if (B > 0 && (n_acc == nullptr || (cu[B] > 0 && acc_node == nullptr))) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    if (n_acc[b] < 0 || n_acc[b] > n) return ASSAY_EINVAL;
    std::int32_t before = -1;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      const std::int32_t node = acc_node[cu[b] + j];
      if (node <= before || node >= n) return ASSAY_EINVAL;
      before = node;
    }
  }
  const std::int64_t all = row_bytes > 0 ? std::int64_t{B} * caches : 0;
  for (std::int64_t c = 0; c < all; ++c) {
    if (kv == nullptr || kv[c] == nullptr) return ASSAY_EINVAL;
  }
  for (std::int64_t c = 0; c < all; ++c) {
    const std::int64_t b = c / caches;
    char* rows = static_cast<char*>(kv[c]) + P[b] * row_bytes;
    for (std::int64_t j = 0; j < n_acc[b]; ++j) {
      const std::int64_t from = acc_node[cu[b] + j];
      if (from != j) std::memcpy(rows + j * row_bytes, rows + from * row_bytes, static_cast<std::size_t>(row_bytes));
    }
  }
  return ASSAY_OK;
}

int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* m, int32_t* out, int64_t* n_out) {
  if (loop == nullptr || m == nullptr || n_out == nullptr || loop->size != sizeof(dv_loop)) return ASSAY_EINVAL;
  if (m->size != sizeof(dv_model) || m->V < 1 || m->max_nodes < 0 || loop->n_prompt < 1) return ASSAY_EINVAL;
  if (loop->prompt == nullptr || loop->max_new < 0 || (loop->max_new > 0 && out == nullptr)) return ASSAY_EINVAL;
  const std::int64_t rows = loop->n_prompt + 1 + m->max_nodes, words = (rows + 63) / 64;
  Buffer<std::int32_t> text(ctx, loop->n_prompt + loop->max_new), token(ctx, rows), link(ctx, rows),
      parent(ctx, m->max_nodes), path(ctx, m->max_nodes), depth(ctx, rows);
  Buffer<std::int64_t> pos(ctx, rows), keep(ctx, rows);
  Buffer<std::uint64_t> bits(ctx, rows * words);
  Buffer<float> logits(ctx, rows * m->V);
  if (!text || !token || !link || !parent || !path || !depth || !pos || !keep || !bits || !logits) return ASSAY_ENOMEM;
  std::copy(loop->prompt, loop->prompt + loop->n_prompt, text.data);
  const std::int64_t limit = loop->n_prompt + loop->max_new;
  std::int64_t length = loop->n_prompt, cached = 0;
  for (bool more = length < limit; more;) {
    // The tokens that the cache lacks and the tree behind them are one tree again: a chain first.
    const std::int64_t fresh = length - cached;
    std::copy(text.data + cached, text.data + length, token.data);
    std::int32_t n = 0;
    int status = m->draft(m->user, length, text.data, &n, parent.data, token.data + fresh);
    if (status != ASSAY_OK) return status;
    if (n < 0 || n > m->max_nodes || !good_tree(n, parent.data)) return ASSAY_EINVAL;
    for (std::int64_t r = 0; r < fresh + n; ++r) {
      const std::int64_t up = r < fresh ? -1 : parent[r - fresh];
      link[r] = static_cast<std::int32_t>(r < fresh ? r - 1 : fresh + up);
    }
    const std::int64_t cu[2] = {0, fresh + n};
    status = dv_mask(ctx, 1, &loop->n_prompt, cu, link.data, words, bits.data, depth.data, pos.data);
    if (status != ASSAY_OK) return status;
    // Positions count from the cached rows; at the start there are none.
    for (std::int64_t r = 0; r < fresh + n; ++r) pos[r] = cached + depth[r] - 1;
    status = m->verify(m->user, fresh + n, token.data, pos.data, words, bits.data, logits.data);
    if (status != ASSAY_OK) return status;
    const std::int64_t nodes[2] = {0, n};
    const auto budget = static_cast<std::int32_t>(std::min<std::int64_t>(limit - length, INT32_MAX));
    std::int32_t accepted = 0, bonus = -1;
    status = dv_accept(ctx, 1, m->V, nodes, parent.data, token.data + fresh, logits.data + (fresh - 1) * m->V,
                       logits.data + fresh * m->V, &loop->eos, &budget, nullptr, path.data, &accepted, &bonus);
    if (status != ASSAY_OK) return status;
    for (std::int64_t r = 0; r < fresh + accepted; ++r) keep[r] = r < fresh ? r : fresh + path[r - fresh];
    for (std::int32_t j = 0; j < accepted; ++j) text[length++] = token[fresh + path[j]];
    cached = length;
    if (bonus >= 0) text[length++] = bonus;
    more = bonus >= 0 && bonus != loop->eos && length < limit;
    if (more) status = m->commit(m->user, fresh + accepted, keep.data);
    if (status != ASSAY_OK) return status;
  }
  for (std::int64_t j = 0; j < loop->max_new; ++j) {
    out[j] = loop->n_prompt + j < length ? text[loop->n_prompt + j] : -1;
  }
  *n_out = length - loop->n_prompt;
  return ASSAY_OK;
}

}  // extern "C"
