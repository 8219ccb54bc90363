// The entrant's own tests: masks, attention, greedy acceptance and compaction of small random
// batches against their definitions. Sampling, the loop and trees of hundreds of nodes are left
// to others. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

struct Batch {
  std::vector<std::int64_t> P, cu{0};
  std::vector<std::int32_t> parent;

  std::int32_t B() const { return static_cast<std::int32_t>(P.size()); }
  std::size_t items() const { return P.size(); }
  std::size_t nodes() const { return parent.size(); }
  std::int32_t size(std::size_t b) const { return static_cast<std::int32_t>(cu[b + 1] - cu[b]); }
  std::size_t node(std::size_t b, std::int32_t i) const {
    return static_cast<std::size_t>(cu[b] + i);
  }
  std::int32_t up(std::size_t b, std::int32_t i) const { return parent[node(b, i)]; }
  bool sees(std::size_t b, std::int32_t i, std::int32_t j) const {
    while (i > j) i = up(b, i);
    return i == j;
  }
};

std::int32_t below(std::mt19937& random, std::size_t n) {
  return static_cast<std::int32_t>(random() % n);
}

Batch random_batch(std::mt19937& random) {
  Batch t;
  for (int b = 0; b < 4; ++b) {
    t.P.push_back(1 + below(random, 30));
    const std::int32_t n = b == 1 ? 0 : below(random, 40);
    for (std::int32_t i = 0; i < n; ++i) t.parent.push_back(below(random, std::size_t(i) + 1) - 1);
    t.cu.push_back(static_cast<std::int64_t>(t.nodes()));
  }
  return t;
}

std::vector<float> normals(std::size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& f : x) f = normal(random);
  return x;
}

bool mask_is_right(assay_ctx* ctx, const Batch& t) {
  std::vector<std::uint64_t> bits(t.nodes(), ~std::uint64_t{0});
  std::vector<std::int32_t> depth(t.nodes());
  std::vector<std::int64_t> pos(t.nodes());
  if (dv_mask(ctx, t.B(), t.P.data(), t.cu.data(), t.parent.data(), 1, bits.data(), depth.data(),
              pos.data()) != ASSAY_OK) {
    return false;
  }
  for (std::size_t b = 0; b < t.items(); ++b) {
    for (std::int32_t i = 0; i < t.size(b); ++i) {
      const std::size_t at = t.node(b, i);
      const std::int32_t above = t.up(b, i) < 0 ? 0 : depth[t.node(b, t.up(b, i))];
      std::uint64_t want = 0;
      for (std::int32_t j = 0; j <= i; ++j) want |= std::uint64_t{t.sees(b, i, j)} << j;
      if (bits[at] != want || depth[at] != above + 1 || pos[at] != t.P[b] + above) return false;
    }
  }
  return true;
}

bool full_mask_is_right(assay_ctx* ctx, const Batch& t, std::size_t b) {
  const std::int64_t P = t.P[b], side = P + t.size(b);
  std::vector<std::uint8_t> M(static_cast<std::size_t>(side * side), 3);
  if (dv_full_mask(ctx, P, t.size(b), t.parent.data() + t.cu[b], M.data()) != ASSAY_OK) {
    return false;
  }
  for (std::int64_t i = 0; i < side; ++i) {
    for (std::int64_t j = 0; j < side; ++j) {
      const bool tree = i >= P && j >= P;
      const bool want =
          tree ? t.sees(b, static_cast<std::int32_t>(i - P), static_cast<std::int32_t>(j - P))
               : j <= i;
      if (M[static_cast<std::size_t>(i * side + j)] != std::uint8_t{want}) return false;
    }
  }
  return true;
}

// One row of attention; `rows` are the keys seen, q, k, v and o start at this head.
bool row_is_right(const std::vector<std::size_t>& rows, std::size_t stride, std::size_t D,
                  const float* q, const float* k, const float* v, const float* o, float lse) {
  constexpr double kTolerance = 3e-5;
  std::vector<double> weight, want(D);
  double sum = 0;
  for (const std::size_t row : rows) {
    double dot = 0;
    for (std::size_t d = 0; d < D; ++d) dot += static_cast<double>(q[d]) * k[row * stride + d];
    sum += std::exp(0.25 * dot);
    weight.push_back(std::exp(0.25 * dot));
  }
  for (std::size_t j = 0; j < rows.size(); ++j) {
    for (std::size_t d = 0; d < D; ++d) want[d] += weight[j] / sum * v[rows[j] * stride + d];
  }
  for (std::size_t d = 0; d < D; ++d) {
    if (!(std::abs(o[d] - want[d]) <= kTolerance)) return false;
  }
  return std::abs(lse - std::log(sum)) <= kTolerance;
}

