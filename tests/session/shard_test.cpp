#include "session/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "assay/error.h"

namespace assay::session {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Submission submission(const std::string& model, const std::string& challenge) {
  Submission s;
  s.model = model;
  s.challenge = challenge;
  return s;
}

// Two expensive ones and many cheap ones.
std::vector<Submission> field() {
  std::vector<Submission> all;
  for (int i = 0; i < 20; ++i) all.push_back(submission("m" + std::to_string(i), "a"));
  all.push_back(submission("m1", "long"));
  all.push_back(submission("m2", "long"));
  return all;
}

double cost(const Submission& s) { return s.challenge == "long" ? 10 : 1; }

double cost_of(const std::vector<Submission>& part) {
  double sum = 0;
  for (const Submission& s : part) sum += cost(s);
  return sum;
}

TEST(Shards, HoldEverySubmissionOnce) {
  for (const std::size_t count : {1, 2, 3, 7, 30}) {
    std::map<CellKey, int> times;
    for (std::size_t i = 1; i <= count; ++i) {
      for (const Submission& s : submissions_of({i, count}, field(), cost)) ++times[key_of(s)];
    }
    EXPECT_THAT(times, SizeIs(field().size())) << count;
    for (const auto& [key, n] : times) EXPECT_EQ(n, 1) << to_string(key);
  }
}

TEST(Shards, CostAboutTheSame) {
  for (std::size_t i = 1; i <= 4; ++i)
    EXPECT_EQ(cost_of(submissions_of({i, 4}, field(), cost)), 10) << i;
}

TEST(Shards, DoNotDependOnTheOrder) {
  std::vector<Submission> reversed = field();
  std::ranges::reverse(reversed);
  for (std::size_t i = 1; i <= 3; ++i) {
    std::vector<CellKey> one, other;
    for (const Submission& s : submissions_of({i, 3}, field(), cost)) one.push_back(key_of(s));
    for (const Submission& s : submissions_of({i, 3}, reversed, cost)) other.push_back(key_of(s));
    std::ranges::reverse(other);
    EXPECT_EQ(one, other);
  }
}

TEST(Shards, BeyondTheSubmissionsAreEmpty) {
  EXPECT_THAT(submissions_of({3, 3}, {submission("m", "a"), submission("n", "a")}, cost),
              IsEmpty());
}

TEST(Shards, AreNamedByTheirPlace) {
  EXPECT_EQ(to_string(shard_from("2/8")), "2/8");
  for (const char* wrong : {"", "2", "/", "0/3", "4/3", "1/0", "-1/3", "1/3x", "1/ 3", "one/two"}) {
    try {
      shard_from(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("I/N")) << wrong;
    }
  }
}

}  // namespace
}  // namespace assay::session
