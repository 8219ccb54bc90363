#include "ask/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace assay::ask {
namespace {
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

Reply plain(const std::string& body) {
  ReplyReader reader;
  reader.feed(body, false);
  return reader.finish();
}

std::string event(const std::string& data) { return "data: " + data + "\n\n"; }

Reply streamed(const std::string& body, std::size_t piece = 5) {
  ReplyReader reader;
  for (std::size_t at = 0; at < body.size(); at += piece) reader.feed(body.substr(at, piece), true);
  return reader.finish();
}

TEST(Request, HoldsWhatWasSetAndNothingElse) {
  ChatSettings settings;
  settings.model = "m";
  settings.stream = false;
  EXPECT_EQ(request_of(settings, {{"user", "hi"}}).dump(),
            R"({"model":"m","messages":[{"role":"user","content":"hi"}]})");
  settings.temperature = 0.5;
  settings.max_tokens = 7;
  settings.seed = 3;
  settings.stream = true;
  settings.more["reasoning_effort"] = "high";
  EXPECT_EQ(request_of(settings, {}).dump(),
            R"({"model":"m","messages":[],"temperature":0.5,"max_tokens":7,"seed":3,"stream":true,)"
            R"("stream_options":{"include_usage":true},"reasoning_effort":"high"})");
}

TEST(Url, BaseOrWhole) {
  const std::string whole = "https://h:1/v1/chat/completions";
  EXPECT_EQ(completions_url("https://h:1/v1"), whole);
  EXPECT_EQ(completions_url("https://h:1/v1/"), whole);
  EXPECT_EQ(completions_url("HTTPS://h:1/v1/chat/completions/"), whole);
  EXPECT_EQ(completions_url("http://h"), "http://h/chat/completions");
  EXPECT_EQ(completions_url("https://h/d/m?api-version=1"),
            "https://h/d/m/chat/completions?api-version=1");
  EXPECT_THAT(error_of([] { completions_url("localhost:8000"); }), HasSubstr("not a URL"));
  EXPECT_THAT(error_of([] { completions_url("ftp://h/"); }), HasSubstr("not a URL"));
  const std::string said = error_of([] { completions_url("https://me:secret@h/v1"); });
  EXPECT_THAT(said, HasSubstr("--key-env"));
  EXPECT_THAT(said, Not(HasSubstr("secret")));
}

TEST(Url, NoKeyIsStoredWithIt) {
  for (const char* query : {"key=abcd", "a=1&api_key=abcd", "Access-Token=abcd", "sig=abcd"}) {
    const std::string said =
        error_of([&] { completions_url(std::string("https://h/v1?") + query); });
    EXPECT_THAT(said, HasSubstr("--key-env")) << query;
    EXPECT_THAT(said, Not(HasSubstr("abcd"))) << query;
  }
  for (const char* parameter : {"max_tokens", "prompt_cache_key", "seed", "monkey"})
    EXPECT_FALSE(names_a_key(parameter)) << parameter;
}

TEST(Url, Loopback) {
  for (const char* url : {"http://localhost:1/v1", "http://127.0.0.1", "https://127.8.0.1:9/",
                          "http://[::1]:8000/v1", "http://a.localhost/"})
    EXPECT_TRUE(goes_to_loopback(url)) << url;
  for (const char* url : {"http://localhost.example.com", "http://127.evil.example",
                          "http://10.0.0.1", "http://[::2]/"})
    EXPECT_FALSE(goes_to_loopback(url)) << url;
}

TEST(PlainReply, AnErrorIsToldHoweverDeepItIs) {
  EXPECT_THAT(error_of([] { plain(R"({"error":{"message":"no room"}})"); }),
              HasSubstr("reports: no room"));
  const std::string deep =
      "{\"error\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_THAT(error_of([&] { plain(deep); }), HasSubstr("the endpoint reports: an error"));
}

TEST(PlainReply, IsRead) {
  const Reply reply =
      plain(R"({"id":"x","model":"m-1","choices":[{"index":0,"message":{"role":"assistant",)"
            R"("content":"code","reasoning_content":"hm"},"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":5,"completion_tokens":7,)"
            R"("completion_tokens_details":{"reasoning_tokens":2}}})");
  EXPECT_EQ(reply.content, "code");
  EXPECT_EQ(reply.reasoning, "hm");
  EXPECT_EQ(reply.finish_reason, "stop");
  EXPECT_EQ(reply.id, "x");
  EXPECT_EQ(reply.model, "m-1");
  EXPECT_EQ(reply.tokens_in, 5);
  EXPECT_EQ(reply.tokens_out, 7);
  EXPECT_EQ(reply.tokens_reasoning, 2);
  EXPECT_EQ(why_no_answer(reply), "");
}

TEST(PlainReply, ContentMayBeParts) {
  EXPECT_EQ(plain(R"({"choices":[{"message":{"content":[{"type":"text","text":"a"},)"
                  R"({"type":"image"},7,{"type":"text","text":"b"}]}}]})")
                .content,
            "ab");
}

TEST(PlainReply, WhatIsNotTheProtocolIsBad) {
  for (const char* body :
       {"", "{", "[]", "<html>busy</html>", "{\"choices\": 3}", "{\"x\": 1}", "\"\xff\""})
    EXPECT_THROW(plain(body), BadReply) << body;
  EXPECT_THAT(error_of([] { plain(R"({"object":"list"})"); }), HasSubstr("no 'choices'"));
}

TEST(PlainReply, HostileTypesDoNoHarm) {
  const Reply reply = plain(
      R"({"id":[1],"model":{},"choices":[{"index":0,"message":{"content":{"a":1},)"
      R"("tool_calls":"x","refusal":3},"finish_reason":[]}],)"
      R"("usage":{"prompt_tokens":-1,"completion_tokens":1e300,"completion_tokens_details":9}})");
  EXPECT_EQ(reply.content, "");
  EXPECT_FALSE(reply.tokens_in.has_value());
  EXPECT_FALSE(reply.tokens_out.has_value());
  EXPECT_EQ(why_no_answer(reply), "the reply is empty");
  const std::string deep(100000, '[');
  EXPECT_THROW(plain(deep), BadReply);
}

TEST(StreamedReply, IsPutTogether) {
  const std::string stream =
      event(R"({"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})") +
      event(R"({"choices":[{"index":0,"delta":{"reasoning":"h"}}]})") +
      event(R"({"choices":[{"index":0,"delta":{"reasoning":"m"}}]})") +
      event(R"({"choices":[{"index":1,"delta":{"content":"another"}}]})") +
      event(R"({"choices":[{"index":0,"delta":{"content":"c\u00f6"}}]})") +
      event(R"({"choices":[{"index":0,"delta":{"content":"de"},"finish_reason":null}]})") +
      event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}]})") +
      event(R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}})") +
      event("[DONE]") + event("what follows is not looked at");
  for (const std::size_t piece : {1, 7, 1000}) {
    const Reply reply = streamed(stream, piece);
    EXPECT_EQ(reply.content,
              "c\xc3\xb6"
              "de");
    EXPECT_EQ(reply.reasoning, "hm");
    EXPECT_EQ(reply.finish_reason, "length");
    EXPECT_EQ(reply.tokens_out, 2);
  }
}

