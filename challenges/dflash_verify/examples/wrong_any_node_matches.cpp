// fails: child_would_match
// Looks for the next token among all nodes, whoever their parent is: the tree taken as a bag of
// tokens.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t child(std::int32_t, std::int32_t token) const override {
    const auto* end = tree.token + tree.n;
    const auto* found = std::find(tree.token, end, token);
    return found == end || n_acc >= tree.n ? -1 : static_cast<std::int32_t>(found - tree.token);
  }
};

ACCEPT_WITH(Bug)
