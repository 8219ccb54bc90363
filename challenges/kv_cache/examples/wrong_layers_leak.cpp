// fails: fragmentation fork_diverge slot_reuse
// Freeing a sequence gives back the pages of its first layer; those of the others are forgotten.
#define kvc_seq_free naive_kvc_seq_free
#include "naive.cpp"
#undef kvc_seq_free

extern "C" int kvc_seq_free(kvc* cache, int32_t slot) {
  if (cache == nullptr) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  Sequence& s = cache->sequence(slot);
  cache->truncate(s.layers[0], 0);
  s = {};
  return ASSAY_OK;
}
