// The parts of results.h as JSON. Reading expects what the schema permits; see scoreboard.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "assay/results.h"

namespace assay {

nlohmann::ordered_json to_json(const CellResult&);
nlohmann::ordered_json to_json(const Score&);
nlohmann::ordered_json to_json(const Machine&);

CellResult cell_from_json(const nlohmann::json&);
Score score_from_json(const nlohmann::json&);
Machine machine_from_json(const nlohmann::json&);

// Seeds are decimal strings: many JSON readers hold numbers as doubles, and lose their last bits.
std::uint64_t seed_from_json(const nlohmann::json&);

}  // namespace assay
