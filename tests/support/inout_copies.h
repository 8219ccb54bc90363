// Copies of a case's inout buffers from before a call, for the judge.
#pragma once

#include <cstddef>
#include <vector>

#include "assay/challenge.h"

namespace assay::testing {

class InoutCopies {
 public:
  InoutCopies(const CasePlan& plan, BufferViews buffers)
      : bytes_(buffers.size()), views_(buffers.size()) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (plan.buffers[i].role != Role::inout) continue;
      const auto* const begin = static_cast<const std::byte*>(buffers[i].data);
      bytes_[i].assign(begin, begin + buffers[i].bytes);
      views_[i] = {bytes_[i].data(), bytes_[i].size()};
    }
  }
  InoutCopies(InoutCopies&&) = default;
  InoutCopies& operator=(InoutCopies&&) = default;

  BufferViews views() const { return views_; }

 private:
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<BufferView> views_;
};

}  // namespace assay::testing
