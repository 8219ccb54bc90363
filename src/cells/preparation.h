// Builds what submissions share on a background thread, while cases run.
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

  // Waits until everything is built.
  void wait();
  // Waits, and returns the transient faults. A build that does not compile is not reported here:
  // whoever needs it meets the same fault.
  std::vector<std::string> finish();

 private:
  std::vector<std::string> faults_;  // owned by the builder thread until it ends
  std::jthread builder_;
};

}  // namespace assay::cells
