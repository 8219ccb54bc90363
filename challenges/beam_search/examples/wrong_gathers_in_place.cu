// fails: reorder_cache
// The states of the surviving beams are gathered in place: one is overwritten before the beams that
// come from it have read it.
#include "around_search.cuh"

static int answer(const Search& call) {
  std::vector<std::int64_t> states;  // of the latest step, by row
  return with_model(call, [&states](const assay_lm& lm, Step step) {
    std::vector<std::int64_t> gathered = states, parents(step.parent, step.parent + step.n);
    gathered.resize(std::max(states.size(), parents.size()));
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const auto place = std::find(states.begin(), states.end(), parents[i]) - states.begin();
      if (parents[i] >= 0) parents[i] = gathered[i] = gathered[static_cast<std::size_t>(place)];
    }
    step.parent = parents.data();
    const int status = step.ask(lm);
    states.assign(step.state, step.state + step.n);
    return status;
  });
}
