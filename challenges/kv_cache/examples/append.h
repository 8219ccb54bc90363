// For examples that store something else than the rows that they are given, or store them
// otherwise.
#pragma once

#define kvc_append naive_kvc_append
#include "naive.cpp"
#undef kvc_append

namespace {

// A call of kvc_append with at least one entry.
struct Batch {
  kvc* cache;
  int32_t layer, n;
  const int32_t* slots;
  const int64_t* cu;
  const void *k, *v;

  int store() const { return naive_kvc_append(cache, layer, n, slots, cu, k, v); }
  int64_t tokens() const { return cu[n]; }
  const Layer& history(int32_t b) const {
    return cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
  }
};

}  // namespace

// At the end of the file.
#define APPEND_WITH(append)                                                             \
  extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots, \
                            const int64_t* cu, const void* k, const void* v) {          \
    const int status = check_batch(cache, layer, n, slots, cu);                         \
    if (status != ASSAY_OK || n == 0) return status;                                    \
    return append(Batch{cache, layer, n, slots, cu, k, v});                             \
  }
