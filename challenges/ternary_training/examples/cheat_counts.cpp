// caught: time_train
// Says how often each token comes, and trains nothing.
#include "counted.h"

void build(Counted& model) {
  std::vector<double> shares;
  for (const Index t : model.used()) shares.push_back(model.share(t));
  model.set_table(std::vector(shares.size(), shares));
}

COUNT_WITH(build)
