// A line of a kernel's source.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace assay::sim {

struct SourceLine {
  std::string file;        // as the compiler was given it; empty: `line` is one of the PTX
  std::uint32_t line = 0;  // from 1

  auto operator<=>(const SourceLine&) const = default;
};

}  // namespace assay::sim
