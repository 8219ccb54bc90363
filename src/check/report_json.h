// Shared parts of the JSON documents about one submission.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/results.h"

namespace assay::check {

// Makes untrusted text printable, with at most `lines` lines.
std::string safe(const std::string& text, std::size_t lines);

// Faults of the harness, not of the submission. Results stand if retried after a fault; so do the
// points of tests that found a fault in an implementation shipped as correct.
nlohmann::ordered_json faults_json(const CellResult&);

}  // namespace assay::check
