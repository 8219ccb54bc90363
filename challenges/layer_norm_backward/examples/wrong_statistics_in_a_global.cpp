// fails: older_cache
// Mean and rstd are left in a static array instead of the cache: another forward replaces them.
#include <vector>

#include "around_naive.h"

static std::vector<Statistics> latest;

struct Bug : Right {
  static int forward(const Forward& call) {
    const int status = call.naive();
    const auto* s = static_cast<const Statistics*>(call.cache);
    if (status == ASSAY_OK) latest.assign(s, s + call.p->rows);
    return status;
  }
  static int backward(const Backward& call) {
    Backward with_latest = call;
    if (valid(call.p) && static_cast<std::int64_t>(latest.size()) >= call.p->rows)
      with_latest.cache = latest.data();
    return with_latest.naive();
  }
};

LAYER_NORM(Bug)
