// What a client asks to have graded: JSON -> a checked request.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/stages.h"
#include "spec/spec.h"
#include "submission/submission.h"

namespace assay::serve {

using Json = nlohmann::ordered_json;

struct GradeRequest {
  Submission answer;  // of an answer without code, `no_answer` says why: that is graded too
  std::string known_by;
  std::vector<check::Stage> stages;  // empty: the whole grade
  std::optional<std::uint64_t> seed;
  bool quick = false;
  std::string gpu;
  std::string client;  // the name that the client gave itself, "" for none
  int priority = 0;    // 0 to kHighestPriority, which goes first
  std::optional<double> deadline_s;
  bool use_cache = true;
};

// Parses a body. Throws ApiError 400 where it is no JSON, or is nested deeper than kDeepestJson.
Json parse_body(std::string_view);

// Throws ApiError: 404 for an unknown challenge, 422 for whatever else the request may not say,
// with the key and the remedy. `where` goes before the message: "tasks/3: ".
GradeRequest read_request(const Json&, std::span<const ChallengeSpec>,
                          const std::string& where = "");

// What makes two requests ask for the same: SHA-256 over the sources, the challenge with its spec,
// the stages, the seed (or that there is none) and the settings. `grader` names who grades.
std::string cache_key(const GradeRequest&, const ChallengeSpec&, const std::string& grader);

}  // namespace assay::serve
