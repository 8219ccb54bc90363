// The scoreboard: the newest measurement of every cell, graded, without the measurements
// themselves. JSON, described by challenges/scoreboard.schema.json: SI units, keys in a fixed
// order, a few lines a cell; doubles survive a round trip, and non-finite ones are "nan", "inf",
// "-inf".
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/results.h"

namespace assay {

// Documents. `file` names the source in errors. Parsing throws Error with the line, or the JSON
// pointer, and the cause; another schema is refused with the remedy.
std::string scoreboard_text(const Scoreboard&);
Scoreboard parse_scoreboard(const std::string& text, const std::string& file);
Scoreboard board_from_json(const nlohmann::json&, const std::string& file);

// One cell on one line, its machine with it.
std::string row_text(const BoardRow&);
BoardRow parse_row(const std::string& text, const std::string& place);

// Puts what is known today about models on the board, as far as it has results of them; an empty
// ModelInfo takes away what it says. Returns whether that changed anything.
bool describe(Scoreboard&, const std::map<std::string, ModelInfo>& today);

// What becomes of a cell that comes to a board.
enum class Arrival : std::uint8_t {
  added,     // the board had none
  replaced,  // it takes the place of another measurement; of one of an older revision always
  same,      // it is what the board has
  lesser,    // it says less (no total, or a quick run) than the full measurement, of the same
             // sources against the same spec, which stays
  older,     // the board's was measured later, or at a newer revision, and stays
};
Arrival arrival(const Scoreboard&, const BoardRow&);

inline bool is_placed(Arrival a) { return a == Arrival::added || a == Arrival::replaced; }

// Puts a row there, whatever was in its place, and what it says about its model.
void put(Scoreboard&, BoardRow);

// Puts a row in its place when that is where it belongs. To do so twice changes nothing more.
Arrival merge(Scoreboard&, BoardRow);

}  // namespace assay
