// Who answered, and how an answer came about: facts that are told beside a score and never scored.
// Of a model submissions/<model>/model.json, of an attempt attempt.json in its folder; both are
// optional, and described by challenges/entrant.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// What its owner says about a model. Texts are UTF-8 and short; "" where nothing is said.
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

// What is known of one attempt. Absent, or "", where it is not.
struct AttemptRecord {
  std::optional<std::int64_t> turns;       // answers of the model until the last one
  std::optional<std::int64_t> tokens_in;   // over all turns
  std::optional<std::int64_t> tokens_out;  // over all turns, reasoning included
  std::optional<double> seconds;           // wall clock, until the last answer was complete
  std::optional<double> cost_usd;
  std::string finish_reason;  // of the last turn, in the endpoint's word: "stop", "length"
  std::string command;        // what asked, such as a command line without its secrets
  std::string version;        // of that
  std::string date;           // UTC, ISO 8601
  std::optional<bool> hints;  // whether the model was told what was wrong with an earlier answer
  std::string prompt_sha256;  // of what it was asked, as `assay prompt` prints it; 64 hex digits
  std::optional<bool> prompt_hints;  // whether that was with --hints
  std::string language;   // "cpp" or "cuda"; where the attempt gave no answer: what was asked
  std::string no_answer;  // why there is no answer; "": there is one
  // Of what is stored, not on the board:
  std::string how;                    // how the files were found in what was received
  bool cut_off = false;               // what was received ends in the middle of a file
  std::vector<std::string> not_kept;  // parts of what was received that original/ lacks

  bool operator==(const AttemptRecord&) const = default;
  bool empty() const { return *this == AttemptRecord{}; }
};

}  // namespace assay
