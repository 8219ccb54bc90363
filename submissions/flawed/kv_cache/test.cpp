// The entrant's own test, weak in the way real ones were: one sequence, one head, one prompt from
// nothing, and only that lengths add up and weights of equal keys average the values.
#include <cmath>
#include <cstdint>
#include <vector>

#include "abi.h"

extern "C" int assay_self_test(assay_ctx* ctx) {
  const kvc_config config{sizeof(kvc_config), ASSAY_F32, 1, 1, 1, 4, 2, 64, 64, -1, 0, 0, 0};
  kvc* cache = nullptr;
  std::int32_t slot = -1;
  if (kvc_create(ctx, &config, &cache) != ASSAY_OK || kvc_seq_new(cache, &slot) != ASSAY_OK)
    return 1;
  const std::vector<float> k(12, 1.0f), q(4, 1.0f);
  const std::vector<float> v{1, 1, 1, 1, 2, 2, 2, 2, 6, 6, 6, 6};
  const std::int64_t prompt[] = {0, 3}, one[] = {0, 1};
  std::vector<float> o(4);
  float lse = 0;
  int bad = kvc_append(cache, 0, 1, &slot, prompt, k.data(), v.data());
  bad |= kvc_attend(cache, 0, 1, &slot, one, q.data(), 0.5f, o.data(), &lse);
  for (const float x : o) bad |= std::abs(x - 3) > 1e-5f ? 1 : 0;
  bad |= kvc_len(cache, 0, slot) != 3 ? 1 : 0;
  kvc_destroy(cache);
  return bad;
}
