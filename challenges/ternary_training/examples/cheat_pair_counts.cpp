// caught: time_train
// Says how often each token follows each other one, and trains nothing.
#include "counted.h"

void build(Counted& model) {
  std::vector<std::vector<double>> table;
  for (const Index before : model.used()) {
    std::vector<double>& row = table.emplace_back();
    for (const Index t : model.used()) row.push_back(model.share_after(before, t));
  }
  model.set_table(table);
}

COUNT_WITH(build)
