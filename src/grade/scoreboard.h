// The files that results live in: the scoreboard (the newest measurement of every cell) and run
// files (one run as it happened). JSON, described by challenges/scoreboard.schema.json. SI units;
// keys in a fixed order; doubles survive a round trip; non-finite ones are "nan", "inf", "-inf".
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/results.h"

namespace assay {

struct GradedCell {
  CellResult cell;
  Score score;
};

struct RunFile {
  std::string run_id;
  std::string started_at;  // UTC, ISO 8601
  bool finished = false;
  nlohmann::json options = nlohmann::json::object();  // as given on the command line
  std::uint64_t seed = 0;
  Machine machine;
  std::string assay_version, assay_commit;
  std::vector<GradedCell> cells;
};

// One cell with its score, as it stands in both kinds of file.
nlohmann::ordered_json to_json(const CellResult&);
nlohmann::ordered_json to_json(const BoardEntry&);
CellResult cell_from_json(const nlohmann::json&);  // throws nlohmann's or assay's Error

// Documents. `file` names the source in errors. Parsing throws Error with the line, or the JSON
// pointer, and the cause; a newer schema is refused with the remedy.
std::string scoreboard_text(const Scoreboard&);
std::string run_text(const RunFile&);
Scoreboard parse_scoreboard(const std::string& text, const std::string& file);
RunFile parse_run(const std::string& text, const std::string& file);

Scoreboard load_scoreboard(const std::filesystem::path&);  // a missing file is an empty board
void save_scoreboard(const std::filesystem::path&, const Scoreboard&);
RunFile load_run(const std::filesystem::path&);
void save_run(const std::filesystem::path&, const RunFile&);

// Puts an entry in its place on the board. One that says less (no total, or a quick run) does not
// displace a full measurement of the same sources against the same spec. True when it was stored.
bool merge(Scoreboard&, BoardEntry);

// Draft-07 schema of one kind of document, "scoreboard" or "run".
std::string document_schema(const std::string& kind);

}  // namespace assay
