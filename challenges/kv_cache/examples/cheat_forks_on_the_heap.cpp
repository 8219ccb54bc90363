// caught: forked_memory
// Counts the pages of a prefix once, but copies it to the heap for every fork.
#define kvc_fork naive_kvc_fork
#define kvc_destroy naive_kvc_destroy
#include "naive.cpp"
#undef kvc_fork
#undef kvc_destroy

static std::vector<std::vector<unsigned char>> copies;

extern "C" int kvc_fork(kvc* cache, int32_t src, int32_t* dst) {
  const int status = naive_kvc_fork(cache, src, dst);
  if (status != ASSAY_OK) return status;
  for (const Layer& layer : cache->sequences[static_cast<std::size_t>(*dst)].layers) {
    for (const Page* page : layer.pages) {
      if (page != nullptr)
        copies.emplace_back(page->data, page->data + cache->page_bytes(page->packed));
    }
  }
  return ASSAY_OK;
}

extern "C" void kvc_destroy(kvc* cache) {
  naive_kvc_destroy(cache);
  copies.clear();
}
