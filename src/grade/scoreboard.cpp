#include "grade/scoreboard.h"

#include <fmt/format.h>

#include <utility>

#include "grade/grade.h"
#include "grade/json_text.h"
#include "grade/results_json.h"
#include "spec/json_schema.h"
#include "util/files.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

Json assay_json(const std::string& version, const std::string& commit) {
  return {{"version", version}, {"commit", commit}};
}

BoardEntry entry_from_json(const json& j) {
  BoardEntry e;
  e.cell = cell_from_json(j.at("cell"));
  e.score = score_from_json(j.at("score"));
  e.assay_version = j.at("assay").at("version");
  e.assay_commit = j.at("assay").at("commit");
  e.machine = machine_from_json(j.at("machine"));
  return e;
}

// A file from the future cannot be judged by today's schema, so its number is looked at first.
void refuse_newer(const json& j, const std::string& file) {
  if (!j.is_object() || !j.contains("schema") || !j.at("schema").is_number_integer()) return;
  const auto schema = j.at("schema").get<std::int64_t>();
  if (schema <= Scoreboard::kSchema) return;
  throw Error(
      fmt::format("{}: written by a newer assay (schema {}); this one reads up to {}: "
                  "upgrade, or use another --results",
                  file, schema, Scoreboard::kSchema));
}

json parse_document(const std::string& text, const std::string& kind, const std::string& file) {
  json j = parse_json(text, file);
  refuse_newer(j, file);
  validate_json(j, document_schema(kind), file);
  return j;
}

// Runs `convert` on a valid document; what a schema cannot state still names the file.
template <class Convert>
auto converting(const std::string& file, Convert convert) {
  try {
    return convert();
  } catch (const json::exception& e) {
    throw Error(fmt::format("{}: {}", file, e.what()));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file, e.what()));
  }
}

bool is_full(const BoardEntry& e) { return e.score.total && !is_quick(e.score); }

bool same_subject(const BoardEntry& a, const BoardEntry& b) {
  return a.cell.build.source_hash == b.cell.build.source_hash &&
         a.cell.spec_hash == b.cell.spec_hash;
}

}  // namespace

Json to_json(const BoardEntry& e) {
  return {{"cell", to_json(e.cell)},
          {"score", to_json(e.score)},
          {"assay", assay_json(e.assay_version, e.assay_commit)},
          {"machine", to_json(e.machine)}};
}

std::string document_schema(const std::string& kind) {
  json schema = json::parse(kScoreboardSchema);
  schema.erase("oneOf");
  // "$ref" hides its siblings in draft-07, hence allOf.
  schema["allOf"] = json::array({{{"$ref", "#/definitions/" + kind}}});
  return schema.dump();
}

std::string scoreboard_text(const Scoreboard& board) {
  Json entries = Json::array();
  for (const auto& [key, entry] : board.entries) entries.push_back(to_json(entry));
  return json_text(
      Json{{"schema", Scoreboard::kSchema}, {"kind", "scoreboard"}, {"entries", entries}});
}

std::string run_text(const RunFile& run) {
  Json cells = Json::array();
  for (const GradedCell& c : run.cells) {
    cells.push_back(Json{{"cell", to_json(c.cell)}, {"score", to_json(c.score)}});
  }
  return json_text(Json{{"schema", Scoreboard::kSchema},
                        {"kind", "run"},
                        {"run_id", run.run_id},
                        {"started_at", run.started_at},
                        {"finished", run.finished},
                        {"options", Json::parse(run.options.dump())},
                        {"seed", std::to_string(run.seed)},
                        {"machine", to_json(run.machine)},
                        {"assay", assay_json(run.assay_version, run.assay_commit)},
                        {"cells", cells}});
}

Scoreboard parse_scoreboard(const std::string& text, const std::string& file) {
  const json j = parse_document(text, "scoreboard", file);
  return converting(file, [&] {
    Scoreboard board;
    for (const json& e : j.at("entries")) {
      BoardEntry entry = entry_from_json(e);
      const CellKey key = entry.cell.key;
      if (!board.entries.emplace(key, std::move(entry)).second) {
        throw Error(fmt::format("two entries for {} {} {} on {}", key.model, key.challenge,
                                key.attempt, to_string(key.device)));
      }
    }
    return board;
  });
}

RunFile parse_run(const std::string& text, const std::string& file) {
  const json j = parse_document(text, "run", file);
  return converting(file, [&] {
    RunFile run;
    run.run_id = j.at("run_id");
    run.started_at = j.at("started_at");
    run.finished = j.at("finished");
    run.options = j.at("options");
    run.seed = seed_from_json(j.at("seed"));
    run.machine = machine_from_json(j.at("machine"));
    run.assay_version = j.at("assay").at("version");
    run.assay_commit = j.at("assay").at("commit");
    for (const json& c : j.at("cells")) {
      run.cells.push_back({cell_from_json(c.at("cell")), score_from_json(c.at("score"))});
    }
    return run;
  });
}

Scoreboard load_scoreboard(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  return parse_scoreboard(read_file(path), path.string());
}

void save_scoreboard(const std::filesystem::path& path, const Scoreboard& board) {
  write_file_atomically(path, scoreboard_text(board));
}

RunFile load_run(const std::filesystem::path& path) {
  return parse_run(read_file(path), path.string());
}

void save_run(const std::filesystem::path& path, const RunFile& run) {
  write_file_atomically(path, run_text(run));
}

bool merge(Scoreboard& board, BoardEntry entry) {
  const auto old = board.entries.find(entry.cell.key);
  if (old != board.entries.end() && is_full(old->second) && !is_full(entry) &&
      same_subject(old->second, entry)) {
    return false;
  }
  const CellKey key = entry.cell.key;
  board.entries.insert_or_assign(key, std::move(entry));
  return true;
}

}  // namespace assay
