// fails: capacity out_of_memory
// The budget, and whether there is memory, turn out entry by entry while rows are stored: what
// comes before the entry that does not fit stays.
#include "append.h"

int append(const Batch& batch) {
  int status = ASSAY_OK;
  for (int32_t b = 0; status == ASSAY_OK && b < batch.n; ++b) {
    const int64_t sums[2] = {0, batch.cu[b + 1] - batch.cu[b]};
    const int64_t at = batch.cu[b] * batch.cache->c.n_kv * batch.cache->element;
    Batch entry = batch;
    entry.n = 1;
    entry.slots += b;
    entry.cu = sums;
    if (batch.k != nullptr) entry.k = static_cast<const char*>(batch.k) + at * batch.cache->c.D;
    if (batch.v != nullptr) entry.v = static_cast<const char*>(batch.v) + at * batch.cache->c.Dv;
    status = entry.store();
  }
  return status;
}

APPEND_WITH(append)
