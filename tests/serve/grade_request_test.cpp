#include "serve/grade_request.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"
#include "serve/limits.h"
#include "serve/service_fixture.h"
#include "util/files.h"

namespace assay::serve {
namespace {

using testing::copying_specs;
using ::testing::HasSubstr;
using testing::request_for;

ApiError refusal_of(const Json& request) {
  const auto specs = copying_specs();
  try {
    read_request(request, specs);
  } catch (const ApiError& e) {
    return e;
  }
  return {0, "taken", ""};
}

std::string message_of(const Json& request) {
  const ApiError refused = refusal_of(request);
  EXPECT_EQ(refused.status, 422) << refused.what();
  return refused.what();
}

Json with(const char* key, const Json& value) {
  Json request = request_for("int x;");
  request[key] = value;
  return request;
}

TEST(GradeRequest, FilesBecomeASubmission) {
  const auto specs = copying_specs();
  Json json = request_for("int x;");
  json["files"]["b.h"] = "b";
  json["files"]["a.h"] = "a";
  json["files"]["test.cpp"] = "tests";
  const GradeRequest request = read_request(json, specs);
  ASSERT_EQ(request.answer.sources.size(), 3u);
  EXPECT_EQ(request.answer.sources[0].name, "submission.cpp");
  EXPECT_EQ(request.answer.sources[1].name, "a.h");
  EXPECT_EQ(request.answer.test_source, "tests");
  EXPECT_EQ(request.answer.challenge, "copying");
  EXPECT_EQ(request.answer.language, Language::cpp);
  EXPECT_TRUE(request.stages.empty());
  EXPECT_FALSE(request.seed);
  EXPECT_TRUE(request.use_cache);
}

TEST(GradeRequest, TheSourceHashIsThatOfTheSameFilesInAFolder) {
  const auto specs = copying_specs();
  const assay::testing::TemporaryFolder folder;
  Json json = request_for("int x;");
  json["files"]["a.h"] = "a";
  json["files"]["test.cpp"] = "tests";
  for (const auto& [name, contents] : json["files"].items())
    write_file_atomically(folder.path / name, contents.get<std::string>());
  EXPECT_EQ(source_hash(read_request(json, specs).answer),
            source_hash(read_submissions(folder.path, "m", "copying", "").front()));
}

TEST(GradeRequest, AChatAnswerIsReadAsElsewhere) {
  const auto specs = copying_specs();
  const GradeRequest request =
      read_request({{"challenge", "copying"}, {"chat", "Here:\n```cpp\nint x;\n```\n"}}, specs);
  EXPECT_EQ(request.answer.sources.front().contents, "int x;\n");
  EXPECT_THAT(request.known_by, HasSubstr("line 2"));
}

TEST(GradeRequest, AChatAnswerWithoutCodeIsNoAnswerRatherThanAnError) {
  const auto specs = copying_specs();
  const GradeRequest request =
      read_request({{"challenge", "copying"}, {"chat", "I cannot help."}}, specs);
  EXPECT_NE(request.answer.no_answer, "");
  EXPECT_TRUE(request.answer.sources.empty());
}

TEST(GradeRequest, NorIsAChatAnswerThatRepeatsItselfForEver) {
  const auto specs = copying_specs();
  std::string chat;
  for (int i = 0; i < 2000; ++i) chat += "```cpp\nint x;\n```\n";
  const GradeRequest request = read_request({{"challenge", "copying"}, {"chat", chat}}, specs);
  EXPECT_THAT(request.answer.no_answer, ::testing::HasSubstr("fenced blocks"));
}

TEST(GradeRequest, SettingsAreRead) {
  const auto specs = copying_specs();
  Json json = request_for("int x;");
  json["stages"] = {"time", "core", "core"};
  json["seed"] = "18446744073709551615";
  json["client"] = "trainer";
  json["priority"] = 3;
  json["deadline_s"] = 1.5;
  json["quick"] = true;
  json["cache"] = false;
  const GradeRequest request = read_request(json, specs);
  EXPECT_EQ(request.stages, (std::vector{check::Stage::core, check::Stage::time}));
  EXPECT_EQ(request.seed, 18446744073709551615u);
  EXPECT_EQ(request.client, "trainer");
  EXPECT_EQ(request.priority, 3);
  EXPECT_EQ(request.deadline_s, 1.5);
  EXPECT_TRUE(request.quick);
  EXPECT_FALSE(request.use_cache);
}

TEST(GradeRequest, WhatItMayNotSayIsRefusedByName) {
  EXPECT_THAT(message_of(Json::array()), HasSubstr("object"));
  EXPECT_THAT(message_of(with("chalenge", "x")), HasSubstr("did you mean 'challenge'"));
  EXPECT_THAT(message_of(with("chat", "x")), HasSubstr("either files or chat"));
  EXPECT_THAT(message_of({{"challenge", "copying"}}), HasSubstr("either files or chat"));
  EXPECT_THAT(message_of(with("language", "rust")), HasSubstr("language"));
  EXPECT_THAT(message_of(with("language", "cuda")), HasSubstr("submission.cu is missing"));
  EXPECT_THAT(message_of(with("stages", {"compile"})), HasSubstr("stages"));
  EXPECT_THAT(message_of(with("stages", Json::array())), HasSubstr("stages"));
  EXPECT_THAT(message_of(with("seed", -1)), HasSubstr("seed"));
  EXPECT_THAT(message_of(with("seed", "18446744073709551616")), HasSubstr("seed"));
  EXPECT_THAT(message_of(with("priority", 10)), HasSubstr("priority"));
  EXPECT_THAT(message_of(with("priority", 0.5)), HasSubstr("priority"));
  EXPECT_THAT(message_of(with("deadline_s", "soon")), HasSubstr("deadline_s"));
  EXPECT_THAT(message_of(with("quick", 1)), HasSubstr("quick"));
  EXPECT_THAT(message_of(with("gpu", "H201")), HasSubstr("gpu"));
  EXPECT_THAT(message_of(with("client", "two\nlines")), HasSubstr("client"));
  EXPECT_EQ(refusal_of(with("challenge", "copyng")).status, 404);
}

TEST(GradeRequest, NamesOfFilesAreThoseOfSubmissions) {
  const auto named = [](const std::string& name) {
    Json request = request_for("int x;");
    request["files"][name] = "";
    return message_of(request);
  };
  EXPECT_THAT(named("../x.h"), HasSubstr("names may not start"));
  EXPECT_THAT(named("a/x.h"), HasSubstr("names consist of"));
  EXPECT_THAT(named("x.so"), HasSubstr("sources"));
  EXPECT_THAT(named("abi.h"), HasSubstr("abi.h"));
  EXPECT_THAT(named("notes.md"), HasSubstr("end in"));
}

TEST(GradeRequest, NumberAndSizeOfFilesAreBounded) {
  Json many = request_for("int x;");
  for (std::size_t i = 0; i < kMostSources; ++i) many["files"]["x" + std::to_string(i) + ".h"] = "";
  EXPECT_THAT(message_of(many), HasSubstr("at most 64"));
  EXPECT_THAT(message_of(request_for(std::string(kLargestSource + 1, ' '))), HasSubstr("4 MiB"));
}

TEST(ParseBody, RefusesWhatIsNoJson) {
  for (const char* body : {"", "{", "{} {}", "\xff"}) {
    try {
      parse_body(body);
      ADD_FAILURE() << body;
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status, 400);
      EXPECT_EQ(e.code, "invalid_json");
    }
  }
}

TEST(ParseBody, DepthIsBounded) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_body(nested(kDeepestJson)));
  for (const std::string& body : {nested(kDeepestJson + 1), std::string(1 << 20, '[')}) {
    try {
      parse_body(body);
      ADD_FAILURE();
    } catch (const ApiError& e) {
      EXPECT_EQ(e.code, "json_too_deep");
    }
  }
}

