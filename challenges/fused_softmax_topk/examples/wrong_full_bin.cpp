// fails: narrow_range
// Columns are counted by the upper 8 bits of their logits in half precision. The columns in the
// bin of the K-th are set aside for a closer look, in 16,384 places: what a fuller bin holds
// beyond them is lost. As vllm-project/vllm#51782.
#include "selection.h"

// The bin of a logit: larger for larger ones, the same for both zeros.
static int bin_of(float x) {
  const auto bits = std::bit_cast<std::uint16_t>(static_cast<_Float16>(x + 0.0f));
  return ((bits & 0x8000) != 0 ? ~bits & 0xffff : bits | 0x8000) >> 8;
}

static int answer(const Call& call) {
  return with_winners(call, [](const float* x, const stk_params& p) {
    std::int64_t counts[256] = {}, above = 0, places = 16384;
    for (std::int64_t j = 0; j < p.V; ++j) ++counts[bin_of(x[j])];
    int bin = 255;
    for (; bin > 0 && above + counts[bin] < p.K; --bin) above += counts[bin];
    std::vector<std::int32_t> best;
    for (std::int32_t j = 0; j < p.V; ++j) {
      if (bin_of(x[j]) > bin || (bin_of(x[j]) == bin && places-- > 0)) best.push_back(j);
    }
    std::sort(best.begin(), best.end(), Before{x});
    if (std::ssize(best) > p.K) best.resize(static_cast<std::size_t>(p.K));
    return best;
  });
}
