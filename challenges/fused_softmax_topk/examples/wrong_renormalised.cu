// fails: renormalised basic
// The K probabilities are divided by their sum, as if nothing but them were in the row.
#include "around_naive.cuh"

struct Renormalise {
  __device__ void operator()(const Row& row) const {
    float sum = 0;
    for (std::int32_t k = 0; k < row.K; ++k) sum += row.prob[k];
    for (std::int32_t k = 0; k < row.K && sum > 0; ++k) row.prob[k] /= sum;
  }
};

static int answer(const Call& call) { return then(call, Renormalise{}); }
