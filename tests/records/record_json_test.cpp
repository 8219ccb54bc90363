#include "records/record_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_of.h"

namespace assay {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::StrEq;

struct Part {
  std::int64_t count = 0;
};

void fields(auto& f, auto& part) requires requires { part.count; }
{ f.required("count", part.count); }

std::string starts_with_n(const std::string& text) {
  return text.starts_with('n') ? "" : "expected an n";
}

struct Sample {
  std::string name = "n";
  std::optional<double> points;
  std::string version;
  std::string detail;
  std::optional<double> error;
  std::optional<Part> part;
  std::vector<Part> parts;
  double ratio = 0;
  std::string target = "native";
  int revision = 5;
};

void fields(auto& f, auto& sample) requires requires { sample.parts; }
{
  f.required("name", sample.name, starts_with_n);
  f.required("points", sample.points);
  f.object("program", [&](auto& program) { program.required("version", sample.version); });
  f.optional("detail", sample.detail);
  f.optional("error", sample.error);
  f.optional("part", sample.part);
  f.optional("parts", sample.parts);
  f.optional("ratio", sample.ratio);
  f.optional("target", sample.target, "native");
  f.added("revision", sample.revision, 0);
}

const char* const kLeast = R"({"name":"n","points":null,"program":{"version":""},"revision":5})";
const char* const kFull =
    R"({"name":"n","points":1.5,"program":{"version":"2"},"detail":"d","error":"inf",)"
    R"("part":{"count":1},"parts":[{"count":2},{"count":3}],"ratio":0.5,"target":"v3",)"
    R"("revision":7})";

Sample full_sample() {
  Sample s;
  s.points = 1.5;
  s.version = "2";
  s.detail = "d";
  s.error = HUGE_VAL;
  s.part = Part{1};
  s.parts = {Part{2}, Part{3}};
  s.ratio = 0.5;
  s.target = "v3";
  s.revision = 7;
  return s;
}

TEST(RecordJson, FieldsAreWrittenInOrderAndThoseThatSayNothingLeftOut) {
  EXPECT_EQ(record_json(Sample{}).dump(), kLeast);
  EXPECT_EQ(record_json(full_sample()).dump(), kFull);
}

TEST(RecordJson, WhatWasWrittenIsReadBack) {
  for (const char* text : {kLeast, kFull})
    EXPECT_EQ(record_json(record_from<Sample>(json::parse(text), "")).dump(), text);
}

TEST(RecordJson, WhatIsAbsentHasItsMeaning) {
  json j = json::parse(kFull);
  j.erase("revision");
  j.erase("target");
  j.erase("error");
  const auto sample = record_from<Sample>(j, "");
  EXPECT_EQ(sample.revision, 0);
  EXPECT_EQ(sample.target, "native");
  EXPECT_FALSE(sample.error);
}

TEST(RecordJson, EveryKeyOfARecordIsListed) {
  RecordKeys keys;
  Sample sample;
  fields(keys, sample);
  EXPECT_THAT(keys.required(), ElementsAre(StrEq("name"), StrEq("points"), StrEq("program")));
  EXPECT_EQ(keys.optional().size(), 7u);
}

// The error when reading with that value at that place, or without any value if `value` is
// discarded.
std::string error_with(const char* place, const json& value) {
  json j = json::parse(kFull);
  const json::json_pointer at(place);
  if (value.is_discarded()) {
    j[at.parent_pointer()].erase(at.back());
  } else {
    j[at] = value;
  }
  return error_of([&] { record_from<Sample>(j, "/x"); });
}

TEST(RecordJson, ErrorsNameThePlace) {
  const json none(json::value_t::discarded);
  EXPECT_EQ(error_with("/points", none), "at /x: points is missing");
  EXPECT_EQ(error_with("/program/version", none), "at /x/program: version is missing");
  EXPECT_EQ(error_with("/program/author", 1), "at /x/program/author: unknown");
  EXPECT_EQ(error_with("/beauty", 1), "at /x/beauty: unknown");
  EXPECT_EQ(error_with("/part/beauty", 1), "at /x/part/beauty: unknown");
  EXPECT_EQ(error_with("/parts/1/count", "3"),
            "at /x/parts/1/count: expected a whole number, 0 or more");
  EXPECT_EQ(error_with("/parts", 1), "at /x/parts: expected a list");
  EXPECT_EQ(error_with("/part", 1), "at /x/part: expected an object");
  EXPECT_EQ(error_with("/name", "m"), "at /x/name: expected an n");
}

TEST(RecordJson, OnlyWhatIsRequiredMayBeNull) {
  EXPECT_EQ(error_with("/points", nullptr), "no error");
  EXPECT_EQ(error_with("/error", nullptr), "at /x/error: expected a number");
  EXPECT_EQ(error_with("/part", nullptr), "at /x/part: expected an object");
}

TEST(RecordJson, ACountIsNoMoreThanItsTypeHolds) {
  EXPECT_EQ(error_with("/revision", 2147483647), "no error");
  EXPECT_EQ(error_with("/revision", 2147483648), "at /x/revision: too large");
}

}  // namespace
}  // namespace assay
