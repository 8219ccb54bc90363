// How an answer's code reads, in words: shown beside a score.
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

// One that says that it is not known, where it is not.
std::vector<CodeFact> code_facts(const std::optional<CodeFacts>&);

}  // namespace assay::report
