// Who answered, and how an answer came about. These facts are shown beside a score and never
// scored. A model's are in submissions/<model>/model.json, an attempt's in attempt.json in its
// folder. Both files are optional; challenges/entrant.schema.json describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// What the submitter says about a model. Texts are UTF-8 and short; "": not stated.
struct ModelInfo {
  std::string name;          // for people: "Llama 3.3"
  std::string provider;      // who offers or made it
  std::string parameters;    // how many: "70B", "671B, 37B active"
  std::string quantisation;  // "fp8", "Q4_K_M"
  std::string harness;       // what ran it: an agent's name and version
  std::string date;          // of its release or of the answers: 2026, 2026-11 or 2026-11-25
  std::string link;          // http:// or https://
  bool sample = false;       // not a model but a reference: shown, never ranked among models

  bool operator==(const ModelInfo&) const = default;
  bool empty() const { return *this == ModelInfo{}; }
};

// What is known of one attempt. Unknown fields are absent or "".
struct AttemptRecord {
  std::optional<std::int64_t> turns;       // answers of the model until the last one
  std::optional<std::int64_t> tokens_in;   // over all turns
  std::optional<std::int64_t> tokens_out;  // over all turns, reasoning included
  std::optional<double> seconds;           // wall clock, until the last answer was complete
  std::optional<double> cost_usd;
  std::string finish_reason;  // of the last turn, in the endpoint's words: "stop", "length"
  std::string command;        // what made the requests, such as a command line without its secrets
  std::string version;        // of that program
  std::string date;           // UTC, ISO 8601
  std::optional<bool> hints;  // whether the model was told what was wrong with an earlier answer
  std::string prompt_sha256;  // of the prompt, as `assay prompt` prints it; 64 hex digits
  std::optional<bool> prompt_hints;  // whether that prompt was made with --hints
  std::string language;   // "cpp" or "cuda"; for an attempt without an answer, what was asked for
  std::string no_answer;  // why there is no answer; "": there is one
  // Only in the stored file, not on the board:
  std::string how;                    // how the files were found in the response
  bool cut_off = false;               // the response ends in the middle of a file
  std::vector<std::string> not_kept;  // parts of the response that original/ lacks

  bool operator==(const AttemptRecord&) const = default;
  bool empty() const { return *this == AttemptRecord{}; }
};

}  // namespace assay
