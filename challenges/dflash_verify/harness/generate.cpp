// Inputs: trees by kind, tokens and logits with scripted or drawn greedy choices, vectors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"
#include "language_model.h"
#include "shared/score_levels.h"
#include "trusted.h"

namespace assay::dflash_verify {
namespace {

using nlohmann::json;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// The greedy token's logit. Noise stays below 3.5 in magnitude, so the gap exceeds 1.
constexpr float kPeak = 5.0f;

std::int32_t random_parent(const std::string& kind, std::int64_t i, Random& random) {
  const auto node = static_cast<std::int32_t>(i);
  if (kind == "chain") return node - 1;
  if (kind == "wide") return -1;
  if (kind == "binary") return (node + 2) / 2 - 2;
  // A spine of every fourth node, with leaves in between: a long path and many wrong turns.
  if (kind == "spine") return node < 4 ? -1 : (node / 4 - 1) * 4;
  if (kind == "random") return static_cast<std::int32_t>(random.below(i + 1)) - 1;
  throw Error(fmt::format("dflash_verify: unknown tree '{}'", kind));
}

void write_tree(const Item& item, std::uint64_t seed, std::int32_t* parent) {
  if (item.script->contains("parent")) {
    const auto& explicit_parents = item.script->at("parent");
    for (std::int64_t i = 0; i < item.n; ++i) {
      parent[i] = explicit_parents[to_size(i)];
    }
    return;
  }
  Random random(seed);
  const std::string kind = item.script->value("tree", "random");
  for (std::int64_t i = 0; i < item.n; ++i) parent[i] = random_parent(kind, i, random);
}

std::uint64_t item_seed(std::uint64_t seed, std::int64_t b) {
  return substream(seed, 1000 + static_cast<std::uint64_t>(b));
}

void write_trees(const Shape& s, std::uint64_t seed, std::int32_t* parent) {
  for (std::int64_t b = 0; b < s.B(); ++b) {
    const auto at = to_size(b);
    write_tree(s.items[at], item_seed(seed, b), parent + s.cu[at]);
  }
}

void copy_to(const BufferView& view, const std::vector<std::int64_t>& values) {
  std::copy_n(values.begin(), view.span<std::int64_t>().size(), view.as<std::int64_t>());
}

void write_prefixes(const Shape& s, const BufferView& view) {
  for (std::size_t b = 0; b < view.span<std::int64_t>().size(); ++b) {
    view.as<std::int64_t>()[b] = s.items[b].P;
  }
}

// --- attention

void fill_vectors(const Shape& s, const BufferView& view, std::uint64_t seed, float sigma) {
  if (s.dtype == ASSAY_F32) {
    fill_normal(view.span<float>(), seed, 0, sigma);
  } else {
    fill_normal_bf16(view.span<std::uint16_t>(), seed, 0, sigma);
  }
}

void set_row(const Shape& s, const BufferView& view, std::int64_t row, float value) {
  const std::int64_t width = s.Hkv * s.D;
  if (s.dtype == ASSAY_F32) {
    std::fill_n(view.as<float>() + row * width, width, value);
  } else {
    std::fill_n(view.as<std::uint16_t>() + row * width, width, float_to_bf16(value));
  }
}

// Makes the keys and values of the nodes listed in the item's script NaN, infinite or huge.
void spoil_nodes(const Shape& s, BufferViews buffers) {
  using namespace attention;
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    const json& script = *s.items[b].script;
    const std::int64_t first = s.rows[b] + s.items[b].P;
    for (const auto& [name, value] :
         {std::pair{"nan_nodes", kNan}, std::pair{"huge_nodes", 1e30f}}) {
      for (const std::int64_t node : script.value(name, std::vector<std::int64_t>{})) {
        set_row(s, buffers[kK], first + node, value);
        set_row(s, buffers[kV], first + node, value);
      }
    }
  }
}

// Makes key `row` of every item score about `score` above the others for every query: all queries
// share one large component, which only that key has.
void aim_key(const Shape& s, BufferViews buffers, std::int64_t row, float score) {
  using namespace attention;
  float* q = buffers[kQ].as<float>();
  float* k = buffers[kK].as<float>();
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    float* key = k + (s.rows[b] + row) * s.Hkv * s.D;
    for (std::int64_t h = 0; h < s.Hkv; ++h) key[h * s.D] = score / (s.scale * 4.0f);
  }
  for (std::int64_t i = 0; i < s.nodes() * s.Hq; ++i) q[i * s.D] = 4.0f;
}

