// fails: odd_v v_65
// Rows are read in vectors of four values, and nobody reads the rest of a row.
#include "around_search.cuh"

struct DropTail {
  __device__ void operator()(float* row, std::int32_t V) const {
    for (std::int32_t v = V / 4 * 4; v < V; ++v) row[v] = -INFINITY;
  }
};

static int answer(const Search& call) { return with_rows(call, DropTail{}); }
