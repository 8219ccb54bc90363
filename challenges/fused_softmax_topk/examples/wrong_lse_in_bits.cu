// fails: basic
// lse is a logarithm to base 2, as the hardware's exp2 likes it.
#include "around_naive.cuh"

struct Bits {
  __device__ void operator()(const Row& row) const {
    if (row.lse != nullptr) *row.lse *= 1.44269504f;
  }
};

static int answer(const Call& call) { return then(call, Bits{}); }
