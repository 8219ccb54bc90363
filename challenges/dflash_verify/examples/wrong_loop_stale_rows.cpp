// fails: multi_cycle_3 golden_200
// Leaves the rows of rejected nodes in the cache, where the next pass attends to them.
#include "between.h"

struct Bug : Between {
  std::int32_t commit(std::int64_t, const std::int64_t*) const override { return ASSAY_OK; }
};

GENERATE_THROUGH(Bug)
