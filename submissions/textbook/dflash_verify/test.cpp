// The entrant's own tests: all six functions against the definitions written out once more, on
// many small random trees and a few that are large in one way. Returns 0 if the implementation
// linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Int = std::int64_t;
using Token = std::int32_t;
using Tokens = std::vector<Token>;
using Floats = std::vector<float>;

constexpr Token kUntouched = -77;

template <class T>
auto& at(T& v, Int i) {
  return v[static_cast<std::size_t>(i)];
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  Int below(Int n) { return static_cast<Int>(engine_() % static_cast<std::uint64_t>(n)); }
  bool chance(double p) { return uniform() < p; }
  float uniform() { return static_cast<float>(below(1 << 24)) / (1 << 24); }
  float normal() { return normal_(engine_); }
  Floats normals(Int n) {
    Floats x(static_cast<std::size_t>(n));
    for (float& f : x) f = normal();
    return x;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_;
};

// --- trees -------------------------------------------------------------------------------------

Tokens chain(Int n) {
  Tokens parent;
  for (Int i = 0; i < n; ++i) parent.push_back(static_cast<Token>(i - 1));
  return parent;
}

Tokens wide(Int n) { return Tokens(static_cast<std::size_t>(n), -1); }

Tokens random_tree(Int n, Random& random) {
  Tokens parent;
  for (Int i = 0; i < n; ++i) parent.push_back(static_cast<Token>(random.below(i + 1) - 1));
  return parent;
}

struct Trees {
  std::vector<Int> P, cu{0};
  Tokens parent;

  void add(Int prefix, const Tokens& tree) {
    P.push_back(prefix);
    parent.insert(parent.end(), tree.begin(), tree.end());
    cu.push_back(static_cast<Int>(parent.size()));
  }
  Token B() const { return static_cast<Token>(P.size()); }
  Int all() const { return cu.back(); }
  Int size(Int b) const { return at(cu, b + 1) - at(cu, b); }
  Int up(Int b, Int i) const { return at(parent, at(cu, b) + i); }
  bool sees(Int b, Int i, Int j) const {
    while (i > j) i = up(b, i);
    return i == j;
  }
  Int depth(Int b, Int i) const { return i < 0 ? 0 : 1 + depth(b, up(b, i)); }
};

// Items of unequal sizes, some empty.
Trees random_trees(Random& random, Int items, Int most) {
  Trees t;
  for (Int b = 0; b < items; ++b) {
    const Int n = random.chance(0.2) ? 0 : random.below(most + 1);
    t.add(1 + random.below(40), random_tree(n, random));
  }
  return t;
}

// --- masks -------------------------------------------------------------------------------------

bool mask_is_right(assay_ctx* ctx, const Trees& t, Int ldm) {
  const auto nodes = static_cast<std::size_t>(t.all());
  std::vector<std::uint64_t> bits(nodes * static_cast<std::size_t>(ldm), 0xabcdef);
  Tokens depth(nodes, kUntouched);
  std::vector<Int> pos(nodes, kUntouched);
  if (dv_mask(ctx, t.B(), t.P.data(), t.cu.data(), t.parent.data(), ldm, bits.data(), depth.data(),
              pos.data()) != ASSAY_OK) {
    return false;
  }
  for (Int b = 0; b < t.B(); ++b) {
    for (Int i = 0; i < t.size(b); ++i) {
      const Int row = at(t.cu, b) + i, d = t.depth(b, i);
      if (at(depth, row) != d || at(pos, row) != at(t.P, b) + d - 1) return false;
      for (Int j = 0; j < 64 * ldm; ++j) {
        const bool set = (at(bits, row * ldm + j / 64) >> (j % 64) & 1) != 0;
        if (set != (j < t.size(b) && t.sees(b, i, j))) return false;
      }
    }
  }
  return true;
}

bool full_mask_is_right(assay_ctx* ctx, const Trees& t, Int b) {
  const Int P = at(t.P, b), side = P + t.size(b);
  std::vector<std::uint8_t> M(static_cast<std::size_t>(side * side), 9);
  if (dv_full_mask(ctx, P, t.size(b), t.parent.data() + at(t.cu, b), M.data()) != ASSAY_OK) {
    return false;
  }
  for (Int i = 0; i < side; ++i) {
    for (Int j = 0; j < side; ++j) {
      const bool sees = i < P || j < P ? j <= i : t.sees(b, i - P, j - P);
      if (at(M, i * side + j) != (sees ? 1 : 0)) return false;
    }
  }
  return true;
}

bool masks_are_right(assay_ctx* ctx) {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    const Trees t = random_trees(random, 5, 60);
    if (!mask_is_right(ctx, t, 1 + round % 3)) return false;
    for (Int b = 0; b < t.B(); ++b) {
      if (!full_mask_is_right(ctx, t, b)) return false;
    }
  }
  Trees large;
  large.add(3, random_tree(200, random));
  large.add(9, chain(300));
  large.add(1, wide(130));
  if (!mask_is_right(ctx, large, 5) || !mask_is_right(ctx, {}, 1)) return false;
  large.parent[7] = 7;
  std::vector<std::uint64_t> bits(static_cast<std::size_t>(5 * large.all()), 5);
  Tokens depth(large.parent.size());
  std::vector<Int> pos(large.parent.size());
  return dv_mask(ctx, large.B(), large.P.data(), large.cu.data(), large.parent.data(), 5,
                 bits.data(), depth.data(), pos.data()) == ASSAY_EINVAL &&
         bits[0] == 5;
}

