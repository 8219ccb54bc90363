// fails: truncate_then_append layers_skewed
// A rollback of speculative tokens that goes to whole pages only: what is left of the last page
// keeps its old length.
#define kvc_truncate naive_kvc_truncate
#include "naive.cpp"
#undef kvc_truncate

extern "C" int kvc_truncate(kvc* cache, int32_t slot, int64_t new_len) {
  if (cache == nullptr || new_len < 0) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  int64_t longest = 0;
  for (const Layer& layer : cache->sequence(slot).layers) longest = std::max(longest, layer.length);
  if (new_len > longest) return ASSAY_ESTATE;
  for (Layer& layer : cache->sequence(slot).layers) {
    cache->truncate(layer, std::min(layer.length, (new_len + kPage - 1) / kPage * kPage));
  }
  return ASSAY_OK;
}
