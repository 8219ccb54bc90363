#include "grade/evidence.h"

#include <fmt/format.h>

#include "grade/documents.h"
#include "grade/json_text.h"
#include "grade/results_json.h"
#include "results/entrant_json.h"
#include "spec/json_schema.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

Json head(const std::string& run_id) {
  return {{"schema", Scoreboard::kSchema}, {"kind", "cell"}, {"run_id", run_id}};
}

BoardEntry entry_from(const json& j) {
  BoardEntry e;
  e.cell = cell_from_json(j.at("cell"));
  e.score = score_from_json(j.at("score"));
  e.assay_version = j.at("assay").at("version");
  e.assay_commit = j.at("assay").at("commit");
  e.machine = machine_from_json(j.at("machine"));
  if (j.contains("model")) e.about = model_info_from(j.at("model"));
  if (j.contains("attempt")) e.attempt = attempt_record_from(j.at("attempt"));
  return e;
}

}  // namespace

std::string evidence_text(const Evidence& evidence) {
  const BoardEntry& e = evidence.entry;
  Json j = head(evidence.run_id);
  j["assay"] = {{"version", e.assay_version}, {"commit", e.assay_commit}};
  j["machine"] = to_json(e.machine);
  if (!e.about.empty()) j["model"] = to_json(e.about);
  if (const Json attempt = board_json(e.attempt); !attempt.empty()) j["attempt"] = attempt;
  j["score"] = to_json(e.score);
  j["cell"] = to_json(e.cell);
  return json_text(j);
}

Evidence parse_evidence(const std::string& text, const std::string& file) {
  return reading(file, [&] {
    const json j = parse_json(text, file);
    require_schema(j, Scoreboard::kSchema);
    validate_json(j, document_schema("evidence"), file);
    return Evidence{j.at("run_id"), entry_from(j)};
  });
}

std::string evidence_start(const std::string& run_id) {
  return fmt::format("{{\n \"schema\": {},\n \"kind\": \"cell\",\n \"run_id\": {},\n",
                     Scoreboard::kSchema, Json(run_id).dump());
}

std::vector<BoardEntry> read_scoreboard_1(const json& j, const std::string& file) {
  return reading(file, [&] {
    require_schema(j, 1);
    validate_json(j, document_schema("scoreboard_1"), file);
    std::vector<BoardEntry> entries;
    for (const json& e : j.at("entries")) entries.push_back(entry_from(e));
    return entries;
  });
}

}  // namespace assay