// --- attention ---------------------------------------------------------------------------------

class Attention {
 public:
  Attention(const Trees& t, Int Hq, Int Hkv, Int D, float scale, std::uint64_t seed)
      : t_(t), random_(seed), q_(random_.normals(t.all() * Hq * D)) {
    p_.size = sizeof p_;
    p_.dtype = ASSAY_F32;
    p_.B = t.B(), p_.Hq = Hq, p_.Hkv = Hkv, p_.D = p_.Dv = D, p_.scale = scale;
    for (Int b = 0; b < t.B(); ++b) {
      k_.push_back(random_.normals((at(t.P, b) + t.size(b)) * Hkv * D));
      v_.push_back(random_.normals((at(t.P, b) + t.size(b)) * Hkv * D));
    }
  }

  // Puts what must have no influence into the keys and values of node j; rows that see it are
  // not looked at.
  void spoil(Int b, Int j, float with) {
    const Int row = p_.Hkv * p_.D, from = (at(t_.P, b) + j) * row;
    std::fill_n(at(k_, b).begin() + from, row, with);
    std::fill_n(at(v_, b).begin() + from, row, with);
    spoilt_.push_back({b, j});
  }

  bool passes(assay_ctx* ctx) const {
    Floats o(q_.size(), 7), lse(static_cast<std::size_t>(t_.all() * p_.Hq), 7);
    std::vector<const void*> k, v;
    for (const Floats& x : k_) k.push_back(x.data());
    for (const Floats& x : v_) v.push_back(x.data());
    if (dv_attention(ctx, &p_, t_.P.data(), t_.cu.data(), t_.parent.data(), q_.data(), k.data(),
                     v.data(), o.data(), lse.data()) != ASSAY_OK) {
      return false;
    }
    for (Int b = 0; b < t_.B(); ++b) {
      for (Int i = 0; i < t_.size(b); ++i) {
        for (Int h = 0; h < p_.Hq && !sees_spoilt(b, i); ++h) {
          const Int row = (at(t_.cu, b) + i) * p_.Hq + h;
          if (!head_is_right(b, i, h, &at(o, row * p_.D), at(lse, row))) return false;
        }
      }
    }
    return true;
  }

 private:
  struct Node {
    Int b, j;
  };

