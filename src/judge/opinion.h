// What one judge said of one answer: everything that was asked and replied, and the marks that were
// read from it. Kept beside the board, and never a part of it.
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

// A reply as it came. Absent counts were not told.
struct RawReply {
  std::string content, reasoning, refusal, finish_reason;
  std::string id, model;  // as the endpoint says
  std::optional<std::int64_t> tokens_in, tokens_out;
};

struct OpinionSample {
  unsigned number = 1;
  std::string date;    // UTC, ISO 8601
  double seconds = 0;  // that the reply took
  RawReply reply;
  std::vector<Mark> marks;  // empty with a problem
  std::string problem;      // why the reply counts as none, "" when it counts
};

struct Opinion {
  static constexpr int kSchema = 1;

  std::string judge;        // the name of its folder
  CellKey key;              // of the answer
  std::string source_hash;  // of the answer, as BoardRow has it
  Rubric rubric;
  Prompt prompt;
  nlohmann::ordered_json settings;       // url, model, temperature ...: all that decides a reply
  std::string version;                   // of assay
  std::vector<OpinionSample> samples{};  // by number

  const OpinionSample* find(unsigned number) const;
  std::size_t counted() const;  // samples with marks
  // The mean over the samples that count: of a criterion, and by weights of all. Nothing where none
  // counts.
  std::optional<double> mark(const std::string& criterion) const;
  std::optional<double> value() const;
};

// What `other` was asked is what this was asked: the same answer, in the same words.
bool is_same_question(const Opinion&, const Opinion& other);
// Why the two do not go together, in words: "another rubric", "temperature was 0.0 and is 1.0"; ""
// when rubric and settings are the same.
std::string difference_of_terms(const Opinion& before, const Opinion& now);

// JSON. Parsing throws Error that names `file`, the cause and the remedy.
std::string opinion_text(const Opinion&);
Opinion parse_opinion(const std::string& text, const std::string& file);

}  // namespace assay::judge
