// Readability facts of an answer's code, in words: shown beside a score.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/code_facts.h"

namespace assay::report {

inline constexpr const char* kCodeHeading = "code, not scored";

struct CodeFact {
  std::string name, text;  // one printable line each
};

// If the facts are unknown, one entry that says so.
std::vector<CodeFact> code_facts(const std::optional<CodeFacts>&);

}  // namespace assay::report
