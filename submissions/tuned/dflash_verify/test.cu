// The entrant's own tests on a device: masks, attention, greedy acceptance, compaction and the loop
// against their definitions, for small random trees and some that are deep, wide or long. Returns 0
// if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

// Device memory that goes back at the end of its scope.
template <class T>
class Memory {
 public:
  explicit Memory(const std::vector<T>& contents) : size_(contents.size()) {
    cudaMalloc(&data_, (size_ + 1) * sizeof(T));
    cudaMemcpy(data_, contents.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  Memory(Memory&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> host(size_);
    cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

// Whether the call succeeded, and the device with it.
bool done(assay_ctx* ctx, int status) {
  return status == ASSAY_OK &&
         cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) == cudaSuccess;
}

struct Batch {
  std::vector<std::int64_t> P, cu{0};
  Ints parent;

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
  void add(std::int64_t prefix, const Ints& tree) {
    P.push_back(prefix);
    parent.insert(parent.end(), tree.begin(), tree.end());
    cu.push_back(static_cast<std::int64_t>(nodes()));
  }
};

std::int32_t below(std::mt19937& random, std::size_t n) {
  return static_cast<std::int32_t>(random() % n);
}

Ints random_tree(std::mt19937& random, std::int32_t n) {
  Ints tree;
  for (std::int32_t i = 0; i < n; ++i) tree.push_back(below(random, std::size_t(i) + 1) - 1);
  return tree;
}

Ints chain(std::int32_t n) {
  Ints tree;
  for (std::int32_t i = 0; i < n; ++i) tree.push_back(i - 1);
  return tree;
}

Batch random_batch(std::mt19937& random) {
  Batch t;
  for (int b = 0; b < 4; ++b)
    t.add(1 + below(random, 30), random_tree(random, b == 1 ? 0 : below(random, 40)));
  return t;
}

Floats normals(std::size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Floats x(n);
  for (float& f : x) f = normal(random);
  return x;
}

bool mask_is_right(assay_ctx* ctx, const Batch& t, std::size_t words) {
  const Memory bits(std::vector<std::uint64_t>(t.nodes() * words, ~std::uint64_t{0}));
  const Memory depths(Ints(t.nodes()));
  const Memory positions(std::vector<std::int64_t>(t.nodes()));
  if (!done(ctx,
            dv_mask(ctx, t.B(), t.P.data(), t.cu.data(), t.parent.data(),
                    static_cast<std::int64_t>(words), bits.get(), depths.get(), positions.get()))) {
    return false;
  }
  const std::vector<std::uint64_t> got = bits.read();
  const std::vector<std::int64_t> pos = positions.read();
  const Ints depth = depths.read();
  for (std::size_t b = 0; b < t.items(); ++b) {
    for (std::int32_t i = 0; i < t.size(b); ++i) {
      const std::size_t at = t.node(b, i);
      const std::int32_t above = t.up(b, i) < 0 ? 0 : depth[t.node(b, t.up(b, i))];
      std::vector<std::uint64_t> want(words);
      for (std::int32_t a = i; a >= 0; a = t.up(b, a))
        want[static_cast<std::size_t>(a) / 64] |= std::uint64_t{1} << (a % 64);
      if (!std::equal(want.begin(), want.end(), &got[at * words])) return false;
      if (depth[at] != above + 1 || pos[at] != t.P[b] + above) return false;
    }
  }
  return true;
}

bool full_mask_is_right(assay_ctx* ctx, std::int64_t P, const Ints& tree) {
  Batch t;
  t.add(P, tree);
  const std::int64_t side = P + t.size(0);
  const Memory mask(std::vector<std::uint8_t>(static_cast<std::size_t>(side * side), 3));
  if (!done(ctx, dv_full_mask(ctx, P, t.size(0), tree.data(), mask.get()))) return false;
  const std::vector<std::uint8_t> M = mask.read();
  for (std::int64_t i = 0; i < side; ++i) {
    for (std::int64_t j = 0; j < side; ++j) {
      const bool nodes = i >= P && j >= P;
      const bool want =
          nodes ? t.sees(0, static_cast<std::int32_t>(i - P), static_cast<std::int32_t>(j - P))
                : j <= i;
      if (M[static_cast<std::size_t>(i * side + j)] != std::uint8_t{want}) return false;
    }
  }
  return true;
}

// One row of attention; `rows` are the keys seen, q, k, v and o start at this head.
bool row_is_right(const std::vector<std::size_t>& rows, std::size_t stride, std::size_t D,
                  float scale, const float* q, const float* k, const float* v, const float* o,
                  float lse) {
  std::vector<double> weight, want(D);
  double sum = 0, top = -INFINITY, size = 10;
  for (const std::size_t row : rows) {
    double dot = 0, terms = 0;
    for (std::size_t d = 0; d < D; ++d) {
      const double term = static_cast<double>(scale) * q[d] * k[row * stride + d];
      dot += term;
      terms += std::abs(term);
    }
    weight.push_back(dot);
    top = std::max(top, dot);
    size = std::max(size, terms);
  }
  for (double& w : weight) sum += w = std::exp(w - top);
  for (std::size_t j = 0; j < rows.size(); ++j) {
    for (std::size_t d = 0; d < D; ++d) want[d] += weight[j] / sum * v[rows[j] * stride + d];
  }
  const double tolerance = 3e-6 * size;
  for (std::size_t d = 0; d < D; ++d) {
    if (!(std::abs(o[d] - want[d]) <= tolerance)) return false;
  }
  return std::abs(lse - (top + std::log(sum))) <= tolerance;
}

// Node 0 of every item is full of NaN, and only nodes that do not see it are looked at.
bool attention_is_right(assay_ctx* ctx, const Batch& t, std::size_t D, float scale,
                        std::mt19937& random) {
  constexpr std::size_t kHq = 4, kHkv = 2;
  fa_params p{};
  p.size = sizeof p;
  p.dtype = ASSAY_F32;
  p.B = t.B(), p.Hq = kHq, p.Hkv = kHkv;
  p.D = p.Dv = static_cast<std::int64_t>(D);
  p.scale = scale;
  const Floats q = normals(t.nodes() * kHq * D, random);
  std::vector<Floats> k, v;
  std::vector<Memory<float>> on_device;
  std::vector<const void*> kc, vc;
  for (std::size_t b = 0; b < t.items(); ++b) {
    const auto P = static_cast<std::size_t>(t.P[b]), n = static_cast<std::size_t>(t.size(b));
    for (auto* cache : {&k, &v}) {
      cache->push_back(normals((P + n) * kHkv * D, random));
      if (n > 0) std::fill_n(cache->back().data() + P * kHkv * D, kHkv * D, NAN);
      on_device.emplace_back(cache->back());
      (cache == &k ? kc : vc).push_back(on_device.back().get());
    }
  }
  const Memory on_q(q), on_o(Floats(q.size(), NAN)), on_lse(Floats(t.nodes() * kHq, NAN));
  if (!done(ctx, dv_attention(ctx, &p, t.P.data(), t.cu.data(), t.parent.data(), on_q.get(),
                              kc.data(), vc.data(), on_o.get(), on_lse.get()))) {
    return false;
  }
  const Floats o = on_o.read(), lse = on_lse.read();
  for (std::size_t b = 0; b < t.items(); ++b) {
    for (std::int32_t i = 0; i < t.size(b); ++i) {
      if (t.sees(b, i, 0)) continue;
      std::vector<std::size_t> rows;
      for (std::int64_t j = 0; j < t.P[b] + t.size(b); ++j) {
        if (j < t.P[b] || t.sees(b, i, static_cast<std::int32_t>(j - t.P[b])))
          rows.push_back(static_cast<std::size_t>(j));
      }
      for (std::size_t h = 0; h < kHq; ++h) {
        const std::size_t at = t.node(b, i) * kHq + h, head = h / (kHq / kHkv) * D;
        if (!row_is_right(rows, kHkv * D, D, scale, &q[at * D], &k[b][head], &v[b][head],
                          &o[at * D], lse[at])) {
          return false;
        }
      }
    }
  }
  return true;
}

constexpr std::int32_t kV = 5;

// What greedy acceptance needs to know of a batch.
struct Draft {
  Ints token, eos, budget;
  Floats root, node;
};

// With five words and logits of five sizes, matches, duplicates and ties are all common.
Draft random_draft(const Batch& t, float lowest, std::mt19937& random) {
  Draft draft;
  for (std::size_t i = 0; i < t.nodes(); ++i) draft.token.push_back(below(random, kV));
  for (std::size_t b = 0; b < t.items(); ++b) {
    draft.eos.push_back(below(random, kV + 3) - 1);
    draft.budget.push_back(below(random, 7));
  }
  draft.root.resize(t.items() * kV);
  draft.node.resize(t.nodes() * kV);
  for (Floats* logits : {&draft.root, &draft.node}) {
    for (float& x : *logits) x = lowest + static_cast<float>(below(random, 5));
  }
  return draft;
}

struct Walk {
  Ints path;
  std::int32_t bonus = -1;
};

Walk walk(const Batch& t, const Draft& draft, std::size_t b, bool limited) {
  Walk found;
  std::int32_t current = -1;
  while (!limited || static_cast<std::int32_t>(found.path.size()) < draft.budget[b]) {
    const float* x = current < 0 ? &draft.root[b * kV] : &draft.node[t.node(b, current) * kV];
    const auto best = static_cast<std::int32_t>(std::max_element(x, x + kV) - x);
    std::int32_t child = current + 1;
    while (child < t.size(b) &&
           (t.up(b, child) != current || draft.token[t.node(b, child)] != best)) {
      ++child;
    }
    if (child == t.size(b)) {
      found.bonus = best;
      break;
    }
    found.path.push_back(current = child);
    if (limited && best == draft.eos[b]) break;
  }
  return found;
}

// Without limits there is neither an end of sequence nor a budget.
bool accept_is_right(assay_ctx* ctx, const Batch& t, bool limited, std::mt19937& random) {
  Draft draft = random_draft(t, limited ? 0.0f : -50.0f, random);
  std::vector<Walk> want;
  std::vector<bool> read(t.nodes());
  for (std::size_t b = 0; b < t.items(); ++b) {
    want.push_back(walk(t, draft, b, limited));
    for (const std::int32_t i : want[b].path) read[t.node(b, i)] = true;
  }
  // What nobody has to read does not matter.
  for (std::size_t i = 0; i < t.nodes(); ++i) {
    if (!read[i]) draft.node[i * kV + i % kV] = NAN;
  }
  const Memory root(draft.root), node(draft.node);
  Ints acc(t.nodes(), 99), n_acc(t.items(), 99), bonus(t.items(), 99);
  if (!done(ctx, dv_accept(ctx, t.B(), kV, t.cu.data(), t.parent.data(), draft.token.data(),
                           root.get(), node.get(), limited ? draft.eos.data() : nullptr,
                           limited ? draft.budget.data() : nullptr, nullptr, acc.data(),
                           n_acc.data(), bonus.data()))) {
    return false;
  }
  for (std::size_t b = 0; b < t.items(); ++b) {
    Ints path = want[b].path;
    if (n_acc[b] != static_cast<std::int32_t>(path.size()) || bonus[b] != want[b].bonus)
      return false;
    path.resize(static_cast<std::size_t>(t.size(b)), -1);
    if (!std::equal(path.begin(), path.end(), acc.begin() + t.cu[b])) return false;
  }
  return true;
}

// Rows of `width` numbers that say which row it was.
bool compact_is_right(assay_ctx* ctx, const Batch& t, std::size_t width, std::mt19937& random) {
  Ints acc(t.nodes(), -1), n_acc(t.items());
  std::vector<Memory<std::int64_t>> rows;
  std::vector<void*> kv;
  for (std::size_t b = 0; b < t.items(); ++b) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t r = 0; r < t.P[b] + t.size(b); ++r) numbers.insert(numbers.end(), width, r);
    for (std::int32_t i = 0; i < t.size(b); ++i) {
      if (below(random, 3) == 0) acc[t.node(b, n_acc[b]++)] = i;
    }
    rows.emplace_back(numbers);
    kv.push_back(rows.back().get());
  }
  if (!done(ctx,
            dv_compact(ctx, t.B(), t.P.data(), t.cu.data(), acc.data(), n_acc.data(),
                       static_cast<std::int64_t>(width * sizeof(std::int64_t)), 1, kv.data()))) {
    return false;
  }
  for (std::size_t b = 0; b < t.items(); ++b) {
    const std::vector<std::int64_t> got = rows[b].read();
    for (std::int64_t r = 0; r < t.P[b] + n_acc[b]; ++r) {
      const std::int64_t i = r - t.P[b];
      const std::int64_t want = i < 0 ? r : t.P[b] + acc[t.node(b, static_cast<std::int32_t>(i))];
      for (std::size_t w = 0; w < width; ++w) {
        if (got[static_cast<std::size_t>(r) * width + w] != want) return false;
      }
    }
  }
  return true;
}

// A model whose next token follows from all tokens that a row sees and where they stand.
class Model {
 public:
  static constexpr std::int32_t kWords = 23, kMostNodes = 6;

