// fails: slot_reuse
// Freeing a slot only marks it free: the next sequence there begins with the last one's history.
#define kvc_seq_free naive_kvc_seq_free
#include "naive.cpp"
#undef kvc_seq_free

extern "C" int kvc_seq_free(kvc* cache, int32_t slot) {
  if (cache == nullptr) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  cache->sequence(slot).alive = false;
  return ASSAY_OK;
}
