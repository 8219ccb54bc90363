// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had.
//   1. An eos candidate takes over its beam's sum: the log-probability of eos is never added.
//   2. Beams are pruned by their raw sums; the length penalty only orders the answer.
//   3. Logits are used as if they were log-probabilities.
//   4. Memory comes from the C++ heap, with an array of all candidates.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

struct Beam {
  std::vector<std::int32_t> text;
  double acc = 0, score = 0;
  std::int64_t state = -1;
  bool finished = false;
};

struct Candidate {
  double acc;
  std::int32_t parent, token;  // token -1: a finished beam
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.acc != b.acc) return a.acc > b.acc;
  if ((a.token < 0) != (b.token < 0)) return a.token < 0;
  return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
}

using Item = std::vector<Beam>;

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  if (p == nullptr || lm == nullptr || p->B < 0 || p->K < 1 || p->max_new < 0 || lm->V < 1)
    return ASSAY_EINVAL;
  if (p->eos < -1 || p->eos >= lm->V || !std::isfinite(p->alpha) || lm->step == nullptr)
    return ASSAY_EINVAL;
  if (p->rank_mode != 0 || p->keep_finished != 0 || p->penalty != 0 || p->min_new != 0)
    return ASSAY_ENOTSUP;
  if (p->max_new > 0 && p->B > 0 && seq == nullptr) return ASSAY_EINVAL;
  if (p->B > 0 && (len == nullptr || acc == nullptr || score == nullptr || finished == nullptr ||
                   n_out == nullptr)) {
    return ASSAY_EINVAL;
  }
  const auto B = static_cast<std::size_t>(p->B), K = static_cast<std::size_t>(p->K);
  const auto V = static_cast<std::size_t>(lm->V), T = static_cast<std::size_t>(p->max_new);
  std::vector<Item> items(B, Item(1));
  std::vector<float> out(B * K * V);
  std::vector<std::int64_t> state(B * K), parent;
  std::vector<std::int32_t> item, token;
  for (std::size_t t = 0; t < T; ++t) {
    item.clear(), parent.clear(), token.clear();
    for (std::size_t b = 0; b < B; ++b) {
      for (const Beam& beam : items[b]) {
        if (beam.finished) continue;
        item.push_back(static_cast<std::int32_t>(b));
        parent.push_back(beam.state);
        token.push_back(beam.text.empty() ? 0 : beam.text.back());
      }
    }
    if (item.empty()) break;
    const int status = lm->step(lm->user, ctx, static_cast<std::int32_t>(item.size()), item.data(),
                                parent.data(), token.data(), out.data(), state.data());
    if (status != ASSAY_OK) return status;
    std::size_t row = 0;
    for (Item& it : items) {
      std::vector<Candidate> pool;
      for (std::size_t i = 0; i < it.size(); ++i) {
        const auto place = static_cast<std::int32_t>(i);
        if (it[i].finished) {
          pool.push_back({it[i].acc, place, -1});
          continue;
        }
        for (std::size_t v = 0; v < V; ++v) {
          const float x = out[row * V + v];
          if (!std::isfinite(x)) continue;
          const bool ends = static_cast<std::int32_t>(v) == p->eos;
          pool.push_back({it[i].acc + (ends ? 0.0 : static_cast<double>(x)), place,
                          static_cast<std::int32_t>(v)});
        }
        it[i].state = state[row++];
      }
      const std::size_t kept = std::min(K, pool.size());
      std::partial_sort(pool.begin(), pool.begin() + static_cast<std::ptrdiff_t>(kept), pool.end(),
                        better);
      Item next;
      for (std::size_t k = 0; k < kept; ++k) {
        const Candidate& c = pool[k];
        Beam beam = it[static_cast<std::size_t>(c.parent)];
        if (c.token >= 0) {
          beam.text.push_back(c.token);
          beam.acc = c.acc;
          beam.score = c.acc / std::pow(static_cast<double>(beam.text.size()), p->alpha);
          beam.finished = c.token == p->eos;
        }
        next.push_back(beam);
      }
      it = next;
    }
  }
  for (std::size_t b = 0; b < B; ++b) {
    Item& all = items[b];
    std::stable_sort(all.begin(), all.end(),
                     [](const Beam& x, const Beam& y) { return x.score > y.score; });
    n_out[b] = static_cast<std::int32_t>(all.size());
    std::fill_n(seq + b * K * T, K * T, -1);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Beam& beam = all[k];
      std::copy(beam.text.begin(), beam.text.end(), seq + (b * K + k) * T);
      len[b * K + k] = static_cast<std::int32_t>(beam.text.size());
      acc[b * K + k] = beam.acc;
      score[b * K + k] = beam.score;
      finished[b * K + k] = beam.finished ? 1 : 0;
    }
  }
  return ASSAY_OK;
}
