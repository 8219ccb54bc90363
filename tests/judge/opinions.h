// Rubrics and opinions to test with.
#pragma once

#include <fmt/format.h>

#include <string>

#include "judge/opinion.h"

namespace assay::testing {

inline const std::string kTwoCriteria =
    R"({"schema": 1, "name": "short", "version": "2", "criteria": [
  {"key": "design", "title": "Design", "asks": "Is it well built?", "weight": 3},
  {"key": "clarity", "title": "Clarity", "asks": "Is it clear?", "weight": 1}]})";

inline judge::Rubric two_criteria() { return judge::parse_rubric(kTwoCriteria, "short.json"); }

inline std::string reply_with(const std::string& design, const std::string& clarity) {
  return fmt::format(
      R"({{"design": {{"mark": {}, "reason": "parts"}}, "clarity": {{"mark": {}, "reason": "names"}}}})",
      design, clarity);
}

inline judge::OpinionSample sample_of(unsigned number, double design, double clarity) {
  judge::OpinionSample sample;
  sample.number = number;
  sample.date = "2026-11-25T10:00:00Z";
  sample.seconds = 1.5;
  sample.reply.content = reply_with(fmt::format("{}", design), fmt::format("{}", clarity));
  sample.reply.finish_reason = "stop";
  sample.reply.tokens_in = 100;
  sample.marks = {{"design", design, "parts"}, {"clarity", clarity, "names"}};
  return sample;
}

inline judge::OpinionSample unread_sample(unsigned number) {
  judge::OpinionSample sample;
  sample.number = number;
  sample.reply.content = "I would rather not.";
  sample.problem = "no JSON object";
  return sample;
}

inline judge::Opinion opinion_on(const CellKey& key, double mark,
                                 const std::string& source_hash = "abc") {
  judge::Opinion o;
  o.judge = "judge";
  o.key = key;
  o.source_hash = source_hash;
  o.rubric = two_criteria();
  o.prompt = {"be fair", "look at this"};
  o.settings = {{"url", "http://localhost:1/v1/chat/completions"}, {"model", "org/judge"}};
  o.version = "0.1.0";
  o.samples = {sample_of(1, mark, mark)};
  return o;
}

}  // namespace assay::testing
