// fails: accept_ragged
// Finds an item's logits at b times the size of the first tree: right while all trees are equal.
#include "greedy_walk.h"

struct Bug : Walk {
  void run() override {
    node += (std::min(b * cu[1], cu[b]) - cu[b]) * V;
    Walk::run();
  }
};

ACCEPT_WITH(Bug)
