// The facts of an answer's code.
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

// More is not read: what answers bring is bounded, and so are the time and memory of reading it.
inline constexpr std::size_t kMostBytes = 1u << 20;

// All but the warnings. Nothing where there are no sources, or more than kMostBytes of them.
std::optional<CodeFacts> facts_of(const std::vector<NamedSource>&);

}  // namespace assay::sources
