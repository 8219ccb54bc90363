// Reads, with bounds checks, what a witness wrote into memory shared with hostile code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assay/challenge.h"

namespace assay::cells {

struct Recording {
  std::vector<std::byte> memory;    // a private copy that the calls refer to
  std::vector<RecordedCall> calls;  // distinct calls, latest first
  std::uint64_t dropped = 0;        // calls for lack of room, or over kMostCalls
  std::uint64_t strange = 0;        // calls whose arguments describe no readable array

  Recording() = default;
  Recording(Recording&&) = default;  // the memory stays where it is
  Recording& operator=(Recording&&) = default;
};

inline constexpr std::size_t kMostCalls = 1 << 14;  // distinct calls; more are dropped

// Stops at the first malformed call; everything after it is left out.
Recording read_recording(std::span<const std::byte>);

}  // namespace assay::cells
