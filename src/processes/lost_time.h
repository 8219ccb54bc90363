// How much of a call's time went to other programs.
#pragma once

#include <sys/types.h>

#include <map>

namespace assay::processes {

// What the kernel says of a process at a moment, in seconds.
struct Scheduling {
  std::map<pid_t, double> queued;  // by thread: ready to run without a processor
  double processor = 0;            // of all threads
};

// The most that one of its threads was kept waiting between two moments, `wall_s` apart, by others
// than the process itself: what its `cores` had to give and it did not use bounds that. A process
// with more threads than cores keeps itself waiting.
double lost_seconds(const Scheduling& before, const Scheduling& now, double wall_s, int cores);

}  // namespace assay::processes
