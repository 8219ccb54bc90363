// fails: full_accept_bonus none_accept
// Takes the bonus from the last row of the logits, which belongs to the last node of the list and
// not of the path.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t bonus_after(std::int32_t, std::int32_t) const override { return best(tree.n - 1); }
};

ACCEPT_WITH(Bug)
