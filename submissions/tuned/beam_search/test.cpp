// The entrant's own tests: beams so wide that nothing is pruned, against all texts there are; then
// ties, a long greedy search and logits. Returns 0 if the implementation linked with it is
// accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

using Text = std::vector<std::int32_t>;

struct Model {
  std::int32_t V, eos;
  bool equal = false;
  float offset = 0;
  std::vector<Text> known;
  std::set<std::pair<std::int64_t, std::int32_t>> asked;
  bool misused = false;

  // Multiples of 2^-12 between -4 and 0; with an offset of -8 sums outgrow a float soon.
  float value(const Text& text, std::int32_t v) const {
    if (equal) return -1;
    std::uint32_t h = 97;
    for (const std::int32_t t : text)
      h = (h ^ static_cast<std::uint32_t>(t + 1)) * 2654435761u ^ h >> 13;
    h = (h ^ static_cast<std::uint32_t>(v + 100)) * 0x85ebca6bu;
    return offset - static_cast<float>((h >> 11) % 16384) / 4096.0f;
  }
};

int step(void* user, assay_ctx*, std::int32_t n, const std::int32_t*, const std::int64_t* parent,
         const std::int32_t* token, float* out, std::int64_t* state) {
  auto& m = *static_cast<Model*>(user);
  for (std::int32_t i = 0; i < n; ++i) {
    Text text;
    m.misused |= parent[i] < -1 || parent[i] >= static_cast<std::int64_t>(m.known.size()) ||
                 !m.asked.insert({parent[i], parent[i] < 0 ? 0 : token[i]}).second;
    if (!m.misused && parent[i] >= 0) {
      text = m.known[static_cast<std::size_t>(parent[i])];
      m.misused |= token[i] < 0 || token[i] >= m.V || token[i] == m.eos;
      text.push_back(token[i]);
    }
    if (m.misused) return ASSAY_EINVAL;
    for (std::int32_t v = 0; v < m.V; ++v) out[std::int64_t{i} * m.V + v] = m.value(text, v);
    state[i] = static_cast<std::int64_t>(m.known.size());
    m.known.push_back(text);
  }
  return ASSAY_OK;
}

struct Found {
  int status;
  std::vector<Text> texts;
  std::vector<double> acc, score;
  std::vector<std::int32_t> finished;
};

Found search(assay_ctx* ctx, Model& m, std::int32_t K, std::int32_t T, double alpha,
             std::int32_t kind = BS_LOG_PROBS) {
  const std::vector<std::int32_t> prompt(40, 0);
  const std::int32_t prompt_len = 40, *prompts = prompt.data();
  const assay_lm lm{sizeof(assay_lm), m.V, kind, &m, &step};
  const bs_params p{sizeof(bs_params), 1, K, T, m.eos, alpha, 0, 0, &prompt_len, &prompts, 0, 0};
  const auto k = static_cast<std::size_t>(K), t = static_cast<std::size_t>(T);
  std::vector<std::int32_t> seq(k * t), len(k);
  Found f{0, {}, std::vector<double>(k), std::vector<double>(k), std::vector<std::int32_t>(k)};
  std::int32_t n = 0;
  f.status = beam_search(ctx, &p, &lm, seq.data(), len.data(), f.acc.data(), f.score.data(),
                         f.finished.data(), &n);
  for (std::size_t i = 0; f.status == ASSAY_OK && i < static_cast<std::size_t>(std::clamp(n, 0, K));
       ++i) {
    f.texts.emplace_back(
        seq.begin() + static_cast<std::ptrdiff_t>(i * t),
        seq.begin() + static_cast<std::ptrdiff_t>(i * t) + std::clamp(len[i], 0, T));
  }
  return f;
}

// Every text that a beam can be: ended by eos, or as long as allowed.
void all_texts(const Model& m, std::int32_t T, Text& text, double acc,
               std::vector<std::pair<double, Text>>& out, double alpha) {
  const bool ended = !text.empty() && text.back() == m.eos;
  if (ended || static_cast<std::int32_t>(text.size()) == T) {
    return out.emplace_back(acc / std::pow(static_cast<double>(text.size()), alpha), text), void();
  }
  for (std::int32_t v = 0; v < m.V; ++v) {
    const double next = acc + static_cast<double>(m.value(text, v));
    text.push_back(v);
    all_texts(m, T, text, next, out, alpha);
    text.pop_back();
  }
}

bool finds_all(assay_ctx* ctx, std::int32_t V, std::int32_t T, double alpha) {
  Model m{V, V - 1};
  std::vector<std::pair<double, Text>> all;
  Text text;
  all_texts(m, T, text, 0, all, alpha);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const Found f = search(ctx, m, static_cast<std::int32_t>(all.size()) + 5, T, alpha);
  if (f.status != ASSAY_OK || m.misused || f.texts.size() != all.size()) return false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::abs(f.score[i] - all[i].first) > 1e-9) return false;
    const bool tied = (i > 0 && all[i - 1].first == all[i].first) ||
                      (i + 1 < all.size() && all[i + 1].first == all[i].first);
    if (!tied &&
        (f.texts[i] != all[i].second || f.finished[i] != (all[i].second.back() == m.eos ? 1 : 0)))
      return false;
  }
  return true;
}

bool breaks_ties(assay_ctx* ctx) {
  Model m{50, -1, true};
  const Found f = search(ctx, m, 4, 3, 0.5);
  for (std::int32_t i = 0; i < 4; ++i) {
    if (f.status != ASSAY_OK || f.texts.size() != 4 ||
        f.texts[static_cast<std::size_t>(i)] != Text{0, 0, i})
      return false;
  }
  return true;
}

bool adds_exactly(assay_ctx* ctx) {
  Model m{7, -1, false, -8};
  Text text;
  double acc = 0;
  for (int t = 0; t < 900; ++t) {
    std::int32_t best = 0;
    for (std::int32_t v = 1; v < 7; ++v) best = m.value(text, v) > m.value(text, best) ? v : best;
    acc += static_cast<double>(m.value(text, best));
    text.push_back(best);
  }
  const Found f = search(ctx, m, 1, 900, 0.3);
  return f.status == ASSAY_OK && f.texts.size() == 1 && f.texts[0] == text && f.acc[0] == acc;
}

bool normalises_logits(assay_ctx* ctx) {
  Model m{5, -1, true};  // equal logits: each token has probability 1/5, whatever is added to them
  const Found f = search(ctx, m, 3, 4, 0.0, BS_LOGITS);
  return f.status == ASSAY_OK && f.texts.size() == 3 &&
         std::abs(f.acc[0] + 4 * std::log(5.0)) < 1e-4;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  for (const double alpha : {0.0, 0.6, -0.7, 2.0}) {
    if (!finds_all(ctx, 3, 4, alpha) || !finds_all(ctx, 5, 3, alpha) ||
        !finds_all(ctx, 2, 6, alpha))
      return 1;
  }
  return breaks_ties(ctx) && adds_exactly(ctx) && normalises_logits(ctx) ? 0 : 1;
}
