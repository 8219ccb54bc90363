#include "check/check_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check_fixture.h"
#include "spec/json_schema.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay::check {
namespace {

using nlohmann::json;
using testing::ending;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::wrong;

class CheckReportTest : public ::testing::Test {
 protected:
  CheckReportTest() {
    published_.seed = 7;
    published_.about = {{"public_plain", "an ordinary call"}};
    whole_ = testing::spec_with({});
    whole_.resources.resize(1);
    whole_.resources[0].metric = "held";
  }
  Subject about() const {
    return {answer_, fixture_.spec_, whole_, published_, "its folder says so", "1.2.3"};
  }
  PublicCheck checked() {
    cells::CellRunner runner = fixture_.runner();
    return check_publicly(runner, fixture_.spec_, answer_);
  }
  static json valid(const std::string& text) {
    EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
    json document = json::parse(text);
    validate_json(document, read_file(testing::source_dir() + "/challenges/check.schema.json"),
                  "check");
    return document;
  }

  CheckFixture fixture_{public_copying()};
  Submission answer_ = CheckFixture::answer();
  PublicCases published_;
  ChallengeSpec whole_;
};

TEST_F(CheckReportTest, ARightAnswer) {
  const PublicCheck check = checked();
  const std::string text = check_text(check, about());
  EXPECT_THAT(text, HasSubstr("copying in C++ (its folder says so): all 4 public cases are right"));
  EXPECT_THAT(
      text,
      HasSubstr("0.50 times par's speed, 2.00 times naive's; indicative: the best of 3 rounds"));
  EXPECT_THAT(text,
              HasSubstr("memory    public_memory (shape of public_memory): scratch_bytes = "));
  const json j = valid(check_json(check, about()));
  EXPECT_EQ(j.at("passed"), true);
  EXPECT_EQ(j.at("verdict"), "OK");
  EXPECT_EQ(j.at("results").size(), 4u);
  EXPECT_NEAR(j.at("speed").at("over_par"), 0.5, 1e-6);
  EXPECT_EQ(j.at("feedback"), text);
}

TEST_F(CheckReportTest, AWrongOneSaysWhereAndHowMuch) {
  fixture_.fails("public_plain", wrong());
  fixture_.fails("public_more", CheckFixture::not_supported());
  const PublicCheck check = checked();
  const std::string text = check_text(check, about());
  EXPECT_THAT(text, HasSubstr("1 of 3 public cases are wrong\n"
                              "  public_plain (core): WA (wrong answer)\n"
                              "    about     an ordinary call\n"
                              "    shape     shape of public_plain\n"
                              "    detail    not a copy\n"
                              "    error     0.25, allowed 1\n"));
  EXPECT_THAT(text, HasSubstr("left out  more: optional"));
  EXPECT_THAT(text, HasSubstr("not timed: required cases are wrong"));
  const json j = valid(check_json(check, about()));
  EXPECT_EQ(j.at("wrong"), 1);
  EXPECT_EQ(j.at("left_out"), json::array({"more"}));
  EXPECT_EQ(j.at("results")[0].at("detail"), "not a copy");
  EXPECT_TRUE(j.at("speed").at("seconds").is_null());
}

TEST_F(CheckReportTest, WhatDoesNotCompileShowsTheCompilersWords) {
  fixture_.world_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::build_error;
    result.record.command = "g++ -O3 submission.cpp";
    result.record.log = "submission.cpp:1: error: 'y' was not declared\n\x1b[2J";
    return result;
  };
  const PublicCheck check = checked();
  const std::string text = check_text(check, about());
  EXPECT_THAT(text, HasSubstr("it does not build: CE (does not compile)\n  g++ -O3 submission.cpp\n"
                              "  submission.cpp:1: error: 'y' was not declared\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  const json j = valid(check_json(check, about()));
  EXPECT_EQ(j.at("compiled"), false);
  EXPECT_THAT(j.at("build_log").get<std::string>(), Not(HasSubstr("\x1b")));
}

TEST_F(CheckReportTest, AFileThatMissesItsHeadersIsToldOfItsFolder) {
  fixture_.world_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::build_error;
    result.record.log = "submission.cpp:2:10: fatal error: parts.h: No such file or directory";
    return result;
  };
  const PublicCheck check = checked();
  Subject subject = about();
  EXPECT_THAT(check_text(check, subject), Not(HasSubstr("name its folder")));
  subject.alone = true;
  EXPECT_THAT(check_text(check, subject), HasSubstr("name its folder"));
}

TEST_F(CheckReportTest, FeedbackIsBoundedAndPrintable) {
  PublicCheck check = checked();
  CaseResult bad = check.cell.cases[0];
  bad.verdict = Verdict::wrong_answer;
  bad.detail = std::string(100'000, 'x') + "\x1b\xff";
  bad.shape = "a\nshape";
  for (int i = 0; i < 300; ++i) {
    bad.name = "public_" + std::to_string(i);
    check.cell.cases.push_back(bad);
  }
  const std::string text = check_text(check, about());
  EXPECT_LE(text.size(), kFeedbackBytes);
  EXPECT_THAT(text, HasSubstr("300 of 304 public cases are wrong"));
  EXPECT_TRUE(text.ends_with("other seeds.\n"));
  const json j = valid(check_json(check, about()));
  EXPECT_LE(j.at("feedback").get<std::string>().size(), kFeedbackBytes);
  EXPECT_THAT(check_text(check, about(), 300), HasSubstr("... (cut)\n"));
  EXPECT_LE(check_text(check, about(), 300).size(), 300u);
}

TEST_F(CheckReportTest, ALibraryThatDoesNotLoadIsToldOnce) {
  fixture_.world_.libraries["answer"].load = {.verdict = Verdict::load_error,
                                              .detail = "no symbol"};
  const std::string text = check_text(checked(), about());
  EXPECT_EQ(text.find("no symbol"), text.rfind("no symbol"));
  EXPECT_THAT(text, HasSubstr("also wrong: public_more, public_memory"));
}

TEST_F(CheckReportTest, FindingsAreListed) {
  PublicCheck check = checked();
  check.cell.cases[0].verdict = Verdict::device_error;
  check.cell.cases[0].detail = "k: block (0,0,0), thread (1,0,0), submission.cu:7: reads 4 bytes";
  const json j = valid(check_json(check, about()));
  ASSERT_EQ(j.at("findings").size(), 1u);
  EXPECT_EQ(j.at("findings")[0].at("case"), "public_plain");
  EXPECT_THAT(j.at("findings")[0].at("text").get<std::string>(), HasSubstr("submission.cu:7"));
}

}  // namespace
}  // namespace assay::check
