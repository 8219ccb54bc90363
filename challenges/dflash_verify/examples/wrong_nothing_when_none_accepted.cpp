// fails: none_accept
// Returns an empty step when no node is accepted and leaves it to the caller to run the model
// again.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t bonus_after(std::int32_t, std::int32_t token) const override {
    return n_acc > 0 ? token : -1;
  }
};

ACCEPT_WITH(Bug)