  dv_model abi() { return {sizeof(dv_model), kWords, kMostNodes, this, draft, verify, commit}; }

  static std::int32_t next(const Ints& text) {
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      state += mix(text[i], static_cast<std::int64_t>(i));
    return word(state);
  }

 private:
  struct Row {
    std::uint32_t mixed;
  };

  static std::uint32_t mix(std::int32_t token, std::int64_t position) {
    auto x = static_cast<std::uint32_t>(token * 7919 + position * 104729 + 13);
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    return x ^ x >> 13;
  }
  static std::int32_t word(std::uint32_t state) {
    return static_cast<std::int32_t>((state * 0x9e3779b1u >> 7) % kWords);
  }

  // Two branches, of which the second is right for two tokens or three.
  static std::int32_t draft(void*, std::int64_t n_prefix, const std::int32_t* prefix,
                            std::int32_t* n, std::int32_t* parent, std::int32_t* token) {
    const Ints tree{-1, -1, 0, 1, 3, 4};
    Ints text(prefix, prefix + n_prefix), right;
    for (int i = 0; i < 4; ++i) {
      right.push_back(next(text));
      text.push_back(right.back());
    }
    const auto wrong = [](std::int32_t t) { return (t + 1) % kWords; };
    const Ints tokens{wrong(right[0]),
                      right[0],
                      right[1],
                      right[1],
                      n_prefix % 2 == 0 ? right[2] : wrong(right[2]),
                      right[3]};
    *n = n_prefix % 5 == 0 ? 0 : kMostNodes;
    std::copy_n(tree.begin(), *n, parent);
    std::copy_n(tokens.begin(), *n, token);
    return ASSAY_OK;
  }

