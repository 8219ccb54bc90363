// fails: negative_tail_of_3
// A row goes by parts of 1,024 columns, and zeros fill the last part. Where its logits are
// negative, the zeros are its best candidates. In the end they are dropped, as they are no
// columns, but by then the real columns of the part are gone. As mirage-project/mirage#752.
#include "selection.h"

static int answer(const Call& call) {
  return with_winners(call, [](const float* x, const stk_params& p) {
    constexpr std::int64_t kPart = 1024;
    std::vector<float> filled(x, x + p.V);
    filled.resize(static_cast<std::size_t>((p.V + kPart - 1) / kPart * kPart), 0.0f);
    const Before before{filled.data()};
    std::vector<std::int32_t> best;
    for (std::int64_t first = 0; first < std::ssize(filled); first += kPart) {
      std::vector<std::int32_t> part(kPart);
      std::iota(part.begin(), part.end(), static_cast<std::int32_t>(first));
      std::sort(part.begin(), part.end(), before);
      part.resize(static_cast<std::size_t>(std::min<std::int64_t>(kPart, p.K)));
      std::erase_if(part, [&](std::int32_t j) { return j >= p.V; });
      best.insert(best.end(), part.begin(), part.end());
    }
    std::sort(best.begin(), best.end(), before);
    if (std::ssize(best) > p.K) best.resize(static_cast<std::size_t>(p.K));
    return best;
  });
}