// Node 0 of every item is full of NaN, and only nodes that do not see it are looked at.
bool attention_is_right(assay_ctx* ctx, const Batch& t, std::size_t D, std::mt19937& random) {
  constexpr std::size_t kHq = 4, kHkv = 2;
  fa_params p{};
  p.size = sizeof p;
  p.dtype = ASSAY_F32;
  p.B = t.B(), p.Hq = kHq, p.Hkv = kHkv;
  p.D = p.Dv = static_cast<std::int64_t>(D);
  p.scale = 0.25f;
  const std::vector<float> q = normals(t.nodes() * kHq * D, random);
  std::vector<float> o(q.size()), lse(t.nodes() * kHq);
  std::vector<std::vector<float>> k, v;
  std::vector<const void*> kc, vc;
  for (std::size_t b = 0; b < t.items(); ++b) {
    const auto P = static_cast<std::size_t>(t.P[b]), n = static_cast<std::size_t>(t.size(b));
    for (auto* cache : {&k, &v}) {
      cache->push_back(normals((P + n) * kHkv * D, random));
      if (n > 0) std::fill_n(cache->back().data() + P * kHkv * D, kHkv * D, NAN);
    }
    kc.push_back(k[b].data());
    vc.push_back(v[b].data());
  }
  if (dv_attention(ctx, &p, t.P.data(), t.cu.data(), t.parent.data(), q.data(), kc.data(),
                   vc.data(), o.data(), lse.data()) != ASSAY_OK) {
    return false;
  }
  for (std::size_t b = 0; b < t.items(); ++b) {
    for (std::int32_t i = 0; i < t.size(b); ++i) {
      if (t.sees(b, i, 0)) continue;
      std::vector<std::size_t> rows;
      for (std::int64_t j = 0; j < t.P[b] + t.size(b); ++j) {
        if (j < t.P[b] || t.sees(b, i, static_cast<std::int32_t>(j - t.P[b]))) {
          rows.push_back(static_cast<std::size_t>(j));
        }
      }
      for (std::size_t h = 0; h < kHq; ++h) {
        const std::size_t at = t.node(b, i) * kHq + h, head = h / (kHq / kHkv) * D;
        if (!row_is_right(rows, kHkv * D, D, &q[at * D], &k[b][head], &v[b][head], &o[at * D],
                          lse[at])) {
          return false;
        }
      }
    }
  }
  return true;
}

constexpr std::size_t kV = 5;

// With five words and logits of five sizes, matches, duplicates and ties are all common.
bool accept_is_right(assay_ctx* ctx, const Batch& t, std::mt19937& random) {
  std::vector<std::int32_t> token, eos, budget;
  for (std::size_t i = 0; i < t.nodes(); ++i) token.push_back(below(random, kV));
  for (std::size_t b = 0; b < t.items(); ++b) {
    eos.push_back(below(random, kV + 3) - 1);
    budget.push_back(below(random, 7));
  }
  std::vector<float> root(t.items() * kV), node(t.nodes() * kV);
  for (auto* logits : {&root, &node}) {
    for (float& x : *logits) x = static_cast<float>(below(random, 5));
  }
  std::vector<std::int32_t> acc(t.nodes(), 99), n_acc(t.items()), bonus(t.items());
  if (dv_accept(ctx, t.B(), kV, t.cu.data(), t.parent.data(), token.data(), root.data(),
                node.data(), eos.data(), budget.data(), nullptr, acc.data(), n_acc.data(),
                bonus.data()) != ASSAY_OK) {
    return false;
  }
  for (std::size_t b = 0; b < t.items(); ++b) {
    std::vector<std::int32_t> path;
    std::int32_t cur = -1, last = -1;
    while (last < 0 && static_cast<std::int32_t>(path.size()) < budget[b]) {
      const float* x = cur < 0 ? &root[b * kV] : &node[t.node(b, cur) * kV];
      const auto best = static_cast<std::int32_t>(std::max_element(x, x + kV) - x);
      std::int32_t child = cur + 1;
      while (child < t.size(b) && (t.up(b, child) != cur || token[t.node(b, child)] != best)) {
        ++child;
      }
      if (child == t.size(b)) {
        last = best;
        continue;
      }
      path.push_back(cur = child);
      if (best == eos[b]) break;
    }
    if (n_acc[b] != static_cast<std::int32_t>(path.size()) || bonus[b] != last) return false;
    path.resize(static_cast<std::size_t>(t.size(b)), -1);
    if (!std::equal(path.begin(), path.end(), acc.begin() + t.cu[b])) return false;
  }
  return true;
}

// Rows of one number that says which row it was.
bool compact_is_right(assay_ctx* ctx, const Batch& t, std::mt19937& random) {
  std::vector<std::int32_t> acc(t.nodes(), -1), n_acc(t.items());
  std::vector<std::vector<std::int64_t>> rows(t.items());
  std::vector<void*> kv;
  for (std::size_t b = 0; b < t.items(); ++b) {
    for (std::int64_t r = 0; r < t.P[b] + t.size(b); ++r) rows[b].push_back(r);
    for (std::int32_t i = 0; i < t.size(b); ++i) {
      if (below(random, 3) == 0) acc[t.node(b, n_acc[b]++)] = i;
    }
    kv.push_back(rows[b].data());
  }
  if (dv_compact(ctx, t.B(), t.P.data(), t.cu.data(), acc.data(), n_acc.data(),
                 sizeof(std::int64_t), 1, kv.data()) != ASSAY_OK) {
    return false;
  }
  for (std::size_t b = 0; b < t.items(); ++b) {
    for (std::int64_t r = 0; r < t.P[b] + n_acc[b]; ++r) {
      const std::int64_t node = r - t.P[b];
      const std::int64_t want =
          node < 0 ? r : t.P[b] + acc[t.node(b, static_cast<std::int32_t>(node))];
      if (rows[b][static_cast<std::size_t>(r)] != want) return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::mt19937 random(2024);
  for (int round = 0; round < 60; ++round) {
    const Batch t = random_batch(random);
    const std::size_t D = std::size_t{32} << round % 3;
    const bool right = mask_is_right(ctx, t) && full_mask_is_right(ctx, t, 0) &&
                       accept_is_right(ctx, t, random) && compact_is_right(ctx, t, random) &&
                       (round > 5 || attention_is_right(ctx, t, D, random));
    if (!right) return 1;
  }
  return 0;
}