void raise_scores(const Shape& s, std::uint64_t seed, BufferViews buffers) {
  using namespace attention;
  assay::attention::ScoreLevels levels(seed, s.Hkv, s.D, s.scale);
  const auto keys = static_cast<std::int64_t>(buffers[kK].span<float>().size()) / (s.Hkv * s.D);
  for (std::int64_t i = 0; i < keys * s.Hkv; ++i)
    levels.key(i % s.Hkv, buffers[kK].as<float>() + i * s.D);
  for (std::int64_t i = 0; i < s.nodes() * s.Hq; ++i)
    levels.query(i % s.Hq / (s.Hq / s.Hkv), buffers[kQ].as<float>() + i * s.D);
}

void fill_attention(const CaseSpec& spec, const Shape& s, std::uint64_t seed, BufferViews buffers) {
  using namespace attention;
  write_prefixes(s, buffers[kP]);
  copy_to(buffers[kCu], s.cu);
  copy_to(buffers[kRows], s.rows);
  write_trees(s, seed, buffers[kParent].as<std::int32_t>());
  fill_vectors(s, buffers[kQ], substream(seed, 1), spec.params.value("q_sigma", 1.0f));
  fill_vectors(s, buffers[kK], substream(seed, 2), 1.0f);
  fill_vectors(s, buffers[kV], substream(seed, 3), 1.0f);
  if (spec.params.contains("aim_row")) {
    aim_key(s, buffers, spec.params.at("aim_row"), spec.params.at("aim_score"));
  }
  if (spec.params.value("levels", false)) raise_scores(s, substream(seed, 4), buffers);
  spoil_nodes(s, buffers);
}

// --- accept

// Strictly increasing random tokens for a script's symbols 0 .. count-1, so that tokens keep the
// order of the symbols, which decides ties.
std::vector<std::int32_t> symbol_tokens(std::int32_t count, std::int32_t V, Random& random) {
  std::set<std::int32_t> tokens;
  while (static_cast<std::int32_t>(tokens.size()) < count) {
    tokens.insert(static_cast<std::int32_t>(random.below(V)));
  }
  return {tokens.begin(), tokens.end()};
}

constexpr std::int32_t kSymbols = 20;

struct AcceptInputs {
  std::int32_t* token;
  float *root_logits, *node_logits;
  std::int32_t *eos, *budget;
};

AcceptInputs accept_inputs(BufferViews buffers) {
  using namespace accept;
  return {buffers[kToken].as<std::int32_t>(), buffers[kRootLogits].as<float>(),
          buffers[kNodeLogits].as<float>(), buffers[kEos].as<std::int32_t>(),
          buffers[kBudget].as<std::int32_t>()};
}

float* logits_of(const Shape& s, const AcceptInputs& in, std::int64_t b, std::int64_t node) {
  if (node < 0) return in.root_logits + b * s.V;
  return in.node_logits + (s.cu[to_size(b)] + node) * s.V;
}

// Noise with a peak. Rows are windows into one pool of noise, so that large inputs fill at memory
// speed.
class NoisePool {
 public:
  NoisePool(std::uint64_t seed, std::int32_t V) : pool_(to_size(V) + kSpread) {
    fill_normal(pool_, seed);
  }
  void row(float* out, std::int32_t V, Random& random) const {
    const std::int64_t start = random.below(static_cast<std::int64_t>(kSpread));
    std::copy_n(pool_.data() + start, V, out);
  }

 private:
  static constexpr std::size_t kSpread = 4096;
  std::vector<float> pool_;
};

void script_item(const Shape& s, std::int64_t b, Random& random, const NoisePool& noise,
                 const AcceptInputs& in) {
  const Item& item = s.items[to_size(b)];
  const json& script = *item.script;
  const auto tokens = symbol_tokens(kSymbols, s.V, random);
  const auto token_of = [&](const json& symbol) { return tokens.at(symbol.get<std::size_t>()); };
  for (std::int64_t i = 0; i < item.n; ++i) {
    in.token[s.cu[to_size(b)] + i] = token_of(script.at("token")[to_size(i)]);
  }
  for (std::int64_t i = -1; i < item.n; ++i) {
    float* row = logits_of(s, in, b, i);
    noise.row(row, s.V, random);
    const json& best = script.at("greedy")[to_size(i + 1)];
    if (best.is_array()) {
      for (const json& symbol : best) row[token_of(symbol)] = kPeak;
    } else if (best.is_string()) {
      const auto place = random.below(s.V);
      row[best == "nan_first" ? 0 : best == "nan_last" ? s.V - 1 : place] = kNan;
    } else {
      row[token_of(best)] = kPeak;
    }
  }
  if (in.eos != nullptr) in.eos[b] = script.contains("eos") ? token_of(script.at("eos")) : -1;
  if (in.budget != nullptr) in.budget[b] = script.value("budget", 1 << 20);
}

