// fails: window_after_rollback
// What a window may still see is reckoned for a truncation or for a batch of many rows, but not for
// one after the other: pages are given up too early.
#include "append.h"

static int forgetful(const Batch& batch) {
  const int status = batch.store();
  const kvc_config& c = batch.cache->c;
  for (int32_t b = 0; status == ASSAY_OK && c.window > 0 && b < batch.n; ++b) {
    const int64_t rows = batch.cu[b + 1] - batch.cu[b];
    const Layer& history = batch.history(b);
    const int64_t first = history.length - rows - c.window - KVC_ROLLBACK;
    for (int64_t i = (c.sinks + kPage - 1) / kPage; (i + 1) * kPage <= first; ++i) {
      Page* page = history.pages[static_cast<std::size_t>(i)];
      if (page != nullptr)
        std::memset(page->data, 0, static_cast<std::size_t>(batch.cache->page_bytes(page->packed)));
    }
  }
  return status;
}

APPEND_WITH(forgetful)
