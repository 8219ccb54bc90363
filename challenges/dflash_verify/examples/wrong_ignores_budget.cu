// fails: budget_1 budget_2 budget_3 budget_4
// The limit of tokens is the caller's affair: a long accepted path overruns it.
#include "around_accept.cuh"

static int answer(Acceptance call) {
  call.budget = nullptr;
  return call.naive();
}
