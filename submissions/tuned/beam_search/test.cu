// The entrant's own tests on a device: searches of random models against a plain search on the
// host, with ties, ends, tokens of probability 0, wide beams, large vocabularies and logits far
// from 0. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

using Text = std::vector<std::int32_t>;
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

struct Case {
  std::int32_t B, K, V, T, eos;
  double alpha = 0.6;
  bool coarse = false;     // ties are common
  bool dead_ends = false;  // many tokens have probability 0
  bool logits = false;
  float offset = 0;          // of logits
  std::int32_t likely = -1;  // tokens from here on are
};

// What follows a text: multiples of 2^-12 or of 1/2.
float value_of(const Case& c, std::int32_t item, const Text& text, std::int32_t v) {
  auto h = static_cast<std::uint32_t>(item) * 31u + 97u;
  for (const std::int32_t t : text) {
    h = (h ^ static_cast<std::uint32_t>(t + 1)) * 2654435761u;
    h ^= h >> 13;
  }
  h = (h ^ static_cast<std::uint32_t>(v + 100)) * 0x85ebca6bu;
  h ^= h >> 15;
  h *= 0x9e3779b1u;
  if (c.dead_ends && h % 5 < 3) return kImpossible;
  const float below = v < c.likely ? 5.0f : 0.0f;
  if (c.coarse) return -static_cast<float>((h >> 8) % 6) / 2 - below;
  return c.offset - static_cast<float>((h >> 8) % 16384) / 4096 - below;
}

std::vector<double> log_probs(const Case& c, std::int32_t item, const Text& text) {
  std::vector<double> x;
  for (std::int32_t v = 0; v < c.V; ++v)
    x.push_back(static_cast<double>(value_of(c, item, text, v)));
  if (!c.logits) return x;
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double y : x) sum += std::exp(y - top);
  for (double& y : x) y -= top + std::log(sum);
  return x;
}

struct Beam {
  Text text;
  double acc = 0, score = 0;
  bool finished = false;
  int order = 0;
};

// The answer of one item, best first.
std::vector<Beam> search(const Case& c, std::int32_t item) {
  struct Candidate {
    Beam beam;
    std::size_t parent;
    std::int32_t token;  // -1: a finished beam as it is
    bool before(const Candidate& other) const {
      if (beam.score != other.beam.score) return beam.score > other.beam.score;
      if ((token < 0) != (other.token < 0)) return token < 0;
      return std::pair(parent, token) < std::pair(other.parent, other.token);
    }
  };
  std::vector<Beam> list(1);
  int ended = 0;
  for (std::int32_t step = 1; step <= c.T; ++step) {
    std::vector<Candidate> pool;
    for (std::size_t place = 0; place < list.size(); ++place) {
      if (list[place].finished) {
        pool.push_back({list[place], place, -1});
        continue;
      }
      const std::vector<double> x = log_probs(c, item, list[place].text);
      for (std::int32_t v = 0; v < c.V; ++v) {
        if (!(x[static_cast<std::size_t>(v)] > -INFINITY)) continue;
        Beam beam{{}, list[place].acc + x[static_cast<std::size_t>(v)]};
        beam.score = beam.acc / std::pow(static_cast<double>(step), c.alpha);
        pool.push_back({beam, place, v});
      }
    }
    const auto kept = std::min(static_cast<std::size_t>(c.K), pool.size());
    std::partial_sort(pool.begin(), pool.begin() + static_cast<std::ptrdiff_t>(kept), pool.end(),
                      [](const Candidate& a, const Candidate& b) { return a.before(b); });
    std::vector<Beam> next;
    for (std::size_t k = 0; k < kept; ++k) {
      Beam beam = pool[k].beam;
      if (pool[k].token >= 0) {
        beam.text = list[pool[k].parent].text;
        beam.text.push_back(pool[k].token);
        beam.finished = pool[k].token == c.eos;
        if (beam.finished) beam.order = ended++;
      }
      next.push_back(beam);
    }
    list = next;
  }
  std::stable_sort(list.begin(), list.end(), [](const Beam& a, const Beam& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.finished != b.finished) return a.finished;
    return a.finished && a.order < b.order;
  });
  return list;
}

// The model as the search sees it.
struct Model {
  const Case& c;
  std::vector<std::pair<std::int32_t, Text>> known;
  std::set<std::pair<std::int64_t, std::int32_t>> asked;
  std::vector<std::vector<float>> rows;  // live until the stream has copied them
  bool misused = false;

  bool knows(std::int32_t item, std::int64_t parent, std::int32_t token) const {
    if (parent == -1) return item >= 0 && item < c.B;
    return parent >= 0 && parent < static_cast<std::int64_t>(known.size()) && token >= 0 &&
           token < c.V && token != c.eos && known[static_cast<std::size_t>(parent)].first == item;
  }

