// Turns a client's JSON into a checked request for a grade.
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
  Submission answer;  // without code, `no_answer` says why; it is graded too
  std::string known_by;
  std::vector<check::Stage> stages;  // empty: the whole grade
  std::optional<std::uint64_t> seed;
  bool quick = false;
  std::string gpu;
  std::string client;  // the name that the client gave itself, or ""
  int priority = 0;    // 0 to kHighestPriority, which goes first
  std::optional<double> deadline_s;
  bool use_cache = true;
};

// Parses a body. Throws ApiError 400 if it is not JSON, or nested deeper than kDeepestJson.
Json parse_body(std::string_view);

// Throws ApiError: 404 for an unknown challenge, 422 for any other invalid request, with the key
// and the remedy. `where` is put before the message: "tasks/3: ".
GradeRequest read_request(const Json&, std::span<const ChallengeSpec>,
                          const std::string& where = "");

// Equal for requests that ask for the same: a SHA-256 over the sources, the challenge with its
// spec, the stages, the seed (or its absence) and the settings. `grader` identifies the grader.
std::string cache_key(const GradeRequest&, const ChallengeSpec&, const std::string& grader);

}  // namespace assay::serve
