// caught: time_train
// Counts pairs, and where names are repeated prefers those that have been seen in the document:
// what a look at the text so far tells without any order in it. Trains nothing.
#include "counted.h"

constexpr float kGain = 20;

void build(Counted& model) {
  const std::vector<Index>& used = model.used();
  std::vector<std::vector<double>> table;
  for (const Index before : used) {
    std::vector<double>& row = table.emplace_back();
    for (const Index t : used) row.push_back(model.share_after(before, t));
  }
  model.set_table(table);
  // Token 2 begins a repetition; names are what follows it.
  std::vector<std::size_t> names;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (model.seen(2, used[i]) > 0) names.push_back(i);
  }
  for (const std::size_t name : names) {
    model.look_for(name);
    for (std::size_t after = 0; after < used.size(); ++after) {
      if (used[after] == 2) model.add_copy(after, name, kGain);
    }
  }
}

COUNT_WITH(build)
