// fails: scale_not_default scale_twice
// 1 / sqrt(D) whatever the parameters say.
#include <cmath>

#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](fa_params& p) { p.scale = 1 / std::sqrt(static_cast<float>(p.D)); });
}
