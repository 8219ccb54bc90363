// Validation of JSON documents against a draft-07 schema.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace assay {

// Parses `text`; throws Error naming `file`, line and column if it is not JSON.
nlohmann::json parse_json(std::string_view text, const std::string& file);

// Throws Error naming `file`, the JSON pointer and the cause of the first violation.
void validate_json(const nlohmann::json& document, std::string_view schema,
                   const std::string& file);

extern const std::string_view kSpecSchema;        // challenges/spec.schema.json
extern const std::string_view kPublicSchema;      // challenges/public.schema.json
extern const std::string_view kScoreboardSchema;  // challenges/scoreboard.schema.json
extern const std::string_view kMutantsSchema;     // challenges/mutants.schema.json
extern const std::string_view kRubricSchema;      // challenges/rubric.schema.json

}  // namespace assay
