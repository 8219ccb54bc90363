// fails: fork_refused_its_pages
// An append gives each entry a last page of its own before it knows whether there is memory for the
// rest. If there is none, the copies stay.
#include "append.h"

int append(const Batch& batch) {
  if (batch.k == nullptr || batch.v == nullptr) return batch.store();
  for (int32_t b = 0; b < batch.n; ++b) {
    Layer& layer = batch.cache->sequence(batch.slots[b]).layers[static_cast<size_t>(batch.layer)];
    const int64_t used = layer.length % kPage;
    if (used == 0 || batch.cu[b + 1] == batch.cu[b] || layer.pages.back()->holders == 1) continue;
    try {
      Page* copy = batch.cache->raw_copy(layer.pages.back(), used);
      batch.cache->drop(layer.pages.back());
      layer.pages.back() = copy;
    } catch (const std::bad_alloc&) {
      return ASSAY_ENOMEM;
    }
  }
  return batch.store();
}

APPEND_WITH(append)
