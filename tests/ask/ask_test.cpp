// The loop, on a scripted endpoint and a virtual clock.
#include "ask/ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <condition_variable>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>

#include "assay/error.h"
#include "scripted.h"
#include "store/line_file.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::ask {
namespace {
namespace fs = std::filesystem;
using testing::completion;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::says;
using testing::ScriptedTransport;
using testing::Step;
using testing::TemporaryFolder;
using testing::VirtualClock;

class Ask : public ::testing::Test {
 protected:
  Ask() {
    options.name = "m";
    options.url = "http://localhost:1/v1/chat/completions";
    options.key = "key-of-twelve";
    options.key_variable = "THE_KEY";
    options.chat.model = "org/m";
    options.parallel = 1;
    options.folder = folder.path / ".asking";
  }

  Sample sample(unsigned number = 1, const std::string& challenge = "alpha") const {
    return {challenge, Language::cpp, number, "solve " + challenge};
  }

  AskResult ask(ScriptedTransport& transport, const std::vector<Sample>& samples) {
    AskWorld world{transport,
                   clock,
                   [](const Sample&, const std::string& reply) {
                     Found found;
                     if (reply.starts_with("code"))
                       found.files.push_back({"submission.cpp", reply});
                     found.ambiguous = reply == "several";
                     if (found.files.empty()) found.problem = "no code in '" + reply + "'";
                     return found;
                   },
                   [this](const Sample&, const std::vector<SourceFile>& files) {
                     ++checks;
                     return Feedback{files.front().contents == "code right", "case 3 is wrong"};
                   },
                   [this](const Finished& f) {
                     if (store_fails) throw Error("no room");
                     fs::path where = folder.path / ("attempt" + std::to_string(++stored_count));
                     stored.push_back(f.found.files.empty() ? f.found.problem
                                                            : f.found.files.front().contents);
                     turns_stored.push_back(f.turn);
                     conversations.push_back(read_file(f.journal));
                     return where;
                   },
                   [](const std::string&) { return std::shared_ptr<void>(); },
                   [this](const std::string& line) { lines.push_back(line); },
                   [this](const std::string& line) { lines.push_back(line); }};
    return ask_all(samples, options, world);
  }

  TemporaryFolder folder;
  AskOptions options;
  VirtualClock clock;
  int checks = 0, stored_count = 0;
  bool store_fails = false;
  std::vector<std::string> stored, conversations, lines;
  std::vector<std::size_t> turns_stored;
};

TEST_F(Ask, AnAnswerIsStoredWithItsConversation) {
  ScriptedTransport transport({says("code")});
  const AskResult result = ask(transport, {sample()});
  EXPECT_EQ(result.outcomes[0].ending, Ending::answered);
  EXPECT_THAT(stored, ElementsAre("code"));
  EXPECT_EQ(transport.requests[0].url, options.url);
  EXPECT_EQ(transport.requests[0].headers[0].value, "Bearer key-of-twelve");
  EXPECT_EQ(transport.body(0)["messages"][0]["content"], "solve alpha");
  EXPECT_THAT(conversations[0], HasSubstr("\"kind\":\"reply\""));
  EXPECT_THAT(conversations[0], Not(HasSubstr("key-of-twelve")));
  EXPECT_FALSE(fs::exists(journal_path(options, sample())));
  EXPECT_EQ(result.spent.tokens_in, 10);
  EXPECT_EQ(result.spent.tokens_out, 3);
}

TEST_F(Ask, WhatPassesIsAskedAgain) {
  const std::string half = "data: {\"choices\":[{\"delta\":{\"content\":\"co\"}}]}\n\n";
  ScriptedTransport transport({
      {.status = 429, .body = "{\"error\":\"slow down\"}", .retry_after = "7"},
      {.status = 500, .body = "oops"},
      {.delivery = Delivery::cut, .body = half, .type = "text/event-stream", .problem = "reset"},
      {.body = half, .type = "text/event-stream"},  // the stream is closed properly, but incomplete
      {.body = "{\"choices\": [{\"mess"},
      {.delivery = Delivery::timed_out, .status = 0, .problem = "too long"},
      says("code"),
  });
  const AskResult result = ask(transport, {sample()});
  EXPECT_EQ(result.outcomes[0].ending, Ending::answered) << result.outcomes[0].reason;
  EXPECT_EQ(transport.requests.size(), 7u);
  EXPECT_THAT(clock.slept, ElementsAre(7, 2, 4, 8, 16, 32));
  EXPECT_EQ(result.spent.failures, 6u);
  EXPECT_EQ(result.spent.replies, 1u);
  for (const char* told :
       {"HTTP status 429: slow down", "HTTP status 500: oops", "cut off after", "too long"})
    EXPECT_THAT(conversations[0], HasSubstr(told));
}

TEST_F(Ask, RetriesEnd) {
  options.retry.retries = 2;
  ScriptedTransport transport({{.status = 503}, {.status = 503}, {.status = 503}, says("code")});
  const AskResult result = ask(transport, {sample()});
  EXPECT_EQ(result.outcomes[0].ending, Ending::failed);
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("HTTP status 503 (tried 3 times)"));
  EXPECT_THAT(stored, IsEmpty());
}

