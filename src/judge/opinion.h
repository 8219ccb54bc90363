// One judge's opinion on one submission: everything asked and replied, and the marks read from it.
// Kept beside the board, never as part of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "judge/marks.h"
#include "judge/prompt.h"
#include "judge/rubric.h"

namespace assay::judge {

// A reply as received. Absent counts were not reported.
struct RawReply {
  std::string content, reasoning, refusal, finish_reason;
  std::string id, model;  // as reported by the endpoint
  std::optional<std::int64_t> tokens_in, tokens_out;
};

struct OpinionSample {
  unsigned number = 1;
  std::string date;    // UTC, ISO 8601
  double seconds = 0;  // duration of the reply
  RawReply reply;
  std::vector<Mark> marks;  // empty if there is a problem
  std::string problem;      // why the reply does not count, "" if it does
};

struct Opinion {
  static constexpr int kSchema = 1;

  std::string judge;        // the name of its folder
  CellKey key;              // of the answer
  std::string source_hash;  // of the answer, as in BoardRow
  Rubric rubric;
  Prompt prompt;
  nlohmann::ordered_json settings;       // url, model, temperature ...: all that determines a reply
  std::string version;                   // of assay
  std::vector<OpinionSample> samples{};  // by number

  const OpinionSample* find(unsigned number) const;
  std::size_t counted() const;  // samples with marks
  // The mean over the samples that count, for one criterion and over all by weight. Nothing if none
  // counts.
  std::optional<double> mark(const std::string& criterion) const;
  std::optional<double> value() const;
};

// Whether both were asked the same: about the same answer, in the same words.
bool is_same_question(const Opinion&, const Opinion& other);
// Why the two cannot be combined, in words: "another rubric", "temperature was 0.0 and is 1.0"; ""
// if rubric and settings are the same.
std::string difference_of_terms(const Opinion& before, const Opinion& now);

// JSON. Parsing throws Error naming `file`, the cause and the remedy.
std::string opinion_text(const Opinion&);
Opinion parse_opinion(const std::string& text, const std::string& file);

}  // namespace assay::judge
