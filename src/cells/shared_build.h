// What answers to one challenge share and somebody has to build: a baseline, or the implementations
// that own tests are tried on.
#pragma once

#include <functional>
#include <string>

namespace assay::cells {

// May run beside others, on any thread.
struct SharedBuild {
  std::string name;
  std::function<void()> run;
};

}  // namespace assay::cells
