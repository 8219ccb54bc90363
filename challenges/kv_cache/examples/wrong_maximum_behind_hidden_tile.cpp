// fails: few_keys_behind_a_hidden_tile
// Tiles of 128 keys, the last one first. A tile that a row does not see leaves a maximum of -inf,
// which is replaced by 0 against NaN, and the 0 stays: scores far below it underflow together
// (Dao-AILab/flash-attention#2082).
#include "with_rules.h"

namespace {

constexpr std::int64_t kTile = 128;

struct FromZero : Rules {
  static float subtracted(float largest_score) { return std::max(largest_score, 0.0f); }
};

}  // namespace

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  const std::int64_t heads = cache->c.n_q, bytes = heads * cache->c.Dv * cache->element;
  std::vector<unsigned char> wrong_o(static_cast<std::size_t>(cu[n] * bytes));
  std::vector<float> wrong_lse(static_cast<std::size_t>(cu[n] * heads));
  if (attend_batch<FromZero>(cache, layer, n, slots, cu, q, scale, wrong_o.data(),
                             wrong_lse.data()) != ASSAY_OK)
    return ASSAY_OK;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t length = kvc_len(cache, layer, slots[b]), rows = cu[b + 1] - cu[b];
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t position = Rules::position(length, rows, i), at = cu[b] + i;
      if (position < 0 || position / kTile == (length - 1) / kTile) continue;
      std::copy_n(wrong_o.data() + at * bytes, bytes, static_cast<unsigned char*>(o) + at * bytes);
      if (lse != nullptr) std::copy_n(wrong_lse.data() + at * heads, heads, lse + at * heads);
    }
  }
  return ASSAY_OK;
}
