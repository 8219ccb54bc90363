// fails: defragment_forks defragment_starved
// Every sequence's pages are moved without a look at who else holds them, so forks no longer share;
// and when there is no memory, what has not been moved is lost.
#define kvc_defragment naive_kvc_defragment
#include "naive.cpp"
#undef kvc_defragment

extern "C" int kvc_defragment(kvc* cache) {
  if (cache == nullptr) return ASSAY_EINVAL;
  for (Sequence& s : cache->sequences) {
    for (Layer& layer : s.layers) {
      for (std::size_t i = 0; i < layer.pages.size(); ++i) {
        Page*& page = layer.pages[i];
        if (page == nullptr || page->packed) continue;
        try {
          Page* moved = cache->raw_copy(page, kPage);
          cache->drop(page);
          page = moved;
        } catch (const std::bad_alloc&) {
          cache->truncate(layer, static_cast<int64_t>(i) * kPage);
          return ASSAY_ENOMEM;
        }
      }
    }
  }
  return ASSAY_OK;
}
