// Outputs of one run as they stood when they were due.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/challenge.h"
#include "cases/case_input.h"
#include "util/reserved_memory.h"

namespace assay::cases {

// What was due before the last phase is copied then, because later phases can write there.
class DueOutputs {
 public:
  // `buffers`: all of the case, where the worker has them. The case must outlive this.
  DueOutputs(const PlannedCase& planned, std::vector<BufferView> buffers)
      : planned_(planned), buffers_(std::move(buffers)) {}

  // Whether an output is due when the phase ends.
  bool any(int phase) const;
  // Copies those that are.
  void take(int phase);

  // All buffers: copies of outputs that were taken, the others where the worker has them.
  BufferViews buffers() const { return buffers_; }

  // All that the submission may write to, as it stands.
  using Contents = std::vector<std::vector<std::byte>>;
  Contents contents() const;
  // The first buffer that is not as it was, or "".
  std::string changed_since(const Contents& before) const;

  // The bytes of outputs that two runs must agree in.
  std::vector<std::byte> compared() const;

 private:
  bool is_due(std::size_t i, int phase) const;
  void append(std::size_t i, std::vector<std::byte>& to) const;

  const PlannedCase& planned_;
  std::vector<BufferView> buffers_;
  std::vector<ReservedMemory> copies_;
};

}  // namespace assay::cases
