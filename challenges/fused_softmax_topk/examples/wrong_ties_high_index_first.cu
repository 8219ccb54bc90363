// fails: ties_all ties_small_integers
// Of equal logits the one of the higher column comes first.
#include "around_naive.cuh"

struct Reverse {
  __device__ void operator()(const Row& row) const {
    for (std::int32_t first = 0; first < row.K;) {
      std::int32_t end = first + 1;
      while (end < row.K && row.prob[end] == row.prob[first] && row.idx[end] >= 0) ++end;
      for (std::int32_t a = first, b = end - 1; a < b; ++a, --b) {
        const std::int32_t kept = row.idx[a];
        row.idx[a] = row.idx[b];
        row.idx[b] = kept;
      }
      first = end;
    }
  }
};

static int answer(const Call& call) { return then(call, Reverse{}); }