// Raises two tokens above all others in a row of noise whose scale and level are drawn. Neither the
// value of a logit nor a look at a few of them tells which is the largest: a rival may be as high
// as a winner elsewhere, so the row has to be searched. The gap far exceeds any rounding.
void raise(std::int32_t winner, std::int32_t rival, float* row, std::int32_t V, Random& random) {
  const auto scale = static_cast<float>(0.5 + 1.5 * random.uniform()),
             level = static_cast<float>(6 * random.uniform() - 3);
  float most = -std::numeric_limits<float>::infinity();
  for (std::int32_t v = 0; v < V; ++v) {
    row[v] = scale * row[v] + level;
    most = std::max(most, row[v]);
  }
  const auto lead = static_cast<float>(0.4 + 0.6 * random.uniform()),
             gap = static_cast<float>(0.01 + 0.3 * random.uniform());
  row[rival] = most + scale * (lead - gap);
  row[winner] = most + scale * lead;
}

// Random tokens; siblings mostly differ. At the hit rate, each context's greedy token is that of
// one of its children; otherwise that child is the runner-up.
void random_item(const Shape& s, std::int64_t b, Random& random, const NoisePool& noise,
                 const std::int32_t* parent, const AcceptInputs& in) {
  const auto at = to_size(b);
  const Item& item = s.items[at];
  const double hit = item.script->value("hit", 0.8);
  const std::string right = item.script->value("right", "any");
  parent += s.cu[at];
  std::int32_t* token = in.token + s.cu[at];
  std::vector<std::int32_t> best(to_size(item.n) + 1, -1);
  std::vector<std::int32_t> children(best.size(), 0);
  for (std::int64_t i = 0; i < item.n; ++i) {
    token[i] = static_cast<std::int32_t>(random.below(s.V));
    const auto p = to_size(parent[i] + 1);
    // Unless the script names one, every child is equally likely to be right (reservoir sampling).
    const bool chosen = right == "first"  ? children[p] == 0
                        : right == "last" ? true
                                          : random.below(children[p] + 1) == 0;
    ++children[p];
    if (chosen) best[p] = token[i];
  }
  for (std::int64_t i = -1; i < item.n; ++i) {
    std::int32_t winner = best[to_size(i + 1)];
    auto rival = static_cast<std::int32_t>(random.below(s.V));
    if (winner < 0 || random.uniform() >= hit) {
      if (winner >= 0) rival = winner;
      winner = static_cast<std::int32_t>(random.below(s.V));
    }
    float* row = logits_of(s, in, b, i);
    // With levels, the largest logit is one of many equal ones.
    if (const auto levels = item.script->value("levels", std::int64_t{0}); levels > 0) {
      for (std::int32_t v = 0; v < s.V; ++v) row[v] = static_cast<float>(random.below(levels));
      row[winner] = static_cast<float>(levels - 1);
    } else {
      noise.row(row, s.V, random);
      raise(winner, rival, row, s.V, random);
    }
  }
  const bool ends = item.n > 0 && item.script->value("random_eos", false);
  if (in.eos != nullptr) in.eos[b] = ends ? token[random.below(item.n)] : -1;
  const bool limited = item.script->value("random_budget", false);
  if (in.budget != nullptr) {
    in.budget[b] = limited ? static_cast<std::int32_t>(random.below(6)) : 1 << 20;
  }
}

// softmax of normals with the given spread, as float.
void random_distribution(float* out, std::int32_t V, std::uint64_t seed) {
  fill_normal({out, to_size(V)}, seed, 0, 1.2f);
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += std::exp(static_cast<double>(out[j]));
  for (std::int32_t j = 0; j < V; ++j) {
    out[j] = static_cast<float>(std::exp(static_cast<double>(out[j])) / sum);
  }
}

std::int32_t draw(const std::vector<double>& weights, double u) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    sum += weights[j];
    if (sum > u * total) return static_cast<std::int32_t>(j);
  }
  return static_cast<std::int32_t>(weights.size()) - 1;
}

// The tokens of the children of one context.
class ChildTokens {
 public:
  ChildTokens(const Shape& s, const float* logits, const float* q)
      : mode_(s.sampling), weights_(to_size(s.V)) {
    for (std::int32_t j = 0; j < s.V; ++j) {
      // Mode A: the target's own likeliest tokens, best first, as a good draft would have them.
      weights_[to_size(j)] =
          mode_ == DV_SAMPLE_TREE ? std::exp(static_cast<double>(logits[j])) : q[j];
    }
  }

