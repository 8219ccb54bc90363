// fails: tree_window tree_refused
// The window is counted from a node's index instead of its depth, and a parent that cannot be is
// taken for the prefix.
#define kvc_attend_tree naive_kvc_attend_tree
#include "naive.cpp"
#undef kvc_attend_tree

struct ByIndex : Rules {
  static int64_t position_of_node(const int32_t*, int64_t prefix, int64_t node) {
    return prefix + node;
  }
};

extern "C" int kvc_attend_tree(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                               const int64_t* cu, const int32_t* parent, const void* q, float scale,
                               void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (parent == nullptr) return ASSAY_EINVAL;
  std::vector<int32_t> mended(parent, parent + cu[n]);
  for (int32_t b = 0; b < n; ++b) {
    for (int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      int32_t& p = mended[static_cast<std::size_t>(i)];
      if (p < -1 || p >= i - cu[b]) p = -1;
    }
  }
  return attend_batch<ByIndex>(cache, layer, n, slots, cu, q, scale, o, lse, mended.data());
}
