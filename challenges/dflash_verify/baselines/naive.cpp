// The plain implementation: what the interface says, line by line, on one thread.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "abi.h"
#include "common/generate.h"  // dv_compact, dv_generate
#include "common/sampling.h"
#include "common/trees.h"
#include "shared/baselines/scratch.h"

namespace {

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

float widen(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

std::uint16_t narrow(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float read(float x) { return x; }
float read(std::uint16_t x) { return widen(x); }
void write(float& to, float x) { to = x; }
void write(std::uint16_t& to, float x) { to = narrow(x); }

// One query head of one node: the scores of the keys it sees, in order of position, then softmax,
// then the weighted sum of values.
template <class T>
struct Head {
  const T *q, *k, *v;  // k, v: the first row's part of this head
  T* o;
  std::int64_t row_stride, D, P;
  float scale;

  float score(std::int64_t row) const {
    float sum = 0;
    for (std::int64_t d = 0; d < D; ++d) sum += read(q[d]) * read(k[row * row_stride + d]);
    return sum * scale;
  }

  // path: the node's ancestors and itself, from the root down. p: room for P + depth scores.
  float attend(const std::int32_t* path, std::int32_t depth, float* p, float* acc) const {
    const auto row_of = [&](std::int64_t j) { return j < P ? j : P + path[j - P]; };
    const std::int64_t keys = P + depth;
    float max = kNegativeInfinity;
    for (std::int64_t j = 0; j < keys; ++j) {
      p[j] = score(row_of(j));
      max = p[j] > max ? p[j] : max;
    }
    float sum = 0;
    std::fill(acc, acc + D, 0.0f);
    for (std::int64_t j = 0; j < keys; ++j) {
      p[j] = std::exp(p[j] - max);
      sum += p[j];
      const T* row = v + row_of(j) * row_stride;
      for (std::int64_t d = 0; d < D; ++d) acc[d] += p[j] * read(row[d]);
    }
    for (std::int64_t d = 0; d < D; ++d) write(o[d], acc[d] / sum);
    return max + std::log(sum);
  }
};

template <class T>
std::int32_t attend_all(assay_ctx* ctx, const fa_params* p, const std::int64_t* P,
                        const std::int64_t* cu, const std::int32_t* parent, const T* q,
                        const void* const* kc, const void* const* vc, T* o, float* lse) {
  std::int64_t keys = 0, nodes = 0;
  for (std::int64_t b = 0; b < p->B; ++b) {
    keys = std::max(keys, P[b] + cu[b + 1] - cu[b]);
    nodes = std::max(nodes, cu[b + 1] - cu[b]);
  }
  const Scratch<float> scores(ctx, keys), acc(ctx, p->D);
  const Scratch<std::int32_t> path(ctx, nodes);
  if (scores.failed() || acc.failed() || path.failed()) return ASSAY_ENOMEM;
  for (std::int64_t b = 0; b < p->B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      std::int32_t depth = 0;
      for (auto a = static_cast<std::int32_t>(i - cu[b]); a >= 0; a = parent[cu[b] + a]) {
        path[depth++] = a;
      }
      std::reverse(path.data(), path.data() + depth);
      for (std::int64_t h = 0; h < p->Hq; ++h) {
        const std::int64_t kv_head = h / (p->Hq / p->Hkv) * p->D;
        const std::int64_t at = (i * p->Hq + h) * p->D;
        const Head<T> head{q + at,
                           static_cast<const T*>(kc[b]) + kv_head,
                           static_cast<const T*>(vc[b]) + kv_head,
                           o + at,
                           p->Hkv * p->D,
                           p->D,
                           P[b],
                           p->scale};
        const float l = head.attend(path.data(), depth, scores.data(), acc.data());
        if (lse != nullptr) lse[i * p->Hq + h] = l;
      }
    }
  }
  return ASSAY_OK;
}

// --- acceptance

// The lowest index of the largest logit, or kNotANumber.
std::int32_t argmax(const float* x, std::int32_t V) {
  std::int32_t best = 0;
  for (std::int32_t j = 0; j < V; ++j) {
    if (std::isnan(x[j])) return kNotANumber;
    if (x[j] > x[best]) best = j;
  }
  return best;
}

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
      std::uint64_t* row = bits + i * ldm;
      std::fill(row, row + ldm, 0);
      depth[i] = 0;
      for (std::int64_t a = i - cu[b]; a >= 0; a = parent[cu[b] + a]) {
        row[a / 64] |= std::uint64_t{1} << (a % 64);
        ++depth[i];
      }
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
    return attend_all(ctx, p, P, cu, parent, static_cast<const float*>(q), kc, vc,
                      static_cast<float*>(o), lse);
  }
  return attend_all(ctx, p, P, cu, parent, static_cast<const std::uint16_t*>(q), kc, vc,
                    static_cast<std::uint16_t*>(o), lse);
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
  if (!greedy && !valid_sampling(*sampling, nodes)) return ASSAY_EINVAL;

  // Every row's greedy token first; NaN only matters in rows that the walk reaches. Results are
  // held back until no item can fail any more.
  const Scratch<std::int32_t> best(ctx, greedy ? B + nodes : 0), path(ctx, nodes), count(ctx, B),
      last(ctx, B);
  const Scratch<double> p(ctx, greedy ? 0 : V), q(ctx, greedy ? 0 : V);
  if (best.failed() || path.failed() || count.failed() || last.failed() || p.failed() ||
      q.failed()) {
    return ASSAY_ENOMEM;
  }
  for (std::int64_t r = 0; greedy && r < B + nodes; ++r) {
    best[r] = argmax(r < B ? root_logits + r * V : node_logits + (r - B) * V, V);
  }
  for (std::int32_t b = 0; b < B; ++b) {
    const Tree tree{cu[b + 1] - cu[b], parent + cu[b], token + cu[b]};
    count[b] = 0;
    last[b] = -1;
    std::fill(path.data() + cu[b], path.data() + cu[b + 1], -1);
    std::int32_t cur = -1;
    while (budget == nullptr || count[b] < budget[b]) {
      const std::int64_t row = cur < 0 ? b : cu[b] + cur;
      Step step;
      if (greedy) {
        step.token = best[cur < 0 ? row : B + row];
        if (step.token == kNotANumber) return ASSAY_EINVAL;
        step.child = tree.child_with(cur, step.token);
      } else {
        const float* logits = (cur < 0 ? root_logits : node_logits) + row * V;
        const float* draft = cur < 0 ? sampling->root_q : sampling->node_q;
        const float* u = sampling->uniform + b * sampling->u_item + count[b] * sampling->u_step;
        if (!sample(tree, cur, V, logits, draft == nullptr ? nullptr : draft + row * V, u,
                    *sampling, p.data(), q.data(), step)) {
          return ASSAY_EINVAL;
        }
      }
      if (step.child < 0) {
        last[b] = step.token;
        break;
      }
      path[cu[b] + count[b]++] = step.child;
      if (eos != nullptr && eos[b] >= 0 && step.token == eos[b]) break;
      cur = step.child;
    }
  }
  if (nodes > 0) std::copy(path.data(), path.data() + nodes, acc_node);
  std::copy(count.data(), count.data() + B, n_acc);
  std::copy(last.data(), last.data() + B, bonus);
  return ASSAY_OK;
}

}  // extern "C"
