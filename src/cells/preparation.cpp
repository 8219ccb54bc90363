#include "cells/preparation.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "util/stop.h"
#include "util/transient_fault.h"

namespace assay::cells {

Preparation::Preparation(std::vector<SharedBuild> builds) {
  builder_ = std::jthread([this, builds = std::move(builds)] {
    for (const SharedBuild& build : builds) {
      try {
        build.run();
      } catch (const TransientFault& fault) {  // may have passed by the time it is needed
        faults_.push_back(fmt::format("while building {}: {}", build.name, fault.what()));
      } catch (const std::exception&) {  // whoever needs the build meets it again
      } catch (const Stopped&) {         // the thread that waits for this one looks for itself
        return;
      }
    }
  });
}

void Preparation::wait() {
  if (builder_.joinable()) builder_.join();
}

std::vector<std::string> Preparation::finish() {
  wait();
  return std::exchange(faults_, {});
}

}  // namespace assay::cells