  bool sees_spoilt(Int b, Int i) const {
    return std::any_of(spoilt_.begin(), spoilt_.end(),
                       [&](const Node& s) { return s.b == b && t_.sees(b, i, s.j); });
  }

  bool head_is_right(Int b, Int i, Int h, const float* o, float lse) const {
    const Int head = h / (p_.Hq / p_.Hkv) * p_.D, row = p_.Hkv * p_.D, P = at(t_.P, b);
    std::vector<double> score, want(static_cast<std::size_t>(p_.D)), size = want;
    std::vector<Int> keys;
    double max = -std::numeric_limits<double>::infinity(), sum = 0, terms = 0;
    for (Int j = 0; j < P + t_.size(b); ++j) {
      if (j >= P && !t_.sees(b, i, j - P)) continue;
      double dot = 0, magnitude = 0;
      for (Int d = 0; d < p_.D; ++d) {
        const double term =
            static_cast<double>(at(q_, ((at(t_.cu, b) + i) * p_.Hq + h) * p_.D + d)) *
            at(at(k_, b), j * row + head + d) * p_.scale;
        dot += term;
        magnitude += std::abs(term);
      }
      keys.push_back(j);
      score.push_back(dot);
      max = std::max(max, dot);
      terms = std::max(terms, magnitude);
    }
    for (const double s : score) sum += std::exp(s - max);
    const double tolerance = 1e-5 + 1e-6 * terms;
    for (Int d = 0; d < p_.D; ++d) {
      for (std::size_t j = 0; j < keys.size(); ++j) {
        const double term =
            std::exp(score[j] - max) / sum * at(at(v_, b), keys[j] * row + head + d);
        at(want, d) += term;
        at(size, d) += std::abs(term);
      }
      if (!(std::abs(o[d] - at(want, d)) <= tolerance * (at(size, d) + 1e-3))) return false;
    }
    return std::abs(lse - (max + std::log(sum))) <= tolerance;
  }

  const Trees& t_;
  Random random_;
  fa_params p_{};
  Floats q_;
  std::vector<Floats> k_, v_;
  std::vector<Node> spoilt_;
};

bool attention_is_right(assay_ctx* ctx) {
  Random random(2);
  for (const Int D : {32, 64, 128}) {
    const Trees t = random_trees(random, 4, 20);
    if (!Attention(t, 4, 2, D, 0.2f, 3).passes(ctx)) return false;
  }
  Trees branches, large;
  branches.add(70, {-1, -1, 0, 0, 1, 1, 4});
  branches.add(5, {-1, 0, -1, 2, 2});
  for (const float spoil : {NAN, 1e30f, -1e30f}) {
    Attention a(branches, 3, 1, 32, -0.4f, 4);
    a.spoil(0, 1, spoil);
    a.spoil(0, 3, spoil);
    a.spoil(1, 1, spoil);
    if (!a.passes(ctx)) return false;
  }
  large.add(2, chain(300));
  large.add(4, random_tree(280, random));
  return Attention(large, 1, 1, 32, 0.3f, 5).passes(ctx);
}

// --- acceptance --------------------------------------------------------------------------------

constexpr Int kTries = 16;           // uniforms of a step
constexpr Int kSteps = 16;           // steps of an item
constexpr double kClearance = 1e-4;  // comparisons nearer than this may go either way

struct Verdict {
  Tokens path;
  Token bonus = -1;
  std::vector<Int> read;  // nodes whose logits counted, -1 for the root's
  bool clear = true;
};

// What dv_accept is given.
struct Question {
  Trees t;
  Token V;
  Tokens token, eos, budget;
  Floats root, node;
  Floats uniform, root_q, node_q;
  dv_sampling sampling{};

