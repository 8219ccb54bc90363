// The generated part of the README.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"

namespace assay {

inline constexpr const char* kSectionBegin = "<!-- assay:begin -->";
inline constexpr const char* kSectionEnd = "<!-- assay:end -->";

// GitHub Markdown from the board and the specs alone, byte for byte the same for the same board.
// Names and details are escaped.
std::string ranking_section(const Scoreboard&, const std::vector<ChallengeSpec>&);

// `readme` with everything between the two marker lines replaced. Throws Error with the remedy when
// the markers do not each stand once, on lines of their own, in this order. `file` names the readme
// in errors.
std::string replace_section(const std::string& readme, const std::string& section,
                            const std::string& file = "README.md");

}  // namespace assay
