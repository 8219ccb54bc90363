// fails: raw_vs_score raw_vs_score_random
// Beams are pruned by their raw sums; the penalty only orders the answer.
#include <numeric>

#include "around_search.cuh"

// Puts groups of `width` values into that order.
template <class T>
void reorder(const std::vector<std::size_t>& order, std::size_t width, T* values) {
  const std::vector<T> old(values, values + order.size() * width);
  for (std::size_t i = 0; i < order.size(); ++i)
    std::copy_n(old.data() + order[i] * width, width, values + i * width);
}

static int answer(const Search& call) {
  if (!call.has_items()) return call.naive();
  bs_params by_sum = *call.p;
  by_sum.alpha = 0;
  Search other = call;
  other.p = &by_sum;
  const int status = other.naive();
  const auto K = static_cast<std::size_t>(by_sum.K), T = static_cast<std::size_t>(by_sum.max_new);
  for (std::int32_t b = 0; status == ASSAY_OK && T > 0 && b < by_sum.B; ++b) {
    const std::size_t first = static_cast<std::size_t>(b) * K;
    double* const score = call.score + first;
    std::vector<std::size_t> order(static_cast<std::size_t>(call.n_out[b]));
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (const std::size_t k : order) score[k] /= std::pow(call.len[first + k], call.p->alpha);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return score[i] > score[j]; });
    reorder(order, T, call.seq + first * T);
    reorder(order, 1, call.len + first);
    reorder(order, 1, call.acc + first);
    reorder(order, 1, score);
    reorder(order, 1, call.finished + first);
  }
  return status;
}
