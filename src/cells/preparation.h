// Builds what answers share on a thread of its own, while cases run.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "cells/shared_build.h"

namespace assay::cells {

class Preparation {
 public:
  explicit Preparation(std::vector<SharedBuild>);
  Preparation(const Preparation&) = delete;

  // Until all is built.
  void wait();
  // Waits, and returns what went wrong and can pass. Whoever needs what does not compile meets the
  // same fault, and tells.
  std::vector<std::string> finish();

 private:
  std::vector<std::string> faults_;  // the builder's, until it has ended
  std::jthread builder_;
};

}  // namespace assay::cells
