// The entrant's own tests: small searches against one that sorts the whole pool. Returns 0 if the
// implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "abi.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Text = std::vector<std::int32_t>;

struct Setup {
  std::int32_t B, K, V, max_new, eos;
  double alpha;
  std::uint32_t eos_one_in = 4;  // rows where eos is likely
  std::uint32_t levels = 4096;   // values of a row: few give ties
  std::uint32_t dead_of_16 = 0;  // sixteenths of the tokens that are -inf
  std::int32_t end_at = 0;       // item b allows nothing but eos after end_at * (b + 1) - 1 tokens
  float offset = 0;              // of logits
  std::int32_t kind = BS_LOG_PROBS;
};

std::uint32_t hash(std::uint32_t h, std::uint32_t x) {
  h = (h ^ x) * 0x01000193u;
  h ^= h >> 15;
  return h * 0x85ebca6bu ^ h >> 13;
}

// What follows a text; values are multiples of 1/4096.
void row_after(const Setup& s, std::int32_t item, const Text& text, float* out) {
  std::uint32_t h = 2166136261u + static_cast<std::uint32_t>(item) * 977;
  for (const std::int32_t t : text) h = hash(h, static_cast<std::uint32_t>(t) + 1);
  const bool ends =
      s.end_at > 0 && static_cast<std::int32_t>(text.size()) + 1 == s.end_at * (item + 1);
  for (std::int32_t v = 0; v < s.V; ++v) {
    const std::uint32_t x = hash(hash(h, static_cast<std::uint32_t>(v) + 77), 3);
    out[v] = s.offset - static_cast<float>(1 + x % s.levels) *
                            (8192.0f / static_cast<float>(s.levels)) / 4096.0f;
    const bool dead = (x >> 8) % 16 < s.dead_of_16 || ends;
    if (dead) out[v] = -std::numeric_limits<float>::infinity();
  }
  if (s.eos >= 0)
    out[s.eos] = s.offset -
                 static_cast<float>(h % s.eos_one_in == 0 || ends ? 200 + h % 300 : 9000) / 4096.0f;
}

struct Model {
  Setup s;
  std::vector<std::pair<std::int32_t, Text>> known;
  std::set<std::pair<std::int32_t, Text>> asked;
  std::int64_t calls = 0, rows = 0;
  bool misused = false;
};

int step(void* user, assay_ctx*, std::int32_t n, const std::int32_t* item,
         const std::int64_t* parent, const std::int32_t* token, float* out, std::int64_t* state) {
  auto& m = *static_cast<Model*>(user);
  ++m.calls;
  m.rows += n;
  m.misused |= n < 1 || n > m.s.B * m.s.K;
  if (m.misused) return ASSAY_EINVAL;
  for (std::int32_t i = 0; i < n; ++i) {
    Text text;
    m.misused |= item[i] < 0 || item[i] >= m.s.B || parent[i] < -1 ||
                 parent[i] >= static_cast<std::int64_t>(m.known.size());
    if (m.misused) return ASSAY_EINVAL;
    if (parent[i] >= 0) {
      const auto& from = m.known[static_cast<std::size_t>(parent[i])];
      m.misused |=
          from.first != item[i] || token[i] < 0 || token[i] >= m.s.V || token[i] == m.s.eos;
      if (m.misused) return ASSAY_EINVAL;
      std::vector<float> row(static_cast<std::size_t>(m.s.V));
      row_after(m.s, item[i], from.second, row.data());
      m.misused |= std::isinf(row[static_cast<std::size_t>(token[i])]);
      text = from.second;
      text.push_back(token[i]);
    }
    m.misused |= !m.asked.insert({item[i], text}).second;
    if (m.misused) return ASSAY_EINVAL;
    row_after(m.s, item[i], text, out + std::int64_t{i} * m.s.V);
    state[i] = static_cast<std::int64_t>(m.known.size());
    m.known.emplace_back(item[i], text);
  }
  return ASSAY_OK;
}

struct Beam {
  Text text;
  double acc = 0, score = 0;
  bool finished = false, old = false;
  std::size_t parent = 0, order = 0;
};

double score_of(const Setup& s, double acc, std::size_t len) {
  return acc / std::pow(static_cast<double>(len), s.alpha);
}