  const float* row(const Floats& of_root, const Floats& of_nodes, Int b, Int i) const {
    return i < 0 ? &at(of_root, b * V) : &at(of_nodes, (at(t.cu, b) + i) * V);
  }
  std::vector<Int> children(Int b, Int i) const {
    std::vector<Int> found;
    for (Int c = i + 1; c < t.size(b); ++c) {
      if (t.up(b, c) == i) found.push_back(c);
    }
    return found;
  }
  Token token_of(Int b, Int i) const { return at(token, at(t.cu, b) + i); }
  Int child_with(Int b, Int i, Token x) const {
    for (const Int c : children(b, i)) {
      if (token_of(b, c) == x) return c;
    }
    return -1;
  }
};

struct Decision {
  Int child;
  Token token;
};

Decision greedy(const Question& a, Int b, Int i) {
  const float* x = a.row(a.root, a.node, b, i);
  const auto best = static_cast<Token>(std::max_element(x, x + a.V) - x);
  return {a.child_with(b, i, best), best};
}

using Weights = std::vector<double>;

double total(const Weights& w) {
  double sum = 0;
  for (const double x : w) sum += x;
  return sum;
}

void normalise(Weights& w) {
  const double sum = total(w);
  for (double& x : w) x /= sum;
}

Weights softmax(const float* x, Token V, float temperature) {
  const float max = *std::max_element(x, x + V);
  Weights p;
  for (Token j = 0; j < V; ++j) {
    p.push_back(std::exp((static_cast<double>(x[j]) - max) / temperature));
  }
  normalise(p);
  return p;
}

Token draw(const Weights& w, double u, Verdict& verdict) {
  const double limit = u * total(w);
  double sum = 0;
  Token drawn = -1;
  for (std::size_t j = 0; j < w.size(); ++j) {
    sum += w[j];
    if (std::abs(sum - limit) < kClearance) verdict.clear = false;
    if (drawn < 0 && sum > limit) drawn = static_cast<Token>(j);
  }
  return drawn;
}

void reject(Weights& p, Weights& q, Token x, bool replaced, Verdict& verdict) {
  for (std::size_t j = 0; j < p.size(); ++j) p[j] = std::max(0.0, p[j] - q[j]);
  if (!replaced) at(q, x) = 0;
  if (total(p) < 100 * kClearance || total(q) < 100 * kClearance) verdict.clear = false;
  normalise(p);
  normalise(q);
}

Decision sampled(const Question& a, Int b, Int i, Verdict& verdict) {
  const dv_sampling& s = a.sampling;
  const auto step = static_cast<Int>(verdict.path.size());
  const float* u = s.uniform + b * s.u_item + step * s.u_step;
  Weights p = softmax(a.row(a.root, a.node, b, i), a.V, s.temperature);
  if (s.mode == DV_SAMPLE_TREE) {
    const Token x = draw(p, u[0], verdict);
    return {a.child_with(b, i, x), x};
  }
  const float* drafted = a.row(a.root_q, a.node_q, b, i);
  Weights q(drafted, drafted + a.V);
  for (const Int c : a.children(b, i)) {
    const Token x = a.token_of(b, c);
    const double margin = at(p, x) - *u++ * at(q, x);
    if (std::abs(margin) < kClearance) verdict.clear = false;
    if (!verdict.clear) return {-1, 0};
    if (margin > 0) return {c, x};
    reject(p, q, x, s.mode == DV_SAMPLE_IID, verdict);
  }
  return {-1, draw(p, *u, verdict)};
}

Verdict answer(const Question& a, Int b) {
  Verdict v;
  Int cur = -1;
  while (static_cast<Token>(v.path.size()) < at(a.budget, b)) {
    v.read.push_back(cur);
    const Decision d = a.sampling.mode == DV_GREEDY ? greedy(a, b, cur) : sampled(a, b, cur, v);
    if (!v.clear) break;
    if (d.child < 0) {
      v.bonus = d.token;
      break;
    }
    v.path.push_back(static_cast<Token>(d.child));
    if (d.token == at(a.eos, b)) break;
    cur = d.child;
  }
  return v;
}

struct Outputs {
  int status;
  Tokens acc, n_acc, bonus;
  bool untouched() const {
    const auto same = [](const Tokens& v) {
      return std::count(v.begin(), v.end(), kUntouched) == static_cast<Int>(v.size());
    };
    return same(acc) && same(n_acc) && same(bonus);
  }
};