TEST_F(Ask, AWrongKeyEndsAllAndIsNotShown) {
  ScriptedTransport transport(
      {{.status = 401, .body = R"({"error":{"message":"Incorrect key: key-of-twelve"}})"}});
  const AskResult result = ask(transport, {sample(1), sample(2)});
  EXPECT_EQ(transport.requests.size(), 1u);
  EXPECT_EQ(result.outcomes[0].ending, Ending::failed);
  EXPECT_EQ(result.outcomes[1].ending, Ending::not_asked);
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("Incorrect key: [secret removed]"));
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("THE_KEY"));
  EXPECT_THAT(read_file(journal_path(options, sample(1))), Not(HasSubstr("key-of-twelve")));
}

TEST_F(Ask, AWrongRequestEndsOneSample) {
  ScriptedTransport transport({{.status = 400, .body = "too long"}, says("code")});
  const AskResult result = ask(transport, {sample(1, "alpha"), sample(1, "beta")});
  EXPECT_EQ(result.outcomes[0].ending, Ending::failed);
  EXPECT_EQ(result.outcomes[1].ending, Ending::answered);
}

TEST_F(Ask, AModelThatDoesNotExistIsNamed) {
  ScriptedTransport transport({{.status = 404, .body = R"({"detail":"not found"})"}});
  const AskResult result = ask(transport, {sample()});
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("not found; does the model 'org/m' exist"));
}

TEST_F(Ask, AnUnreachableHostIsNotTriedAgain) {
  ScriptedTransport transport(
      {{.delivery = Delivery::unreachable, .status = 0, .problem = "Could not resolve host: x"}});
  const AskResult result = ask(transport, {sample(1), sample(2)});
  EXPECT_EQ(transport.requests.size(), 1u);
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("Could not resolve host: x: is the server"));
}

TEST_F(Ask, ARefusalIsNoAnswerAndNotAskedAgain) {
  ScriptedTransport transport(
      {{.body = R"({"choices":[{"message":{"refusal":"no"}}]})"}, {.body = R"({"choices":[]})"}});
  const AskResult result = ask(transport, {sample(1), sample(2)});
  EXPECT_THAT(stored, ElementsAre("the model refused: no", "the reply holds no choice"));
  EXPECT_EQ(result.outcomes[0].ending, Ending::no_answer);
  EXPECT_EQ(transport.requests.size(), 2u);
  EXPECT_EQ(result.spent.replies_without_usage, 2u);
}

TEST_F(Ask, WhatIsUnclearIsKeptForAPerson) {
  ScriptedTransport transport({says("several")});
  const AskResult result = ask(transport, {sample()});
  EXPECT_EQ(result.outcomes[0].ending, Ending::unclear);
  EXPECT_EQ(read_file(result.outcomes[0].where), "several");
  ScriptedTransport again({});
  EXPECT_EQ(ask(again, {sample()}).outcomes[0].ending, Ending::unclear);
  EXPECT_THAT(again.requests, IsEmpty());
}

