// fails: tree_nodes tree_random tree_window
// The nodes of a tree are taken for a chain: each sees all that stand before it, siblings too.
#define kvc_attend_tree naive_kvc_attend_tree
#include "naive.cpp"
#undef kvc_attend_tree

struct Chain : Rules {
  static bool is_ancestor_or_self(const int32_t*, int64_t node, int64_t row) { return node <= row; }
};

extern "C" int kvc_attend_tree(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                               const int64_t* cu, const int32_t* parent, const void* q, float scale,
                               void* o, float* lse) {
  const int status = check_trees(cache, layer, n, slots, cu, parent);
  if (status != ASSAY_OK) return status;
  return attend_batch<Chain>(cache, layer, n, slots, cu, q, scale, o, lse, parent);
}