Outputs ask(assay_ctx* ctx, const Question& a) {
  const auto items = static_cast<std::size_t>(a.t.B());
  Outputs got{0, Tokens(a.token.size(), kUntouched), Tokens(items, kUntouched),
              Tokens(items, kUntouched)};
  got.status = dv_accept(ctx, a.t.B(), a.V, a.t.cu.data(), a.t.parent.data(), a.token.data(),
                         a.root.data(), a.node.data(), a.eos.data(), a.budget.data(),
                         a.sampling.mode == DV_GREEDY ? nullptr : &a.sampling, got.acc.data(),
                         got.n_acc.data(), got.bonus.data());
  return got;
}

bool agrees(const Question& a, const std::vector<Verdict>& verdicts, const Outputs& got) {
  if (got.status != ASSAY_OK) return false;
  for (Int b = 0; b < a.t.B(); ++b) {
    const Verdict& v = at(verdicts, b);
    if (!v.clear) continue;
    Tokens path = v.path;
    path.resize(static_cast<std::size_t>(a.t.size(b)), -1);
    if (!std::equal(path.begin(), path.end(), got.acc.begin() + at(a.t.cu, b))) return false;
    if (at(got.n_acc, b) != static_cast<Token>(v.path.size())) return false;
    if (at(got.bonus, b) != v.bonus) return false;
  }
  return true;
}

// Small whole numbers as logits, so that ties are common. Where there are children one of them is
// mostly among the best: any of them, or always the last.
void fill_logits(Question& a, Random& random, bool last) {
  for (Int b = 0; b < a.t.B(); ++b) {
    for (Int i = -1; i < a.t.size(b); ++i) {
      auto* x = const_cast<float*>(a.row(a.root, a.node, b, i));
      for (Token j = 0; j < a.V; ++j) x[j] = static_cast<float>(random.below(4));
      const std::vector<Int> c = a.children(b, i);
      if (c.empty() || (!last && random.chance(0.2))) continue;
      const Int right = last ? c.back() : at(c, random.below(static_cast<Int>(c.size())));
      x[a.token_of(b, right)] = last ? 9.0f : 3.0f + static_cast<float>(random.below(2));
    }
  }
}

