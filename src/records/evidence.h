// Evidence: one cell with all that was measured, as a file of its own, and the boards of schema 1,
// which held all of that in one file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/results.h"

namespace assay {

struct Evidence {
  std::string run_id;  // of the run that measured it; empty when that is not known
  BoardEntry entry;
};

std::string evidence_text(const Evidence&);
Evidence parse_evidence(const std::string& text, const std::string& file);

// How the text of every evidence of that run begins, and of no other run.
std::string evidence_start(const std::string& run_id);

// The cells of a board of schema 1. Throws Error naming `file`.
std::vector<BoardEntry> read_scoreboard_1(nlohmann::json, const std::string& file);

}  // namespace assay