  static std::int32_t verify(void* user, std::int64_t n, const std::int32_t* token,
                             const std::int64_t* pos, std::int64_t ldm, const std::uint64_t* bits,
                             float* logits) {
    auto& cached = static_cast<Model*>(user)->cached_;
    const std::size_t old = cached.size();
    static_cast<Model*>(user)->last_ = old;
    std::vector<float> rows(static_cast<std::size_t>(n) * kWords);
    for (std::int64_t i = 0; i < n; ++i) cached.push_back(mix(token[i], pos[i]));
    for (std::int64_t i = 0; i < n; ++i) {
      std::uint32_t state = 0;
      for (std::size_t j = 0; j < old; ++j) state += cached[j];
      for (std::int64_t j = 0; j <= i; ++j) {
        if ((bits[i * ldm + j / 64] >> (j % 64) & 1) != 0)
          state += cached[old + static_cast<std::size_t>(j)];
      }
      float* const row = &rows[static_cast<std::size_t>(i) * kWords];
      std::fill_n(row, kWords, -9.0f);
      row[word(state)] = -3;
    }
    const auto bytes = rows.size() * sizeof(float);
    return cudaMemcpy(logits, rows.data(), bytes, cudaMemcpyDefault) == cudaSuccess
               ? ASSAY_OK
               : ASSAY_EINTERNAL;
  }