  std::int32_t next(Random& random) {
    std::int32_t token = 0;
    if (mode_ == DV_SAMPLE_TREE) {
      token = static_cast<std::int32_t>(std::max_element(weights_.begin(), weights_.end()) -
                                        weights_.begin());
    } else {
      token = draw(weights_, random.uniform());
    }
    if (mode_ != DV_SAMPLE_IID) weights_[to_size(token)] = 0;
    return token;
  }

 private:
  std::int32_t mode_;
  std::vector<double> weights_;
};

// The target's logits after a context and, unless `q` is null, the distribution that its children
// are drawn from.
void random_context(const Shape& s, std::uint64_t seed, float* logits, float* q) {
  fill_normal({logits, to_size(s.V)}, seed, 0, 1.5f);
  if (q != nullptr) random_distribution(q, s.V, seed + 1);
}

void fill_sampling(const CaseSpec& spec, const Shape& s, std::uint64_t seed, BufferViews buffers) {
  using namespace accept;
  const AcceptInputs in = accept_inputs(buffers);
  const std::int32_t* parent = buffers[kParent].as<std::int32_t>();
  float* root_q = buffers[kRootQ].as<float>();
  float* node_q = buffers[kNodeQ].as<float>();
  // `shared`: every item has the same two contexts, so that outputs can be counted together.
  const bool shared = spec.params.value("shared", false);
  std::vector<float> common(to_size(4 * s.V));
  float* const parts = common.data();
  for (int c = 0; c < 2; ++c) {
    random_context(s, substream(seed, c == 0 ? 7 : 8), parts + 2 * c * s.V,
                   parts + (2 * c + 1) * s.V);
  }
  fill_uniform(buffers[kUniform].span<float>(), substream(seed, 5), 0.0f, 1.0f);
  parallel_for(s.B(), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const auto at = to_size(b);
      const std::int64_t n = s.items[at].n;
      Random random(item_seed(substream(seed, 6), b));
      std::vector<ChildTokens> tokens;
      for (std::int64_t i = -1; i < n; ++i) {
        float* logits = logits_of(s, in, b, i);
        float* const all = i < 0 ? root_q : node_q;
        float* q = all == nullptr ? nullptr : all + (i < 0 ? b : s.cu[at] + i) * s.V;
        if (shared) {
          const float* from = parts + (i < 0 ? 0 : 2 * s.V);
          std::copy_n(from, s.V, logits);
          if (q != nullptr) std::copy_n(from + s.V, s.V, q);
        } else {
          random_context(s, random.next(), logits, q);
        }
        tokens.emplace_back(s, logits, q);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t p = parent[s.cu[at] + i];
        in.token[s.cu[at] + i] = tokens[to_size(p + 1)].next(random);
      }
      if (in.eos != nullptr) in.eos[b] = -1;
      if (in.budget != nullptr) in.budget[b] = 1 << 20;
    }
  });
}

// Shifts all logits of the items whose script says so. Neither the largest nor the softmax changes.
void offset_logits(const Shape& s, const AcceptInputs& in) {
  for (std::int64_t b = 0; b < s.B(); ++b) {
    const Item& item = s.items[to_size(b)];
    const float offset = item.script->value("offset", 0.0f);
    if (offset == 0) continue;
    for (std::int64_t i = -1; i < item.n; ++i) {
      float* row = logits_of(s, in, b, i);
      for (std::int32_t v = 0; v < s.V; ++v) row[v] += offset;
    }
  }
}

void fill_accept(const CaseSpec& spec, const Shape& s, std::uint64_t seed, BufferViews buffers) {
  using namespace accept;
  copy_to(buffers[kCu], s.cu);
  write_trees(s, seed, buffers[kParent].as<std::int32_t>());
  const AcceptInputs in = accept_inputs(buffers);
  if (s.sampling != DV_GREEDY) {
    fill_sampling(spec, s, seed, buffers);
    return offset_logits(s, in);
  }
  if (s.V == 0) return;
  const NoisePool noise(substream(seed, 4), s.V);
  parallel_for(s.B(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      Random random(item_seed(substream(seed, 6), b));
      if (s.items[to_size(b)].script->contains("greedy")) {
        script_item(s, b, random, noise, in);
      } else {
        random_item(s, b, random, noise, buffers[kParent].as<std::int32_t>(), in);
      }
    }
  });
  offset_logits(s, in);
}

