// The requests, on a scripted endpoint and a virtual clock.
#include "judge/judging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "opinions.h"
#include "scripted.h"

namespace assay::judge {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::reply_with;
using testing::says;
using testing::ScriptedTransport;
using ::testing::SizeIs;
using testing::Step;
using testing::two_criteria;
using testing::VirtualClock;

class Judging : public ::testing::Test {
 protected:
  Judging() {
    endpoint.url = "http://localhost:1/v1/chat/completions";
    endpoint.key = "key-of-twelve";
    endpoint.key_variable = "THE_KEY";
    endpoint.chat.model = "org/judge";
    endpoint.chat.stream = false;
  }

  static Question question(unsigned number, const std::string& model = "m") {
    return {{model, "kv_cache", "", Device::cpu}, {"be fair", "look at " + model}, number};
  }

  JudgeResult judge(ScriptedTransport& transport, const std::vector<Question>& questions) {
    JudgeWorld world{transport,
                     clock,
                     [this](const Question& q, const OpinionSample& s) {
                       if (store_fails) throw Error("no room");
                       stored.emplace_back(q.key.model, s);
                     },
                     [](const std::string&) { return std::shared_ptr<void>(); },
                     [this](const std::string& line) { lines.push_back(line); },
                     [this](const std::string& line) { lines.push_back(line); }};
    return judge_all(questions, two_criteria(), endpoint, 1, world);
  }

  ask::Endpoint endpoint;
  VirtualClock clock;
  bool store_fails = false;
  std::vector<std::pair<std::string, OpinionSample>> stored;
  std::vector<std::string> lines;
};

TEST_F(Judging, AReplyBecomesMarks) {
  endpoint.chat.seed = 5;
  ScriptedTransport transport({says(reply_with("8", "4")), says("Sorry, no.")});
  const JudgeResult result = judge(transport, {question(1), question(2)});
  EXPECT_EQ(result.with_marks, 1U);
  EXPECT_EQ(result.without_marks, 1U);
  EXPECT_EQ(result.not_obtained, 0U);
  EXPECT_EQ(result.spent.tokens_in, 20);
  ASSERT_THAT(stored, SizeIs(2));
  EXPECT_THAT(stored[0].second.marks,
              ElementsAre(Mark{"design", 8, "parts"}, Mark{"clarity", 4, "names"}));
  EXPECT_EQ(stored[0].second.reply.content, reply_with("8", "4"));
  EXPECT_EQ(stored[0].second.reply.tokens_out, 3);
  // An unreadable reply is kept as it came.
  EXPECT_THAT(stored[1].second.problem, HasSubstr("no JSON object"));
  EXPECT_EQ(stored[1].second.reply.content, "Sorry, no.");
  EXPECT_EQ(stored[1].second.number, 2U);
  EXPECT_THAT(lines, Contains(HasSubstr("m/kv_cache sample 1: 7.0 of 10")));
  EXPECT_THAT(lines, Contains(HasSubstr("m/kv_cache sample 2: no marks: no JSON object")));
  EXPECT_EQ(transport.body(0)["messages"][0]["role"], "system");
  EXPECT_EQ(transport.body(0)["messages"][1]["content"], "look at m");
  EXPECT_EQ(transport.body(0)["seed"], 5);
  EXPECT_EQ(transport.body(1)["seed"], 6);
}

TEST_F(Judging, ARefusalIsNoOpinion) {
  ScriptedTransport transport(
      {{.body = R"({"choices": [{"message": {"content": null, "refusal": "I can't"}}]})"}});
  EXPECT_EQ(judge(transport, {question(1)}).without_marks, 1U);
  EXPECT_THAT(stored.at(0).second.problem, HasSubstr("refused: I can't"));
}

TEST_F(Judging, WhatPassesIsAskedAgain) {
  ScriptedTransport transport({{.status = 503, .body = "busy"}, says(reply_with("8", "4"))});
  const JudgeResult result = judge(transport, {question(1)});
  EXPECT_EQ(result.with_marks, 1U);
  EXPECT_EQ(result.spent.failures, 1U);
  EXPECT_THAT(clock.slept, SizeIs(1));
}

TEST_F(Judging, WhatConcernsOneEndsOneAndWhatConcernsAllEndsAll) {
  ScriptedTransport one({{.status = 400, .body = "too long"}, says(reply_with("8", "4"))});
  JudgeResult result = judge(one, {question(1, "a"), question(1, "b")});
  EXPECT_EQ(result.not_obtained, 1U);
  EXPECT_EQ(result.with_marks, 1U);
  EXPECT_EQ(stored.at(0).first, "b");

  ScriptedTransport all({{.status = 401, .body = "wrong key"}});
  result = judge(all, {question(1, "a"), question(1, "b"), question(1, "c")});
  EXPECT_EQ(result.not_obtained, 3U);
  EXPECT_THAT(all.requests, SizeIs(1));
  EXPECT_THAT(lines, Contains(HasSubstr("the key comes from THE_KEY")));
}

TEST_F(Judging, ADiskThatFailsEndsAll) {
  store_fails = true;
  ScriptedTransport transport({says(reply_with("8", "4")), says(reply_with("8", "4"))});
  EXPECT_EQ(judge(transport, {question(1), question(2)}).not_obtained, 2U);
  EXPECT_THAT(transport.requests, SizeIs(1));
  EXPECT_THAT(lines, Contains(HasSubstr("failed: no room")));
}

TEST_F(Judging, TheKeyIsNotKept) {
  ScriptedTransport transport({says("You sent key-of-twelve.")});
  judge(transport, {question(1)});
  EXPECT_EQ(stored.at(0).second.reply.content, "You sent [secret removed].");
  EXPECT_EQ(stored.at(0).second.problem.find("key-of-twelve"), std::string::npos);
}

}  // namespace
}  // namespace assay::judge