TEST(StreamedReply, WithoutItsEndIsNone) {
  const std::string begin = event(R"({"choices":[{"delta":{"content":"half"}}]})");
  EXPECT_THROW(streamed(begin), BadReply);
  EXPECT_EQ(streamed(begin + event("[DONE]")).content, "half");
  EXPECT_EQ(streamed(begin + event(R"({"choices":[{"finish_reason":"stop"}]})")).content, "half");
  EXPECT_THROW(streamed(begin + "data: [DONE]"), BadReply);
}

TEST(StreamedReply, MayReportAnError) {
  ReplyReader reader;
  try {
    reader.feed(event(R"({"error":{"message":"over\nloaded","code":503}})"), true);
    FAIL();
  } catch (const EndpointFault& fault) {
    EXPECT_EQ(fault.status(), 503);
    EXPECT_STREQ(fault.what(), "the endpoint reports: over loaded");
  }
  EXPECT_THROW(streamed(event("{not json")), BadReply);
  EXPECT_THROW(streamed(event(R"({"choices":[{"finish_reason":"error"}]})")), EndpointFault);
}

TEST(Reply, IsBounded) {
  ReplyReader reader;
  const std::string block(1 << 20, ' ');
  for (std::size_t i = 0; i < ReplyReader::kLargest / block.size(); ++i) reader.feed(block, false);
  EXPECT_THROW(reader.feed(" ", false), BadReply);
}

TEST(Reply, ThoughtsAreNoAnswer) {
  const auto content_of = [](const std::string& text) {
    return plain(nlohmann::json{{"choices", {{{"message", {{"content", text}}}}}}}.dump());
  };
  const Reply thought = content_of("\n<think>```cpp\nno\n```</think>yes");
  EXPECT_EQ(thought.content, "yes");
  EXPECT_EQ(thought.reasoning, "```cpp\nno\n```");
  EXPECT_EQ(content_of("<think>for ever").content, "");
  EXPECT_EQ(content_of("a <think> b </think>").content, "a <think> b </think>");
}

TEST(Reply, SaysWhyThereIsNoAnswer) {
  EXPECT_EQ(why_no_answer(plain(R"({"choices":[]})")), "the reply holds no choice");
  EXPECT_EQ(why_no_answer(plain(R"({"choices":[{"message":{"refusal":"I can\u0007not"}}]})")),
            "the model refused: I can\\x07not");
  EXPECT_EQ(why_no_answer(plain(R"({"choices":[{"message":{"refusal":"I can't\nhelp"}}]})")),
            "the model refused: I can't help");
  EXPECT_EQ(why_no_answer(plain(R"({"choices":[{"message":{"content":null,"tool_calls":[{}]}}]})")),
            "the model called a tool that was not offered");
  EXPECT_THAT(why_no_answer(plain(R"({"choices":[{"message":{},"finish_reason":"length"}]})")),
              HasSubstr("limit on tokens"));
  EXPECT_THAT(
      why_no_answer(plain(R"({"choices":[{"message":{},"finish_reason":"content_filter"}]})")),
      HasSubstr("filter"));
}

TEST(ErrorText, IsOneSafeLine) {
  EXPECT_EQ(error_text(R"({"error":{"message":"no such\nmodel"}})"), "no such model");
  EXPECT_EQ(error_text(R"({"error":"plain"})"), "plain");
  EXPECT_EQ(error_text(R"({"detail":"of fastapi"})"), "of fastapi");
  EXPECT_EQ(error_text("\n <h1>502\x1b[2J</h1>\n"), "<h1>502\\x1b[2J</h1>");
  EXPECT_EQ(error_text(""), "");
  EXPECT_LT(error_text(std::string(100000, 'x')).size(), 400u);
}

}  // namespace
}  // namespace assay::ask
