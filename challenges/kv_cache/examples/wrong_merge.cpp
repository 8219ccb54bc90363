// fails: merge_of_empty_parts long_split
// Keys in parts of 256, at most 390 of them, each with its own maximum: what is left over at the
// end of a long sequence is dropped, and a part that a row does not see at all (its maximum is
// -inf, and so is that of the merge so far) gives NaN.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

namespace {

constexpr int64_t kPart = 256, kMostParts = 390;

struct Sum {
  float max = -INFINITY, weight = 0;
  std::vector<float> values;

  // Weights of the other are exp(score - other.max).
  void add(const Sum& other) {
    const float most = std::max(max, other.max);
    const float mine = std::exp(max - most), theirs = std::exp(other.max - most);
    for (std::size_t d = 0; d < values.size(); ++d)
      values[d] = values[d] * mine + other.values[d] * theirs;
    weight = weight * mine + other.weight * theirs;
    max = most;
  }
};

Sum part_of(kvc* cache, Layer& layer, int64_t head, int64_t begin, int64_t end, int64_t position,
            const float* q, float scale) {
  const kvc_config& c = cache->c;
  Sum sum;
  sum.values.resize(static_cast<std::size_t>(c.Dv));
  std::vector<float> row(static_cast<std::size_t>(std::max(c.D, c.Dv))), scores;
  for (int64_t j = begin; j < end; ++j) {
    float score = -INFINITY;
    if (Rules::visible(c, j, position)) {
      cache->load_key(layer.pages[static_cast<std::size_t>(j / kPage)], head, j % kPage,
                      row.data());
      score = 0;
      for (int32_t d = 0; d < c.D; ++d) score += q[d] * row[static_cast<std::size_t>(d)];
      score *= scale;
    }
    scores.push_back(score);
    sum.max = std::max(sum.max, score);
  }
  for (int64_t j = begin; j < end; ++j) {
    const float weight = std::exp(scores[static_cast<std::size_t>(j - begin)] - sum.max);
    sum.weight += weight;
    if (!Rules::visible(c, j, position)) continue;
    cache->load_value(layer.pages[static_cast<std::size_t>(j / kPage)], head, j % kPage,
                      row.data());
    for (std::size_t d = 0; d < sum.values.size(); ++d) sum.values[d] += weight * row[d];
  }
  return sum;
}

}  // namespace

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  if (status != ASSAY_OK || cache->c.dtype != ASSAY_F32) return status;
  const kvc_config& c = cache->c;
  for (int32_t b = 0; b < n; ++b) {
    Layer& history = cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
    const int64_t rows = cu[b + 1] - cu[b],
                  parts = std::min(kMostParts, (history.length + kPart - 1) / kPart);
    for (int64_t i = 0; i < rows * c.n_q && parts > 1; ++i) {
      const int64_t at = cu[b] * c.n_q + i;
      Sum all;
      all.values.resize(static_cast<std::size_t>(c.Dv));
      for (int64_t p = 0; p < parts; ++p) {
        all.add(part_of(cache, history, Rules::key_head(c, i % c.n_q), p * kPart,
                        std::min(history.length, (p + 1) * kPart),
                        Rules::position(history.length, rows, i / c.n_q),
                        static_cast<const float*>(q) + at * c.D, scale));
      }
      for (int32_t d = 0; d < c.Dv; ++d)
        cache->put(o, at * c.Dv + d, all.values[static_cast<std::size_t>(d)] / all.weight);
      if (lse != nullptr) lse[at] = all.max + std::log(all.weight);
    }
  }
  return ASSAY_OK;
}