TEST(ParseBody, AnObjectHasSoManyKeysAndNoMore) {
  const auto object = [](std::size_t keys) {
    std::string text = "{";
    for (std::size_t i = 0; i < keys; ++i)
      text += fmt::format("{}\"k{}\":{{}}", i == 0 ? "" : ",", i);
    return text + "}";
  };
  EXPECT_NO_THROW(parse_body(object(kMostKeys)));
  EXPECT_NO_THROW(parse_body("[" + object(kMostKeys) + "," + object(kMostKeys) + "]"));
  try {
    parse_body(object(kMostKeys + 1));
    ADD_FAILURE();
  } catch (const ApiError& e) {
    EXPECT_EQ(e.code, "too_many_keys");
  }
}

TEST(CacheKey, TellsApartWhatDiffersInTheResult) {
  const auto specs = copying_specs();
  const auto key = [&](const Json& json, const std::string& grader = "g") {
    return cache_key(read_request(json, specs), specs.front(), grader);
  };
  const std::string plain = key(request_for("int x;"));
  EXPECT_EQ(plain, key(request_for("int x;", "somebody else")));
  EXPECT_EQ(plain, key(with("priority", 3)));
  for (const std::string& other :
       {key(request_for("int y;")), key(with("seed", 1)), key(with("stages", {"build"})),
        key(with("quick", true)), key(request_for("int x;"), "another")}) {
    EXPECT_NE(plain, other);
  }
}

}  // namespace
}  // namespace assay::serve
