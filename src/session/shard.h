// Splits a run's submissions among several machines. Pure.
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

// The shard's submissions, in the order given. Each submission is in exactly one of the `count`
// shards. Which one depends only on the submissions and their costs, so machines that agree on both
// need not communicate. In order of decreasing cost, each submission goes to the shard with the
// least so far.
std::vector<Submission> submissions_of(const Shard&, std::vector<Submission>,
                                       const std::function<double(const Submission&)>& cost);

}  // namespace assay::session