  static std::int32_t commit(void* user, std::int64_t n, const std::int64_t* keep) {
    auto& model = *static_cast<Model*>(user);
    std::vector<std::uint32_t> kept(
        model.cached_.begin(), model.cached_.begin() + static_cast<std::ptrdiff_t>(model.last_));
    for (std::int64_t i = 0; i < n; ++i)
      kept.push_back(model.cached_[model.last_ + static_cast<std::size_t>(keep[i])]);
    model.cached_ = kept;
    return ASSAY_OK;
  }

  std::vector<std::uint32_t> cached_;
  std::size_t last_ = 0;  // rows before the last verify
};

bool loop_is_right(assay_ctx* ctx, std::size_t n_prompt, std::size_t max_new, bool ends) {
  Ints text;
  for (std::size_t i = 0; i < n_prompt; ++i) text.push_back(static_cast<std::int32_t>(i % 7));
  const Ints prompt = text;
  Ints want;
  while (want.size() < max_new) {
    want.push_back(Model::next(text));
    text.push_back(want.back());
  }
  std::int32_t eos = -1;
  if (ends) {
    eos = want[max_new / 2];
    want.erase(std::find(want.begin(), want.end(), eos) + 1, want.end());
  }
  const auto emitted = static_cast<std::int64_t>(want.size());
  want.resize(max_new, -1);
  Model model;
  const dv_model m = model.abi();
  const dv_loop loop{sizeof(loop), eos, static_cast<std::int64_t>(n_prompt), prompt.data(),
                     static_cast<std::int64_t>(max_new)};
  Ints out(max_new, 99);
  std::int64_t n_out = -1;
  return done(ctx, dv_generate(ctx, &loop, &m, out.data(), &n_out)) && n_out == emitted &&
         out == want;
}

bool large_trees(assay_ctx* ctx, std::mt19937& random) {
  Batch masks;
  masks.add(9, chain(150));
  masks.add((std::int64_t{1} << 32) + 7, random_tree(random, 70));
  masks.add(3, Ints(130, -1));
  Batch deep;
  deep.add(40, random_tree(random, 100));
  Batch wide;
  wide.add(5, Ints(100, -1));
  return mask_is_right(ctx, masks, 4) && attention_is_right(ctx, deep, 32, 0.25f, random) &&
         accept_is_right(ctx, deep, false, random) && accept_is_right(ctx, wide, false, random);
}

bool refuses(assay_ctx* ctx) {
  Ints depth(2), parent{-1, 1};
  const std::vector<std::int64_t> P{4}, cu{0, 2};
  const Memory bits(std::vector<std::uint64_t>(2)), pos(std::vector<std::uint64_t>(2));
  const Memory depths(depth);
  return dv_mask(ctx, 1, P.data(), cu.data(), parent.data(), 1, bits.get(), depths.get(),
                 reinterpret_cast<std::int64_t*>(pos.get())) == ASSAY_EINVAL;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::mt19937 random(2024);
  for (int round = 0; round < 12; ++round) {
    const Batch t = random_batch(random);
    const std::size_t D = std::size_t{32} << round % 3;
    bool right = mask_is_right(ctx, t, 1) && accept_is_right(ctx, t, true, random) &&
                 accept_is_right(ctx, t, false, random) &&
                 compact_is_right(ctx, t, round % 2 == 0 ? 3 : 40, random);
    if (round < 4) right = right && attention_is_right(ctx, t, D, round == 3 ? 9 : 0.25f, random);
    if (!right) return 1;
  }
  const bool right = full_mask_is_right(ctx, 7, random_tree(random, 80)) &&
                     full_mask_is_right(ctx, 3, random_tree(random, 6)) &&
                     large_trees(ctx, random) && refuses(ctx) && loop_is_right(ctx, 9, 24, false) &&
                     loop_is_right(ctx, 1, 7, false) && loop_is_right(ctx, 5, 30, true);
  return right ? 0 : 1;
}
