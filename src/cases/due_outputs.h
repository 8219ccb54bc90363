// Outputs of one run, as they were when they were due.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/challenge.h"
#include "cases/case_input.h"
#include "util/reserved_memory.h"

namespace assay::cases {

// Outputs due before the last phase are copied when due, because later phases can overwrite them.
class DueOutputs {
 public:
  // `buffers`: all of the case's buffers, in the worker's arenas. The case must outlive this.
  DueOutputs(const PlannedCase& planned, std::vector<BufferView> buffers)
      : planned_(planned), buffers_(std::move(buffers)) {}

  // Whether an output is due when the phase ends.
  bool any(int phase) const;
  // Copies the outputs due when the phase ends.
  void take(int phase);

  // All buffers: copies of the outputs taken so far, the others in the worker's arenas.
  BufferViews buffers() const { return buffers_; }

  // The current contents of everything the submission may write to.
  using Contents = std::vector<std::vector<std::byte>>;
  Contents contents() const;
  // The first buffer that has changed, or "".
  std::string changed_since(const Contents& before) const;

  // The output bytes that must be the same in two runs.
  std::vector<std::byte> compared() const;

 private:
  bool is_due(std::size_t i, int phase) const;
  void append(std::size_t i, std::vector<std::byte>& to) const;

  const PlannedCase& planned_;
  std::vector<BufferView> buffers_;
  std::vector<ReservedMemory> copies_;
};

}  // namespace assay::cases
