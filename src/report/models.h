// The models that were tested, as GitHub Markdown.
#pragma once

#include <cstddef>
#include <string>

#include "assay/results.h"

namespace assay::report {

// The models of the board and what is known of them, by name, without references. A sentence if
// there are none.
std::string models_table(const Scoreboard&, std::size_t most);

// Explains rows without a rank; empty if the board has none.
std::string reference_note(const Scoreboard&);

}  // namespace assay::report
