// fails: ascending wide
// The bounded heap's sift-down looks at the left child only, so the root soon is not the worst of
// those kept. Few elements of a random row are ever inserted; in an ascending row all are.
#include "selection.h"

static std::vector<std::int32_t> winners_of(const float* x, const stk_params& p) {
  const Before before{x};
  const auto n = static_cast<std::size_t>(std::min<std::int64_t>(p.K, p.V));
  std::vector<std::int32_t> heap(n);
  std::iota(heap.begin(), heap.end(), 0);
  std::make_heap(heap.begin(), heap.end(), before);
  for (auto j = static_cast<std::int32_t>(n); j < p.V; ++j) {
    if (!before(j, heap[0])) continue;
    heap[0] = j;
    for (std::size_t i = 0; 2 * i + 1 < n && before(heap[i], heap[2 * i + 1]); i = 2 * i + 1) {
      std::swap(heap[i], heap[2 * i + 1]);
    }
  }
  std::sort(heap.begin(), heap.end(), before);
  return heap;
}

static int answer(const Call& call) { return with_winners(call, winners_of); }
