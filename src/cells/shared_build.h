// A build that submissions to one challenge share: a baseline, or the implementations on which own
// tests run.
#pragma once

#include <functional>
#include <string>

namespace assay::cells {

// May run concurrently with others, on any thread.
struct SharedBuild {
  std::string name;
  std::function<void()> run;
};

}  // namespace assay::cells
