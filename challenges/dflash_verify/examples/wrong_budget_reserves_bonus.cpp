// fails: budget_1 budget_5
// Keeps one place of the budget for a bonus that it then does not emit.
#include "greedy_walk.h"

struct Bug : Walk {
  bool has_room() const override { return n_acc + 1 < budget; }
};

ACCEPT_WITH(Bug)
