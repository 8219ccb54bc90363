// Evidence: one cell with all its measurements, in its own file. Also reads boards of schema 1,
// which held all evidence in one file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/results.h"

namespace assay {

struct Evidence {
  std::string run_id;  // the run that measured it; empty if unknown
  BoardEntry entry;
};

std::string evidence_text(const Evidence&);
Evidence parse_evidence(const std::string& text, const std::string& file);

// The first bytes of every evidence text of that run, and of no other run.
std::string evidence_start(const std::string& run_id);

// The cells of a board of schema 1. Throws Error naming `file`.
std::vector<BoardEntry> read_scoreboard_1(nlohmann::json, const std::string& file);

}  // namespace assay
