// A sample entrant by assay's authors, "textbook": every step as a textbook would print it, on one thread.
// Attention keeps a running softmax over blocks of 64 keys; acceptance reads a row of logits when the walk
// reaches it. Sampling modes A and B, bfloat16 and any head dimension; not mode C.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

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

// Attention of one query over the prefix and a path of nodes, by an online softmax over blocks of keys.
template <class T>
class Query {
 public:
  Query(const T* q, std::int64_t D, float scale, float* acc) : q_(q), D_(D), scale_(scale), acc_(acc) {
    std::fill(acc, acc + 2 * D, 0.0f);
  }

  // n keys and values, `stride` apart.
  void add(const T* k, const T* v, std::int64_t stride, std::int64_t n) {
    float s[kBlock], top = max_;
    for (std::int64_t j = 0; j < n; ++j) {
      s[j] = scale_ * dot(k + j * stride);
      if (s[j] > top || std::isnan(s[j])) top = s[j];
    }
    const float keep = sum_ == 0 && max_ == -kInf ? 0.0f : std::exp(max_ - top);
    float* part = acc_ + D_;
    std::fill(part, part + D_, 0.0f);
    float total = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const float w = std::exp(s[j] - top);
      total += w;
      for (std::int64_t d = 0; d < D_; ++d) part[d] += w * to_float(v[j * stride + d]);
    }
    sum_ = sum_ * keep + total;
    for (std::int64_t d = 0; d < D_; ++d) acc_[d] = acc_[d] * keep + part[d];
    max_ = top;
  }

  float finish(T* o) const {
    for (std::int64_t d = 0; d < D_; ++d) from_float(acc_[d] / sum_, o[d]);
    return max_ + std::log(sum_);
  }

  static constexpr std::int64_t kBlock = 64;

 private:
  // Sixteen sums side by side, so that the compiler may keep them in one register.
  float dot(const T* k) const {
    float part[16] = {};
    std::int64_t d = 0;
    for (; d + 16 <= D_; d += 16) {
      for (int i = 0; i < 16; ++i) part[i] += to_float(q_[d + i]) * to_float(k[d + i]);
    }
    float sum = 0;
    for (; d < D_; ++d) sum += to_float(q_[d]) * to_float(k[d]);
    for (const float x : part) sum += x;
    return sum;
  }

  const T* q_;
  std::int64_t D_;
  float scale_;
  float* acc_;  // the output so far, then room for a block's
  float max_ = -kInf, sum_ = 0;
};

template <class T>
int attend(assay_ctx* ctx, const fa_params& p, const int64_t* P, const int64_t* cu, const int32_t* parent, const void* q,
           const void* const* kc, const void* const* vc, void* o, float* lse) {
  Buffer<float> acc(ctx, 2 * p.D);
  if (!acc) return ASSAY_ENOMEM;
  const std::int64_t stride = p.Hkv * p.D;
  for (std::int64_t b = 0; b < p.B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      for (std::int64_t h = 0; h < p.Hq; ++h) {
        const std::int64_t head = h / (p.Hq / p.Hkv) * p.D;
        const T* k = static_cast<const T*>(kc[b]) + head;
        const T* v = static_cast<const T*>(vc[b]) + head;
        Query<T> query(static_cast<const T*>(q) + (i * p.Hq + h) * p.D, p.D, p.scale, acc.data);
        for (std::int64_t j = 0; j < P[b]; j += query.kBlock) {
          query.add(k + j * stride, v + j * stride, stride, std::min(query.kBlock, P[b] - j));
        }
        for (std::int64_t a = i - cu[b]; a >= 0; a = parent[cu[b] + a]) {
          query.add(k + (P[b] + a) * stride, v + (P[b] + a) * stride, stride, 1);
        }
        const float l = query.finish(static_cast<T*>(o) + (i * p.Hq + h) * p.D);
        if (lse != nullptr) lse[i * p.Hq + h] = l;
      }
    }
  }
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

// -1 if a logit is NaN.
std::int32_t argmax(const float* x, std::int32_t V) {
  std::int32_t best = 0;
  for (std::int32_t j = 0; j < V; ++j) {
    if (std::isnan(x[j])) return -1;
    if (x[j] > x[best]) best = j;
  }
  return best;
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
      reject();
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

  void reject() {
    bool left = false;
    for (std::int32_t j = 0; j < V_; ++j) left |= p_[j] > q_[j];
    for (std::int32_t j = 0; j < V_ && left; ++j) p_[j] = p_[j] > q_[j] ? p_[j] - q_[j] : 0.0;
    normalise(p_);
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
  if (s != nullptr && s->mode == DV_SAMPLE_NO_REPL) return ASSAY_ENOTSUP;
  if (s != nullptr && (s->size != sizeof(dv_sampling) || !(s->temperature > 0) || s->uniform == nullptr)) {
    return ASSAY_EINVAL;
  }
  if (s != nullptr && (s->mode < DV_GREEDY || s->mode > DV_SAMPLE_NO_REPL)) return ASSAY_EINVAL;
  if (s != nullptr && s->mode != DV_SAMPLE_TREE && (s->root_q == nullptr || s->node_q == nullptr)) return ASSAY_EINVAL;
  Buffer<std::int32_t> path(ctx, nodes), count(ctx, B), last(ctx, B);
  Buffer<double> room(ctx, s != nullptr ? 2 * std::int64_t{V} : 0);
  if (!path || !count || !last || !room) return ASSAY_ENOMEM;
  bool nan = false;
  for (std::int32_t b = 0; b < B && !nan; ++b) {
    const Tree tree{cu[b + 1] - cu[b], parent + cu[b], token + cu[b], root_logits + std::int64_t{b} * V,
                    node_logits + cu[b] * V, V};
    nan = !verify_item(tree, b, cu[b], eos != nullptr ? eos[b] : -1, budget != nullptr ? budget[b] : INT32_MAX, s,
                       room.data, {path.data, count.data, last.data});
  }
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
