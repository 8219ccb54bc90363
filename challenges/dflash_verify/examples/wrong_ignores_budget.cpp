// fails: budget_1 budget_2 budget_3 budget_4
// Checks the token limit between cycles only, so a long accepted path overruns it; servers have
// returned nine tokens where six were asked for.
#include "greedy_walk.h"

struct Bug : Walk {
  bool has_room() const override { return budget > 0; }
};

ACCEPT_WITH(Bug)
