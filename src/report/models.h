// Who was tested, as GitHub Markdown.
#pragma once

#include <cstddef>
#include <string>

#include "assay/results.h"

namespace assay::report {

// The models of the board and what is known of them, by name; references are left out. A sentence
// where there is none.
std::string models_table(const Scoreboard&, std::size_t most);

// What rows without a rank are; empty where the board has none.
std::string reference_note(const Scoreboard&);

}  // namespace assay::report
