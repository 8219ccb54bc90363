#include "records/evidence.h"

#include <fmt/format.h>

#include "records/documents.h"
#include "records/json_text.h"
#include "records/old_forms.h"
#include "records/record_fields.h"
#include "records/record_json.h"
#include "spec/json_schema.h"

namespace assay {

using nlohmann::json;

std::string evidence_text(const Evidence& evidence) { return json_text(record_json(evidence)); }

Evidence parse_evidence(const std::string& text, const std::string& file) {
  return reading(file, [&] {
    json j = parse_json(text, file);
    require_schema(j, Scoreboard::kSchema);
    validate_json(j, document_schema("evidence"), file);
    bring_to_form_of_today(j, "");
    return record_from<Evidence>(j, "");
  });
}

std::string evidence_start(const std::string& run_id) {
  return fmt::format("{{\n \"schema\": {},\n \"kind\": \"cell\",\n \"run_id\": {},\n",
                     Scoreboard::kSchema, json(run_id).dump());
}

std::vector<BoardEntry> read_scoreboard_1(json j, const std::string& file) {
  return reading(file, [&] {
    require_schema(j, 1);
    validate_json(j, document_schema("scoreboard_1"), file);
    std::vector<BoardEntry> entries;
    for (json& entry : j.at("entries")) {
      const std::string place = fmt::format("/entries/{}", entries.size());
      bring_to_form_of_today(entry, place);
      entries.push_back(record_from<BoardEntry>(entry, place));
    }
    return entries;
  });
}

}  // namespace assay