TEST_F(Ask, OfSeveralTurnsTheUnclearOneIsKept) {
  options.turns = 2;
  ScriptedTransport transport({says("several"), says("which of them?")});
  const AskResult result = ask(transport, {sample()});
  EXPECT_EQ(result.outcomes[0].ending, Ending::unclear);
  EXPECT_EQ(read_file(result.outcomes[0].where), "several");
}

TEST_F(Ask, WhatWasAnsweredIsFoundHoweverLongTheSettings) {
  options.system = std::string(200'000, 's');
  ScriptedTransport transport({says("several")});
  ask(transport, {sample()});
  ScriptedTransport again({});
  EXPECT_EQ(ask(again, {sample()}).outcomes[0].ending, Ending::unclear);
  EXPECT_THAT(again.requests, IsEmpty());
}

TEST_F(Ask, FeedbackGoesIntoTheNextTurn) {
  options.turns = 3;
  ScriptedTransport transport({says("code wrong"), says("code right"), says("code later")});
  ask(transport, {sample()});
  EXPECT_EQ(transport.requests.size(), 2u);
  EXPECT_EQ(checks, 2);
  const auto messages = transport.body(1)["messages"];
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1]["role"], "assistant");
  EXPECT_EQ(messages[1]["content"], "code wrong");
  EXPECT_EQ(messages[2]["content"], "case 3 is wrong");
  EXPECT_THAT(stored, ElementsAre("code right"));
  EXPECT_THAT(turns_stored, ElementsAre(1));
}

TEST_F(Ask, TheLastTurnIsNotChecked) {
  options.turns = 2;
  ScriptedTransport transport({says("code 1"), says("code 2")});
  ask(transport, {sample()});
  EXPECT_EQ(checks, 1);
  EXPECT_THAT(stored, ElementsAre("code 2"));
}

TEST_F(Ask, WithoutCodeTheModelIsToldAndAnEarlierAnswerStands) {
  options.turns = 3;
  ScriptedTransport transport({says("what?"), says("code 1"), says("sorry")});
  ask(transport, {sample()});
  const std::string told = transport.body(1)["messages"][2]["content"].get<std::string>();
  EXPECT_THAT(told, HasSubstr("no code in 'what?'"));
  EXPECT_THAT(told, HasSubstr("submission.cpp"));
  EXPECT_THAT(stored, ElementsAre("code 1"));
  EXPECT_THAT(turns_stored, ElementsAre(1));
}

TEST_F(Ask, SeedsDifferBetweenSamples) {
  options.chat.seed = 7;
  ScriptedTransport transport({says("code"), says("code")});
  ask(transport, {sample(1), sample(2)});
  EXPECT_EQ(transport.body(0)["seed"], 7);
  EXPECT_EQ(transport.body(1)["seed"], 8);
  EXPECT_EQ(head_of(options, sample(1)).settings_hash, head_of(options, sample(2)).settings_hash);
}

TEST_F(Ask, OtherSettingsAreOtherSamples) {
  const std::string hash = head_of(options, sample()).settings_hash;
  const auto differs = [&](auto change) {
    AskOptions other = options;
    change(other);
    return head_of(other, sample()).settings_hash != hash;
  };
  EXPECT_TRUE(differs([](AskOptions& o) { o.chat.temperature = 0; }));
  EXPECT_TRUE(differs([](AskOptions& o) { o.chat.more["top_p"] = 0.5; }));
  EXPECT_TRUE(differs([](AskOptions& o) { o.turns = 2; }));
  EXPECT_TRUE(differs([](AskOptions& o) { o.url += "x"; }));
  EXPECT_FALSE(differs([](AskOptions& o) { o.key = "another"; }));
  EXPECT_FALSE(differs([](AskOptions& o) { o.chat.stream = false; }));
  EXPECT_FALSE(differs([](AskOptions& o) { o.parallel = 9; }));
}