  int step(assay_ctx* ctx, std::int32_t n, const std::int32_t* item, const std::int64_t* parent,
           const std::int32_t* token, float* out, std::int64_t* state) {
    std::vector<float> values;
    for (std::int32_t i = 0; i < n; ++i) {
      misused = misused || !knows(item[i], parent[i], token[i]) ||
                !asked.insert({parent[i], parent[i] < 0 ? item[i] : token[i]}).second;
      if (misused) return ASSAY_EINVAL;
      Text text;
      if (parent[i] >= 0) {
        text = known[static_cast<std::size_t>(parent[i])].second;
        text.push_back(token[i]);
      }
      for (std::int32_t v = 0; v < c.V; ++v) values.push_back(value_of(c, item[i], text, v));
      state[i] = static_cast<std::int64_t>(known.size());
      known.emplace_back(item[i], text);
    }
    rows.push_back(values);
    return cudaMemcpyAsync(out, rows.back().data(), values.size() * sizeof(float),
                           cudaMemcpyDefault, static_cast<cudaStream_t>(ctx->stream)) == cudaSuccess
               ? ASSAY_OK
               : ASSAY_EINTERNAL;
  }
};

bool near(double got, double want) { return std::abs(got - want) <= 1e-9 * (1 + std::abs(want)); }

bool passes(assay_ctx* ctx, const Case& c) {
  Model model{c, {}, {}, {}};
  const assay_lm lm{
      sizeof(assay_lm), c.V, c.logits ? BS_LOGITS : BS_LOG_PROBS, &model,
      [](void* user, assay_ctx* of, std::int32_t n, const std::int32_t* item,
         const std::int64_t* parent, const std::int32_t* token, float* out, std::int64_t* state) {
        return static_cast<Model*>(user)->step(of, n, item, parent, token, out, state);
      }};
  const auto B = static_cast<std::size_t>(c.B), K = static_cast<std::size_t>(c.K),
             T = static_cast<std::size_t>(c.T);
  std::vector<std::int32_t> prompt_len(B);
  for (std::size_t b = 0; b < B; ++b) prompt_len[b] = static_cast<std::int32_t>(30 * b);
  const std::vector<std::int32_t> prompt(30 * B + 1);
  const std::vector<const std::int32_t*> prompts(B, prompt.data());
  const bs_params p{sizeof(bs_params), c.B, c.K, c.T, c.eos, c.alpha, 0, 0, prompt_len.data(),
                    prompts.data(),    0,   0};
  std::vector<std::int32_t> seq(B * K * T, 99), len(B * K), finished(B * K), n_out(B);
  std::vector<double> acc(B * K), score(B * K);
  if (beam_search(ctx, &p, &lm, seq.data(), len.data(), acc.data(), score.data(), finished.data(),
                  n_out.data()) != ASSAY_OK ||
      model.misused) {
    return false;
  }
  for (std::size_t b = 0; b < B; ++b) {
    const std::vector<Beam> want = search(c, static_cast<std::int32_t>(b));
    if (n_out[b] != static_cast<std::int32_t>(want.size())) return false;
    for (std::size_t k = 0; k < K; ++k) {
      const std::size_t at = b * K + k;
      Text text = k < want.size() ? want[k].text : Text{};
      const std::size_t length = text.size();
      text.resize(T, -1);
      if (!std::equal(text.begin(), text.end(), seq.data() + at * T)) return false;
      if (k >= want.size()) continue;
      if (len[at] != static_cast<std::int32_t>(length) || !near(acc[at], want[k].acc) ||
          !near(score[at], want[k].score) || finished[at] != (want[k].finished ? 1 : 0))
        return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  Case ties{2, 5, 30, 6, 2, 0}, greedy{2, 1, 40, 12, 9, 0}, dead{3, 4, 9, 6, 1, 0.5};
  ties.coarse = greedy.coarse = true;
  dead.dead_ends = true;
  Case high{1, 3, 33, 6, 3}, low{2, 3, 33, 6, 3}, large{1, 2, 66000, 3, 7, 0};
  high.logits = low.logits = true;
  high.offset = 1000;
  low.offset = -1000;
  large.likely = 65600;
  const std::vector<Case> cases{
      {2, 4, 20, 8, 5},
      {3, 3, 7, 10, 1, 0},
      {2, 3, 12, 9, 3, 2.0},
      {2, 4, 9, 8, 0, -0.7},
      {1, 2, 6, 40, -1, 0.3},
      {2, 8, 3, 5, 2, 0.5},
      {1, 40, 63, 4, 62},
      {1, 5, 65, 5, 64, 1},
      {6, 3, 11, 8, 4, 1.0},
      {2, 3, 1, 4, -1, 0.6},
      ties,
      greedy,
      dead,
      high,
      low,
      large,
  };
  for (const Case& c : cases) {
    if (!passes(ctx, c)) return 1;
  }
  return 0;
}