// --- compact

void fill_compact(const Shape& s, std::uint64_t seed, BufferViews buffers) {
  using namespace compact;
  write_prefixes(s, buffers[kP]);
  copy_to(buffers[kCu], s.cu);
  std::vector<std::int64_t> rows{0};
  Random random(substream(seed, 1));
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    const Item& item = s.items[b];
    for (std::int32_t c = 0; c < s.caches; ++c) rows.push_back(rows.back() + item.P + item.n);
    std::vector<std::int32_t> path;
    if (item.script->contains("path")) {
      path = item.script->at("path").get<std::vector<std::int32_t>>();
    } else {
      for (std::int32_t i = 0; i < item.n; ++i) {
        if (random.uniform() < 0.4) path.push_back(i);
      }
    }
    auto* acc = buffers[kAccNode].as<std::int32_t>() + s.cu[b];
    std::fill_n(acc, item.n, -1);
    std::copy(path.begin(), path.end(), acc);
    buffers[kNAcc].as<std::int32_t>()[b] = static_cast<std::int32_t>(path.size());
  }
  copy_to(buffers[kRows], rows);
  auto* kv = buffers[kKv].as<std::uint8_t>();
  for (std::size_t i = 0; i < buffers[kKv].bytes; ++i) {
    kv[i] = static_cast<std::uint8_t>(random.next() >> 56);
  }
}

// --- generate

void fill_generate(const Shape& s, const Seeds& seeds, BufferViews buffers) {
  const std::span<std::int32_t> prompt = buffers[generate::kPrompt].span<std::int32_t>();
  Random random(seeds.inputs);
  for (std::int32_t& token : prompt) token = static_cast<std::int32_t>(random.below(s.V));
  *buffers[generate::kModelSeed].as<std::uint64_t>() = seeds.judging;
}

// What a case of a rejected call corrupts: "corrupt": [[buffer, index, value, type], ...].
void corrupt(const CaseSpec& spec, BufferViews buffers) {
  for (const json& change : spec.params.value("corrupt", json::array())) {
    const auto handle = change.at(0).get<std::size_t>();
    const auto index = change.at(1).get<std::size_t>();
    if (change.at(3) == "i64") {
      buffers[handle].span<std::int64_t>()[index] = change.at(2);
    } else if (change.at(3) == "f32") {
      buffers[handle].span<float>()[index] = change.at(2);
    } else {
      buffers[handle].span<std::int32_t>()[index] = change.at(2);
    }
  }
}

}  // namespace

LanguageModel model_of(const CaseSpec& spec, BufferViews buffers) {
  const json& j = spec.params;
  LanguageModel model;
  model.hash = KeyedHash(*buffers[generate::kModelSeed].as<std::uint64_t>());
  model.V = j.at("V");
  model.max_nodes = j.value("max_nodes", 0);
  // Twice what a right answer needs, so that a wrong one learns what is wrong with its text.
  model.most_rows = 2 * (j.at("n_prompt").get<std::int64_t>() +
                         j.at("max_new").get<std::int64_t>() + model.max_nodes + 1);
  model.eos_rate = j.value("eos_rate", 0.0);
  model.offset = j.value("offset", 0.0f);
  model.hit_rate = j.value("hit", 0.8);
  const json fail = j.value("fail", json::object());
  model.fail_at = {fail.value("draft", 0), fail.value("verify", 0), fail.value("commit", 0)};
  const std::string style = j.value("draft", "random");
  model.style = style == "chain"    ? DraftStyle::chain
                : style == "binary" ? DraftStyle::binary
                : style == "none"   ? DraftStyle::none
                                    : DraftStyle::random;
  return model;
}

void generate_inputs(const CaseSpec& spec, const Shape& s, const Seeds& seeds,
                     BufferViews buffers) {
  const std::uint64_t seed = seeds.inputs;
  switch (s.entry) {
    case kMask:
      write_prefixes(s, buffers[mask::kP]);
      copy_to(buffers[mask::kCu], s.cu);
      write_trees(s, seed, buffers[mask::kParent].as<std::int32_t>());
      break;
    case kFullMask: write_trees(s, seed, buffers[full_mask::kParent].as<std::int32_t>()); break;
    case kAttention: fill_attention(spec, s, seed, buffers); break;
    case kAccept: fill_accept(spec, s, seed, buffers); break;
    case kCompact: fill_compact(s, seed, buffers); break;
    case kGenerate: fill_generate(s, seeds, buffers); break;
  }
  corrupt(spec, buffers);
}

}  // namespace assay::dflash_verify
