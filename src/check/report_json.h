// What the documents about one answer have in common.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/results.h"

namespace assay::check {

// Text of a stranger's: printable, at most so many lines.
std::string safe(const std::string& text, std::size_t lines);

// Faults of the harness, not of the answer: what was tried once more after them stands, and so do
// points of tests that found one in what is shipped as right.
nlohmann::ordered_json faults_json(const CellResult&);

}  // namespace assay::check