std::vector<Beam> search(const Setup& s, std::int32_t item, std::int64_t& rows,
                         std::int64_t& steps) {
  std::vector<Beam> list(1);
  std::vector<float> row(static_cast<std::size_t>(s.V));
  std::size_t finished = 0;
  for (std::int32_t t = 1; t <= s.max_new; ++t) {
    std::vector<Beam> pool;
    std::int64_t active = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Beam next = list[i];
      next.parent = i;
      next.old = list[i].finished;
      if (list[i].finished) {
        pool.push_back(next);
        continue;
      }
      ++active;
      row_after(s, item, list[i].text, row.data());
      double shift = 0;
      if (s.kind == BS_LOGITS) {
        for (const float x : row)
          shift += std::exp(static_cast<double>(x) - static_cast<double>(s.offset));
        shift = std::log(shift) + static_cast<double>(s.offset);
      }
      next.text.push_back(0);
      for (std::int32_t v = 0; v < s.V; ++v) {
        if (std::isinf(row[static_cast<std::size_t>(v)])) continue;
        next.text.back() = v;
        next.acc = list[i].acc + (static_cast<double>(row[static_cast<std::size_t>(v)]) - shift);
        next.score = score_of(s, next.acc, next.text.size());
        next.finished = v == s.eos;
        pool.push_back(next);
      }
    }
    if (active == 0) break;
    rows += active;
    ++steps;
    std::sort(pool.begin(), pool.end(), [](const Beam& a, const Beam& b) {
      if (a.score != b.score) return a.score > b.score;
      if (a.old != b.old) return a.old;
      return a.parent != b.parent ? a.parent < b.parent : a.text.back() < b.text.back();
    });
    if (pool.size() > static_cast<std::size_t>(s.K)) pool.resize(static_cast<std::size_t>(s.K));
    for (Beam& b : pool) b.order = b.finished && !b.old ? finished++ : b.order;
    list = pool;
  }
  std::stable_sort(list.begin(), list.end(), [](const Beam& a, const Beam& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.finished != b.finished) return a.finished;
    return a.finished && a.order < b.order;
  });
  return list;
}

bool near(double got, double want, double tolerance) {
  return std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

bool passes(assay_ctx* ctx, const Setup& s) {
  const auto beams = static_cast<std::size_t>(s.B * s.K), T = static_cast<std::size_t>(s.max_new);
  std::vector<std::int32_t> seq(beams * T, -7), len(beams), finished(beams),
      n_out(static_cast<std::size_t>(s.B)), prompt(300, 1), prompt_len;
  std::vector<const std::int32_t*> prompts;
  for (std::int32_t b = 0; b < s.B; ++b) {
    prompt_len.push_back(1 + 90 * b % 300);
    prompts.push_back(prompt.data());
  }
  std::vector<double> acc(beams), score(beams);
  Model model{s, {}, {}};
  const assay_lm lm{sizeof(assay_lm), s.V, s.kind, &model, &step};
  const bs_params p{sizeof(bs_params), s.B, s.K, s.max_new, s.eos, s.alpha, 0, 0, prompt_len.data(),
                    prompts.data(),    0,   0};
  if (beam_search(ctx, &p, &lm, seq.data(), len.data(), acc.data(), score.data(), finished.data(),
                  n_out.data()) != ASSAY_OK)
    return false;
  if (model.misused) return false;
  std::int64_t rows = 0, calls = 0;
  for (std::int32_t b = 0; b < s.B; ++b) {
    std::int64_t steps = 0;
    const std::vector<Beam> want = search(s, b, rows, steps);
    calls = std::max(calls, steps);
    if (n_out[static_cast<std::size_t>(b)] != static_cast<std::int32_t>(want.size())) return false;
    for (std::size_t k = 0; k < static_cast<std::size_t>(s.K); ++k) {
      const std::size_t at = static_cast<std::size_t>(b) * static_cast<std::size_t>(s.K) + k;
      Text text = k < want.size() ? want[k].text : Text{};
      const std::size_t n = text.size();
      text.resize(T, -1);
      if (!std::equal(text.begin(), text.end(), seq.begin() + static_cast<std::ptrdiff_t>(at * T)))
        return false;
      if (k >= want.size()) continue;
      const double tolerance = s.kind == BS_LOGITS ? 1e-3 : 1e-11;
      if (len[at] != static_cast<std::int32_t>(n) || finished[at] != (want[k].finished ? 1 : 0))
        return false;
      if (!near(acc[at], want[k].acc, tolerance) || !near(score[at], want[k].score, tolerance))
        return false;
    }
  }
  return model.calls == calls && model.rows == rows;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const Setup setups[] = {{3, 4, 50, 12, 3, 0.6, 3},
                          {4, 1, 60, 10, 5, 0.0, 9, 8},
                          {2, 5, 40, 10, 2, 0.0, 5, 4},
                          {8, 3, 30, 9, 1, 1.0, 3},
                          {8, 4, 25, 10, 4, -0.5, 4},
                          {4, 4, 25, 10, 4, 2.0, 4},
                          {4, 6, 20, 8, 1, 0.5, 4, 4096, 12},
                          {2, 8, 3, 6, 2, 0.5, 2},
                          {3, 3, 40, 20, 7, 0.6, 1000, 4096, 0, 3},
                          {2, 2, 3000, 5, -1, 1.0},
                          {1, 2, 16, 1500, -1, 0.6, 4, 4096, 0, 0, -8},
                          {2, 3, 12, 6, 0, 0.0, 1000000, 2}};
  for (const Setup& s : setups) {
    if (!passes(ctx, s)) return 1;
  }
  Setup logits{2, 3, 40, 6, 3, 0.6, 4};
  logits.kind = BS_LOGITS;
  logits.offset = 1000;
  return passes(ctx, logits) ? 0 : 1;
}
