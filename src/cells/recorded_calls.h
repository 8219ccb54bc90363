// What a witness wrote into memory that hostile code shared, read with bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assay/challenge.h"

namespace assay::cells {

struct Recording {
  std::vector<std::byte> memory;    // that the calls refer to; a copy of nobody else's
  std::vector<RecordedCall> calls;  // each once, the latest first
  std::uint64_t dropped = 0;        // calls without room, or too many
  std::uint64_t strange = 0;        // with arguments by which no array could be read

  Recording() = default;
  Recording(Recording&&) = default;  // the memory stays where it is
  Recording& operator=(Recording&&) = default;
};

inline constexpr std::size_t kMostCalls = 1 << 14;  // different ones; further ones are dropped

// Ends before the first call that is none: what stands behind it is left out.
Recording read_recording(std::span<const std::byte>);

}  // namespace assay::cells
