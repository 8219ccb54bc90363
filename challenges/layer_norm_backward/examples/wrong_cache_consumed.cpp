// fails: accumulate_twice
// Backward turns the cached rstd into rstd / D in place: the second backward divides again.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    const int status = call.naive();
    auto* s = static_cast<Statistics*>(const_cast<void*>(call.cache));
    for (std::int64_t r = 0; status == ASSAY_OK && r < call.p->rows; ++r)
      s[r].rstd /= static_cast<float>(call.p->D);
    return status;
  }
};

LAYER_NORM(Bug)