// A kill after any line of the conversation: what is recorded is not asked again, and the result is
// the same.
TEST_F(Ask, GoesOnAfterAKillAtAnyLine) {
  options.turns = 2;
  {
    ScriptedTransport transport({{.status = 500}, says("code wrong"), says("code right")});
    ask(transport, {sample()});
  }
  const std::string whole = conversations[0];
  const fs::path journal = journal_path(options, sample());
  std::size_t cuts = 0;
  for (std::size_t end = 0; (end = whole.find('\n', end)) != std::string::npos; ++end) {
    // Keep this line and half of the next.
    write_file_atomically(journal, whole.substr(0, end + 1) + whole.substr(end + 1, 9));
    const std::string kept = whole.substr(0, end + 1);
    const bool has_first = kept.find("code wrong\",") != std::string::npos;
    const bool has_second = kept.find("code right\",") != std::string::npos;
    std::vector<Step> left;
    if (!has_first) left.push_back(says("code wrong"));
    if (!has_second) left.push_back(says("code right"));
    ScriptedTransport transport(left);
    ask(transport, {sample()});
    EXPECT_EQ(transport.requests.size(), left.size()) << kept;
    EXPECT_EQ(stored.back(), "code right");
    ++cuts;
  }
  EXPECT_EQ(cuts, 7u);  // begin, request, failure, reply, feedback, request, reply
}

TEST_F(Ask, AJournalOfAnotherSampleIsNotTouched) {
  const fs::path journal = journal_path(options, sample());
  create_folder(journal.parent_path());
  write_file_atomically(journal, "{\"kind\":\"begin\"}\n");
  ScriptedTransport transport({says("code")});
  const AskResult result = ask(transport, {sample()});
  EXPECT_EQ(result.outcomes[0].ending, Ending::failed);
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("is no conversation about this sample"));
  EXPECT_THAT(transport.requests, IsEmpty());
}

TEST_F(Ask, WhatCannotBeStoredIsKept) {
  store_fails = true;
  {
    ScriptedTransport transport({says("code")});
    const AskResult result = ask(transport, {sample()});
    EXPECT_EQ(result.outcomes[0].ending, Ending::failed);
    EXPECT_THAT(result.outcomes[0].reason, HasSubstr("the same command stores it"));
  }
  store_fails = false;
  ScriptedTransport none({});
  EXPECT_EQ(ask(none, {sample()}).outcomes[0].ending, Ending::answered);
  EXPECT_THAT(none.requests, IsEmpty());
}

TEST_F(Ask, AFullDiskLosesNoReply) {
  const fs::path temporary = folder.path / "tmp";
  fs::create_directory(temporary);
  ::setenv("TMPDIR", temporary.c_str(), 1);
  ScriptedTransport transport({says("code " + std::string(100000, 'x'))});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_IGN);
  // Once the reply has arrived, there is no room for it anywhere.
  transport.before = [&](const nlohmann::json&) {
    const rlimit small{4096, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  };
  const AskResult result = ask(transport, {sample(1), sample(2)});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::unsetenv("TMPDIR");
  EXPECT_EQ(result.outcomes[0].ending, Ending::failed);
  EXPECT_THAT(result.outcomes[0].reason, HasSubstr("nor is there room elsewhere"));
  EXPECT_EQ(result.outcomes[1].ending, Ending::not_asked);
  EXPECT_EQ(transport.requests.size(), 1u);
  EXPECT_TRUE(fs::is_empty(temporary));
  // The journal is intact: the sample is asked again.
  ScriptedTransport again({says("code")});
  EXPECT_EQ(ask(again, {sample()}).outcomes[0].ending, Ending::answered);
}

TEST_F(Ask, AttemptsAreInTheOrderOfTheSamplesHoweverTheyEnd) {
  options.parallel = 4;
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  // Replies come in the reverse order of the seeds.
  ScriptedTransport transport(std::vector<Step>(4, Step{.body = completion("code")}));
  options.chat.seed = 0;
  int expected = 3;
  transport.before = [&](const nlohmann::json& body) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    changed.wait(lock, [&] { return begun == 4 && expected == body["seed"]; });
    --expected;
    changed.notify_all();
  };
  const AskResult result = ask(transport, {sample(1), sample(2), sample(3), sample(4)});
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(result.outcomes[i].where.filename(), "attempt" + std::to_string(i + 1));
}

}  // namespace
}  // namespace assay::ask
