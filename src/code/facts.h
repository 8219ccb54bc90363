// Facts about a submission's code.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "assay/code_facts.h"

namespace assay::sources {

struct NamedSource {
  std::string_view name, text;
};

// Larger submissions are not read, which bounds the time and memory of reading.
inline constexpr std::size_t kMostBytes = 1u << 20;

// All facts except warnings. Nothing if there are no sources, or more than kMostBytes of them.
std::optional<CodeFacts> facts_of(const std::vector<NamedSource>&);

}  // namespace assay::sources
