// Which of a run's submissions one of several machines takes. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "submission/submission.h"

namespace assay::session {

struct Shard {
  std::size_t index = 1, count = 1;  // 1 .. count
};

// "2/8". Throws Error for anything else.
Shard shard_from(const std::string& text);
std::string to_string(const Shard&);

// What the shard takes, in the order given. Each submission is in exactly one of the `count`
// shards; which one depends on the submissions and on what each costs, so that machines which agree
// on both need not talk to one another. The dearest first, each goes to the shard that has least.
std::vector<Submission> submissions_of(const Shard&, std::vector<Submission>,
                                       const std::function<double(const Submission&)>& cost);

}  // namespace assay::session
