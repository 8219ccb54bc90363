// The scoreboard: the newest measurement of every cell, graded, without the measurements
// themselves. It is JSON, described by challenges/scoreboard.schema.json: SI units, keys in a fixed
// order, a few lines per cell. Doubles survive a round trip; non-finite ones are "nan", "inf",
// "-inf".
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/results.h"

namespace assay {

// Documents. `file` names the source in errors. Parsing throws Error with the line or the JSON
// pointer, and the cause; another schema is refused with the remedy.
std::string scoreboard_text(const Scoreboard&);
Scoreboard parse_scoreboard(const std::string& text, const std::string& file);
Scoreboard board_from_json(const nlohmann::json&, const std::string& file);

// One cell on one line, including its machine.
std::string row_text(const BoardRow&);
BoardRow parse_row(const std::string& text, const std::string& place);

// Records what is known today about models that have results on the board; an empty ModelInfo
// clears the entry. Returns whether anything changed.
bool describe(Scoreboard&, const std::map<std::string, ModelInfo>& today);

// What happens to a cell that arrives at a board.
enum class Arrival : std::uint8_t {
  added,     // the board had none
  replaced,  // it replaces another measurement; always one of an older revision that does not
             // compare with its own
  same,      // the board already has it
  lesser,    // it says less (no total, or a quick run) than the board's full measurement of the
             // same sources against the same spec, which stays
  older,     // the board's was measured later, or at a newer revision that does not compare, and
             // stays
};
Arrival arrival(const Scoreboard&, const BoardRow&);

inline bool is_placed(Arrival a) { return a == Arrival::added || a == Arrival::replaced; }

// Puts a row on the board, replacing any other, with what it says about its model.
void put(Scoreboard&, BoardRow);

// Puts a row on the board if it belongs there. Repeating this changes nothing.
Arrival merge(Scoreboard&, BoardRow);

}  // namespace assay
