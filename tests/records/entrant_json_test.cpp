#include "records/entrant_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "records/documents.h"
#include "spec/json_schema.h"
#include "support/error_of.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay {
namespace {

using nlohmann::json;
using testing::error_of;
using ::testing::HasSubstr;

std::string published_schema() {
  return read_file(testing::source_dir() + "/challenges/entrant.schema.json");
}

// The schema of one of the two files.
std::string schema_of_file(const std::string& kind) {
  json schema = json::parse(published_schema());
  schema.erase("anyOf");
  schema["$ref"] = "#/definitions/" + kind;
  return schema.dump();
}

bool is_valid(const json& document, const std::string& kind) {
  try {
    validate_json(document, schema_of_file(kind), "f");
    return true;
  } catch (const Error&) {
    return false;
  }
}

const char* const kModel = R"({"name": "Llama 3.3", "provider": "Meta", "parameters": "70B",
  "quantisation": "fp8", "harness": "vLLM 0.6", "date": "2026-11",
  "link": "https://example.org/x?y=z&q#a", "sample": true})";
const char* const kAttempt = R"({"turns": 3, "tokens_in": 1200, "tokens_out": 800, "seconds": 12.5,
  "cost_usd": 0.03, "finish_reason": "stop", "command": "assay ask --model x", "version": "0.1.0",
  "date": "2026-11-25T00:00:00Z", "language": "cuda", "no_answer": "refused", "how": "by hand",
  "hints": false, "prompt_hints": true,
  "prompt_sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
  "cut_off": true, "not_kept": ["a", "b/c"]})";

TEST(EntrantJson, EveryFactSurvivesARoundTrip) {
  const json model = json::parse(kModel), attempt = json::parse(kAttempt);
  EXPECT_EQ(json(to_json(model_info_from(model))), model);
  EXPECT_EQ(json(to_json(attempt_record_from(attempt))), attempt);
  EXPECT_TRUE(model_info_from(json::object()).empty());
  EXPECT_TRUE(attempt_record_from(json::object()).empty());
  EXPECT_EQ(to_json(ModelInfo{}).dump(), "{}");
  EXPECT_EQ(to_json(AttemptRecord{}).dump(), "{}");
}

TEST(EntrantJson, TheSchemaSaysTheSame) {
  EXPECT_TRUE(is_valid(json::parse(kModel), "model"));
  EXPECT_TRUE(is_valid(json::parse(kAttempt), "attempt"));
  // The examples contain every known field, so the schema does too.
  const json definitions = json::parse(published_schema())["definitions"];
  EXPECT_EQ(definitions["model"]["properties"].size(), json::parse(kModel).size());
  EXPECT_EQ(definitions["attempt"]["properties"].size(), json::parse(kAttempt).size());
}

TEST(EntrantJson, TheBoardHoldsTheSameFacts) {
  const json board = json::parse(kScoreboardSchema)["definitions"];
  const json own = json::parse(published_schema())["definitions"];
  EXPECT_EQ(board["model"], own["model"]);
  for (const auto& [key, value] : board["attempt"]["properties"].items())
    EXPECT_EQ(value, own["attempt"]["properties"][key]) << key;
  const json shown = json(board_json(attempt_record_from(json::parse(kAttempt))));
  EXPECT_EQ(shown.size(), board["attempt"]["properties"].size());
  EXPECT_FALSE(shown.contains("how"));
}

TEST(EntrantJson, WhatIsWrongIsNamed) {
  const std::map<std::string, std::string> wrong{
      {R"([])", "expected an object"},
      {R"({"nom": "x"})", "nom: unknown: a model has name, provider"},
      {R"({"name": 3})", "name: expected a text"},
      {R"({"name": "a\nb"})", "name: not plain text"},
      {R"({"name": "a\u202eb"})", "name: not plain text"},
      {R"({"name": ")" + std::string(81, 'x') + "\"}", "name: longer than 80 bytes"},
      {R"({"sample": "yes"})", "sample: expected true or false"},
      {R"({"date": "November"})", "date: expected 2026"},
      {R"x({"link": "javascript:alert(1)"})x", "link: expected an address"},
      {R"({"link": "https://x/ onclick"})", "link: expected an address"},
      {R"({"link": "https://x/](y"})", "link: expected an address"},
  };
  for (const auto& entry : wrong) {
    const std::string &text = entry.first, &cause = entry.second;
    EXPECT_THAT(error_of([&] { model_info_from(json::parse(text)); }), HasSubstr(cause)) << text;
    EXPECT_TRUE(text.find("\\n") != text.npos || text.find("\\u") != text.npos ||
                !is_valid(json::parse(text), "model"))
        << text;
  }
  const std::map<std::string, std::string> wrong_attempts{
      {R"({"turns": -1})", "turns: expected a whole number"},
      {R"({"turns": 1.5})", "turns: expected a whole number"},
      {R"({"seconds": -0.5})", "seconds: expected a number, 0 or more"},
      {R"({"seconds": "inf"})", "seconds: expected a number"},
      {R"({"language": "rust"})", "language: expected cpp or cuda"},
      {R"({"prompt_sha256": "0123abcd"})", "prompt_sha256: expected 64 hexadecimal digits"},
      {R"({"prompt_hints": 1})", "prompt_hints: expected true or false"},
      {R"({"not_kept": "x"})", "not_kept: expected a list"},
      {R"({"tokens": 1})", "tokens: unknown"},
  };
  for (const auto& entry : wrong_attempts) {
    const std::string &text = entry.first, &cause = entry.second;
    EXPECT_THAT(error_of([&] { attempt_record_from(json::parse(text)); }), HasSubstr(cause));
    EXPECT_FALSE(is_valid(json::parse(text), "attempt")) << text;
  }
}

TEST(EntrantJson, WhatIsWrittenCanBeRead) {
  AttemptRecord record;
  record.seconds = HUGE_VAL;
  record.cost_usd = -1;
  record.turns = -1;
  for (std::size_t length : {295u, 299u, 300u, 301u, 400u, 5000u}) {
    for (const char* piece : {"x", "\x01", "\xff", "\n", "\t", "\xe2\x82\xac", "\xe2\x80\xae"}) {
      record.command.clear();
      while (record.command.size() < length) record.command += piece;
      record.how = record.no_answer = record.command;
      record.not_kept.assign(200, record.command);
      const json written(to_json(record));
      EXPECT_FALSE(attempt_record_from(written).command.empty());
      EXPECT_EQ(json(to_json(attempt_record_from(written))), written);
      EXPECT_TRUE(is_valid(written, "attempt"));
    }
  }
}

}  // namespace
}  // namespace assay