Question question(const Trees& t, Token V, Random& random, bool last) {
  Question a{t, V, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  for (Int i = 0; i < t.all(); ++i) {
    a.token.push_back(static_cast<Token>(last ? i % V : random.below(V)));
  }
  for (Int b = 0; b < t.B(); ++b) {
    a.eos.push_back(last || random.chance(0.3) ? -1 : static_cast<Token>(random.below(V)));
    a.budget.push_back(last || random.chance(0.4) ? 1000 : static_cast<Token>(random.below(5)));
  }
  a.root.resize(static_cast<std::size_t>(t.B()) * static_cast<std::size_t>(V));
  a.node.resize(a.token.size() * static_cast<std::size_t>(V));
  fill_logits(a, random, last);
  return a;
}

std::vector<Verdict> answers(const Question& a) {
  std::vector<Verdict> all;
  for (Int b = 0; b < a.t.B(); ++b) all.push_back(answer(a, b));
  return all;
}

// NaN where nothing is read must not matter.
void spoil_unread(Question& a, const std::vector<Verdict>& verdicts, Random& random) {
  for (Int b = 0; b < a.t.B(); ++b) {
    const std::vector<Int>& read = at(verdicts, b).read;
    for (Int i = -1; i < a.t.size(b); ++i) {
      if (random.chance(0.5) || std::find(read.begin(), read.end(), i) != read.end()) continue;
      const_cast<float*>(a.row(a.root, a.node, b, i))[random.below(a.V)] = NAN;
    }
  }
}

bool refuses(assay_ctx* ctx, const Question& a) {
  const Outputs got = ask(ctx, a);
  return got.status == ASSAY_EINVAL && got.untouched();
}

bool refuses_nonsense(assay_ctx* ctx, const Question& good, const std::vector<Verdict>& verdicts) {
  Question nan = good, token = good, parent = good, budget = good, no_words = good;
  token.token.back() = good.V;
  parent.t.parent.back() = static_cast<Token>(good.t.all());
  budget.budget.back() = -1;
  no_words.V = 0;
  const auto reader = std::find_if(verdicts.begin(), verdicts.end(),
                                   [](const Verdict& v) { return !v.read.empty(); });
  if (reader == verdicts.end()) return true;
  const Int b = reader - verdicts.begin();
  const_cast<float*>(nan.row(nan.root, nan.node, b, reader->read.back()))[good.V - 1] = NAN;
  return refuses(ctx, nan) && refuses(ctx, token) && refuses(ctx, parent) && refuses(ctx, budget) &&
         refuses(ctx, no_words);
}

bool greedy_is_right(assay_ctx* ctx) {
  Random random(6);
  for (int round = 0; round < 200; ++round) {
    Question a = question(random_trees(random, 6, 25), 7, random, false);
    const std::vector<Verdict> verdicts = answers(a);
    if (!agrees(a, verdicts, ask(ctx, a))) return false;
    if (a.t.all() > 0 && !refuses_nonsense(ctx, a, verdicts)) return false;
    spoil_unread(a, verdicts, random);
    if (!agrees(a, verdicts, ask(ctx, a))) return false;
  }
  Trees large;
  large.add(1, chain(300));
  large.add(1, wide(200));
  const Question a = question(large, 311, random, true);
  return agrees(a, answers(a), ask(ctx, a));
}

Floats distributions(Int rows, Token V, Random& random) {
  Floats q;
  for (Int r = 0; r < rows; ++r) {
    Weights w = softmax(random.normals(V).data(), V, 1);
    q.insert(q.end(), w.begin(), w.end());
  }
  return q;
}

// One of the optional modes; not having it is no fault.
bool sampling_is_right(assay_ctx* ctx, std::int32_t mode) {
  Random random(7);
  for (int round = 0; round < 10; ++round) {
    Question a = question(random_trees(random, 20, kTries - 1), 9, random, false);
    a.root = random.normals(static_cast<Int>(a.root.size()));
    a.node = random.normals(static_cast<Int>(a.node.size()));
    a.root_q = distributions(a.t.B(), a.V, random);
    a.node_q = distributions(a.t.all(), a.V, random);
    const Int item = kTries * kSteps + 3;
    for (Int i = 0; i < a.t.B() * item; ++i) a.uniform.push_back(random.uniform());
    a.sampling = {sizeof(dv_sampling),
                  mode,
                  round % 2 == 0 ? 1.0f : 0.7f,
                  item,
                  kTries,
                  a.uniform.data(),
                  a.root_q.data(),
                  a.node_q.data()};
    const Outputs got = ask(ctx, a);
    if (got.status == ASSAY_ENOTSUP) return true;
    if (!agrees(a, answers(a), got)) return false;
  }
  return true;
}

// --- compaction --------------------------------------------------------------------------------

bool compact_is_right(assay_ctx* ctx, Random& random, Int row_bytes) {
  const Trees t = random_trees(random, 5, 20);
  constexpr Int kCaches = 2;
  Tokens acc(t.parent.size(), -1), n_acc;
  for (Int b = 0; b < t.B(); ++b) {
    n_acc.push_back(0);
    for (Int i = 0; i < t.size(b); ++i) {
      if (random.chance(0.5)) at(acc, at(t.cu, b) + n_acc.back()++) = static_cast<Token>(i);
    }
  }
  std::vector<std::vector<char>> before;
  for (Int c = 0; c < t.B() * kCaches; ++c) {
    const Int b = c / kCaches;
    before.emplace_back(static_cast<std::size_t>((at(t.P, b) + t.size(b)) * row_bytes));
    for (char& x : before.back()) x = static_cast<char>(random.below(256));
  }
  auto after = before;
  std::vector<void*> kv;
  for (auto& cache : after) kv.push_back(cache.data());
  if (dv_compact(ctx, t.B(), t.P.data(), t.cu.data(), acc.data(), n_acc.data(), row_bytes, kCaches,
                 kv.data()) != ASSAY_OK) {
    return false;
  }
  for (Int c = 0; c < t.B() * kCaches; ++c) {
    const Int b = c / kCaches, P = at(t.P, b);
    for (Int r = 0; r < P + at(n_acc, b); ++r) {
      const Int from = r < P ? r : P + at(acc, at(t.cu, b) + r - P);
      const auto want = at(before, c).begin() + from * row_bytes;
      if (!std::equal(want, want + row_bytes, at(after, c).begin() + r * row_bytes)) return false;
    }
  }
  return true;
}

bool compaction_is_right(assay_ctx* ctx) {
  Random random(8);
  for (int round = 0; round < 30; ++round) {
    if (!compact_is_right(ctx, random, 1 + round * 7 % 50)) return false;
  }
  return true;
}

// --- the loop ----------------------------------------------------------------------------------

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

// A model whose next word depends on each token it sees and on that token's position, and a draft
// that is often right.
class Model {
 public:
  Model(Token V, Token max_nodes, double hit) : V_(V), max_nodes_(max_nodes), hit_(hit) {}

  dv_model interface() {
    return {sizeof(dv_model), V_, max_nodes_, this, &Model::draft, &Model::verify, &Model::commit};
  }
  Int passes() const { return passes_; }

  static std::uint64_t trace(Token token, Int pos) {
    return mix(static_cast<std::uint64_t>(token) * 1000003 + static_cast<std::uint64_t>(pos) + 17);
  }
  static std::uint64_t trace(const Tokens& text) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < text.size(); ++i) sum += trace(text[i], static_cast<Int>(i));
    return sum;
  }
  Token next(std::uint64_t seen) const {
    return static_cast<Token>(mix(seen) % static_cast<std::uint64_t>(V_));
  }

  Trees propose(const Tokens& text, Tokens& token) const {
    Random random(trace(text));
    const Tokens parent = random_tree(random.below(max_nodes_ + 1), random);
    std::vector<std::uint64_t> seen;
    Trees t;
    t.add(static_cast<Int>(text.size()), parent);
    for (Int i = 0; i < t.size(0); ++i) {
      const std::uint64_t above = t.up(0, i) < 0 ? trace(text) : at(seen, t.up(0, i));
      token.push_back(random.chance(hit_) ? next(above) : static_cast<Token>(random.below(V_)));
      seen.push_back(above + trace(token.back(), t.P[0] + t.depth(0, i) - 1));
    }
    return t;
  }

 private:
  static std::int32_t draft(void* user, Int n_prefix, const Token* prefix, Token* n, Token* parent,
                            Token* token) {
    Tokens tokens;
    const Trees t = static_cast<Model*>(user)->propose(Tokens(prefix, prefix + n_prefix), tokens);
    *n = static_cast<Token>(t.all());
    std::copy(t.parent.begin(), t.parent.end(), parent);
    std::copy(tokens.begin(), tokens.end(), token);
    return ASSAY_OK;
  }

  static std::int32_t verify(void* user, Int n, const Token* token, const Int* pos, Int ldm,
                             const std::uint64_t* bits, float* logits) {
    auto& m = *static_cast<Model*>(user);
    if (n < 1 || 64 * ldm < n) return ASSAY_EINVAL;
    ++m.passes_;
    m.last_ = m.cache_.size();
    const std::uint64_t old = m.cached();
    for (Int i = 0; i < n; ++i) {
      std::uint64_t seen = old;
      for (Int j = 0; j <= i; ++j) {
        if ((bits[i * ldm + j / 64] >> (j % 64) & 1) != 0) seen += trace(token[j], pos[j]);
      }
      m.cache_.push_back(trace(token[i], pos[i]));
      std::fill_n(logits + i * m.V_, m.V_, 0.5f);
      logits[i * m.V_ + m.next(seen)] = 1;
    }
    return ASSAY_OK;
  }

  static std::int32_t commit(void* user, Int n, const Int* keep) {
    auto& m = *static_cast<Model*>(user);
    std::vector<std::uint64_t> kept(m.cache_.begin(), m.cache_.begin() + static_cast<Int>(m.last_));
    for (Int i = 0; i < n; ++i) {
      const Int row = static_cast<Int>(m.last_) + keep[i];
      if (keep[i] < 0 || row >= static_cast<Int>(m.cache_.size())) return ASSAY_EINVAL;
      kept.push_back(at(m.cache_, row));
    }
    m.cache_ = kept;
    return ASSAY_OK;
  }

  std::uint64_t cached() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t row : cache_) sum += row;
    return sum;
  }

  Token V_, max_nodes_;
  double hit_;
  Int passes_ = 0;
  std::vector<std::uint64_t> cache_;
  std::size_t last_ = 0;  // rows before the last pass
};

