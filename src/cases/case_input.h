// One case: inputs drawn from a seed, and the reference. Several workers that share an input arena
// can run it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "assay/challenge.h"
#include "processes/arena.h"
#include "processes/layout.h"

namespace assay::cases {

// The part of a case that does not depend on the seed.
struct PlannedCase {
  const CaseSpec* spec = nullptr;
  CasePlan plan;
  processes::Layout layout;
};

// Throws ChallengeError (a mistake in the challenge) if an output is due in a phase that does not
// exist, or if phases follow a timed phase at whose end no output is due: work not due by then
// could be done while the clock is stopped.
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

  // Prepares one worker's output arena and the device arena: writes fresh poison and the first
  // contents of inout buffers and of the first phase's inputs, and hides those of later phases
  // again.
  void begin(std::byte* output, std::uint64_t poison_seed) const;
  // Makes the inputs of `phase` visible to the worker, and takes away those that end before it.
  void reveal(int phase) const;

  // Views for check() and callbacks(): the real inputs, and the outputs in the given arena. Views
  // of sparse buffers stay valid until another arena is given.
  std::vector<BufferView> views(std::byte* output) const;
  // What inout buffers hold when a worker begins; other views are empty.
  std::vector<BufferView> first_contents() const;
  std::byte* device() const { return device_; }

  const Challenge& challenge() const { return challenge_; }
  const PlannedCase& planned() const { return planned_; }
  const Reference& reference() const { return *reference_; }

 private:
  // True for buffers whose contents are not in the arena all the time: inputs of later phases or
  // with an end, and inouts.
  bool staged(std::size_t i) const;
  // The base of the arena that holds the buffer; `output` is the base of the output arena.
  std::byte* base(std::size_t i, std::byte* output) const;
  // Includes the windows of outputs if `output` is not null.
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
