// One case with inputs drawn from a seed and its reference, ready to be run by several workers that
// share an input arena.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "assay/challenge.h"
#include "processes/arena.h"
#include "processes/layout.h"

namespace assay::cases {

// What does not depend on the seed.
struct PlannedCase {
  const CaseSpec* spec = nullptr;
  CasePlan plan;
  processes::Layout layout;
};

// Throws ChallengeError, the challenge's mistake, where outputs are due in no phase that there
// is, or where a case goes on after its timed phase although that owes nothing: what is not due
// then can be done when the clock stands.
PlannedCase plan_case(const Challenge&, const CaseSpec&,
                      processes::Memory = processes::Memory::host, std::size_t skew = 0);

class CaseInput {
 public:
  // References stay valid for the life of the object. `arena` holds at least layout.input_bytes,
  // `device` at least layout.device_bytes.
  CaseInput(const Challenge&, const PlannedCase&, std::byte* arena, std::byte* device = nullptr);

  // Writes the inputs, drawn from Seeds(seed), and computes the reference. No worker may be
  // running.
  void draw(std::uint64_t seed);

  // Readies one worker's output arena and the device's: fresh poison, first contents of inout
  // buffers; inputs of later phases are hidden again.
  void begin(std::byte* output, std::uint64_t poison_seed) const;
  // Shows the inputs of `phase`.
  void reveal(int phase) const;

  // Views for check() and callbacks(): true inputs, and outputs in the given arena. Those of sparse
  // buffers hold until another arena is given.
  std::vector<BufferView> views(std::byte* output) const;
  // What inout buffers hold when a worker begins; other views are empty.
  std::vector<BufferView> first_contents() const;
  std::byte* device() const { return device_; }

  const Challenge& challenge() const { return challenge_; }
  const PlannedCase& planned() const { return planned_; }
  const Reference& reference() const { return *reference_; }

 private:
  // Buffers whose contents are not in the arena from the start: inputs of later phases and inouts.
  bool staged(std::size_t i) const;
  // The arena of a buffer, given that of outputs.
  std::byte* base(std::size_t i, std::byte* output) const;
  // With those of outputs in the arena, if there is one.
  const processes::Windows& windows(std::byte* output) const;

  const Challenge& challenge_;
  const PlannedCase& planned_;
  std::byte *arena_, *device_;
  std::vector<std::unique_ptr<std::byte[]>> staging_;  // per buffer, null when not staged
  std::unique_ptr<Reference> reference_;
  mutable std::optional<processes::Windows> windows_;
  mutable std::byte* windows_output_ = nullptr;
};

}  // namespace assay::cases
