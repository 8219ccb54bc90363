// fails: accept_n_0 accept_ragged
// Skips items without nodes, although the root's logits still give a token.
#include "greedy_walk.h"

struct Bug : Walk {
  void run() override {
    if (tree.n > 0) Walk::run();
  }
};

ACCEPT_WITH(Bug)
