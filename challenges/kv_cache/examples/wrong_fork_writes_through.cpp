// fails: fork_diverge fork_of_a_fork forks_decode_together
// A fork shares pages, but nothing is copied before writing: the two sides overwrite each other's
// tail.
#include "append.h"

int append(const Batch& batch) {
  std::vector<std::pair<Page*, int>> shared;
  for (int32_t b = 0; b < batch.n; ++b) {
    const Layer& history = batch.history(b);
    if (history.length % kPage == 0 || history.pages.back()->packed) continue;
    shared.emplace_back(history.pages.back(), history.pages.back()->holders);
    history.pages.back()->holders = 1;
  }
  const int status = batch.store();
  for (auto i = shared.rbegin(); i != shared.rend(); ++i) i->first->holders = i->second;
  return status;
}

APPEND_WITH(append)
