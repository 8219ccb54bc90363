#include "util/redact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace assay {
namespace {
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGone(kRedacted);

TEST(Redactor, TakesOutValues) {
  const Redactor redactor({"correct horse", "correct horse battery", "short"});
  EXPECT_EQ(redactor.redacted("a correct horse battery, a correct horse, a short one"),
            "a " + kGone + ", a " + kGone + ", a short one");
}

TEST(Redactor, TakesOutWhatLooksLikeASecret) {
  const std::string letters = "Abcdefghij0123456789Abcdefghij0123456789";
  const Redactor redactor;
  for (const std::string& secret :
       {"sk-" + letters, "sk-ant-api03-" + letters, "ghp_" + letters, "github_pat_" + letters,
        "glpat-" + letters, std::string("AKIAIOSFODNN7EXAMPLE"), "AIza" + letters,
        "xoxb-" + letters, "hf_" + letters, "npm_" + letters, "eyJhbGci.eyJzdWIi." + letters,
        "Bearer " + letters + "==", "bearer " + letters}) {
    for (const char* around : {"%", "'%'", "key=% and more", "{\"k\":\"%\"}", "%\n"}) {
      std::string text = around, clean = around;
      text.replace(text.find('%'), 1, secret);
      clean.replace(clean.find('%'), 1, kGone);
      EXPECT_EQ(redactor.redacted(text), clean);
    }
  }
}

TEST(Redactor, LeavesWhatOnlyResemblesOne) {
  const Redactor redactor;
  for (const std::string text :
       {"a task-list-of-many-long-words", "sk-short", "ghp_ is a prefix", "AKIA", "bearer of news",
        "eyJ.eyJ.x", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", "risk-averse"})
    EXPECT_EQ(redactor.redacted(text), text);
}

TEST(Redactor, TakesOutPrivateKeys) {
  const std::string key =
      "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1\nrZXk\n-----END OPENSSH PRIVATE KEY-----";
  const Redactor redactor;
  EXPECT_EQ(redactor.redacted("a\n" + key + "\nb\n" + key), "a\n" + kGone + "\nb\n" + kGone);
  EXPECT_EQ(redactor.redacted("-----BEGIN PRIVATE KEY-----\nnever ends"), kGone);
}

// However the text is cut, nothing of a secret gets through, and nothing else is lost.
TEST(Redactor, TakesPieces) {
  const std::string value = "the value of a variable", token = "sk-" + std::string(40, 'k');
  const std::string key =
      "-----BEGIN PRIVATE KEY-----\n" + std::string(70000, 'A') + "\n-----END PRIVATE KEY-----";
  std::string text, clean;
  for (int i = 0; i < 40; ++i) {
    const std::string filler(997 + static_cast<std::size_t>(i), '.');
    text += filler + value + filler + " " + token + "\n";
    clean += filler + kGone + filler + " " + kGone + "\n";
    if (i % 16 == 7) text += key, clean += kGone;
  }
  for (const std::size_t piece : {7, 1000, 16384, 16385, 100000, 10000000}) {
    Redactor redactor({value});
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += piece)
      out += redactor.feed(std::string_view(text).substr(at, piece));
    out += redactor.finish();
    EXPECT_TRUE(out == clean) << piece;
  }
}

TEST(Redactor, HoldsNoMoreThanItMust) {
  Redactor redactor;
  std::string out;
  for (int i = 0; i < 100; ++i) out += redactor.feed(std::string(10000, 'x'));
  EXPECT_GT(out.size(), 1000000 - 3 * Redactor::kLongestSecret);
}

TEST(Secrets, AreVariablesThatAreNamedSo) {
  for (const char* name :
       {"OPENAI_API_KEY", "GH_TOKEN", "db_password", "AWS_SECRET_ACCESS", "PASSWD"})
    EXPECT_TRUE(names_a_secret(name)) << name;
  for (const char* name : {"PATH", "HOME", "SSH_AUTH_SOCK", "LANG"})
    EXPECT_FALSE(names_a_secret(name)) << name;
  ::setenv("ASSAY_TEST_TOKEN", "a value=with more", 1);
  EXPECT_THAT(secrets_of_environment(), Contains("a value=with more"));
  ::unsetenv("ASSAY_TEST_TOKEN");
}

}  // namespace
}  // namespace assay