// What decoding one token at a time writes.
Tokens plain_text(const Model& model, Tokens text, Int max_new, Token eos) {
  Tokens out;
  while (static_cast<Int>(out.size()) < max_new && (out.empty() || out.back() != eos)) {
    out.push_back(model.next(Model::trace(text)));
    text.push_back(out.back());
  }
  return out;
}

// How many passes the drafts permit for `out`.
Int least_passes(const Model& model, Tokens text, const Tokens& out) {
  Int passes = 0;
  for (std::size_t done = 0; done < out.size(); ++passes) {
    Tokens token;
    const Trees t = model.propose(text, token);
    for (Int cur = -1, child = 0; child >= 0 && done < out.size(); cur = child) {
      const Token x = out[done++];
      text.push_back(x);
      for (child = cur + 1; child < t.size(0); ++child) {
        if (t.up(0, child) == cur && at(token, child) == x) break;
      }
      if (child == t.size(0)) child = -1;
    }
  }
  return passes;
}

bool loop_is_right(assay_ctx* ctx, Int n_prompt, Int max_new, Token max_nodes, Token eos) {
  Model model(23, max_nodes, 0.75);
  Tokens prompt;
  for (Int i = 0; i < n_prompt; ++i) prompt.push_back(static_cast<Token>(i * 5 % 23));
  Tokens want = plain_text(model, prompt, max_new, eos);
  const Int length = static_cast<Int>(want.size()), passes = least_passes(model, prompt, want);
  want.resize(static_cast<std::size_t>(max_new), -1);

  Tokens out(static_cast<std::size_t>(max_new), kUntouched);
  Int n_out = kUntouched;
  const dv_loop loop{sizeof(dv_loop), eos, n_prompt, prompt.data(), max_new};
  const dv_model interface = model.interface();
  const int status = dv_generate(ctx, &loop, &interface, out.data(), &n_out);
  return status == ASSAY_OK && n_out == length && out == want && model.passes() == passes;
}

bool loops_are_right(assay_ctx* ctx) {
  for (const Token eos : {-1, 4, 11}) {
    for (const Int prompt : {1, 6, 90}) {
      for (const Int max_new : {0, 1, 7, 60}) {
        for (const Token nodes : {0, 3, 20}) {
          if (!loop_is_right(ctx, prompt, max_new, nodes, eos)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const bool right =
      masks_are_right(ctx) && attention_is_right(ctx) && greedy_is_right(ctx) &&
      sampling_is_right(ctx, DV_SAMPLE_TREE) && sampling_is_right(ctx, DV_SAMPLE_IID) &&
      sampling_is_right(ctx, DV_SAMPLE_NO_REPL) && compaction_is_right(ctx) && loops_are_right(ctx);
  return right ? 0 : 1;
}
