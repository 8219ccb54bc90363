// The corpus's floor against a predictor that reads only the prefix, and the distance between
// languages against one that counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "assay/random.h"
#include "languages.h"

namespace assay::ternary_training {
namespace {

// Counts the successors in each state that the visible prefix shows (a mark, the place in a block,
// the open brackets, the class of the last word) over many documents. If the costs that the
// generator logs are those of the true distribution, the counting predictor reaches the same mean
// for each kind.
TEST(TernaryLanguage, FloorIsTheEntropyGivenThePrefix) {
  const nlohmann::json corpus = {{"classes", 3}, {"words", 4},    {"names", 5},
                                 {"defined", 2}, {"brackets", 2}, {"depth", 2}};
  tt_config c{};
  c.V = 32;
  const auto language = make_language(corpus, c, 5);
  constexpr int kOpen = 3, kClose = 5, kWord0 = 7, kName0 = 19;
  std::map<std::string, std::map<int, double>> next;
  struct Seen {
    std::string state;
    int token, kind;
    double cost;
  };
  std::vector<Seen> seen;
  Random random(9);
  std::vector<std::uint16_t> tokens(64);
  std::vector<float> cost(64);
  std::vector<std::uint8_t> kind(64);
  for (int doc = 0; doc < 30000; ++doc) {
    language->write(random, {tokens, cost.data(), kind.data()});
    std::string stack, pending, defined;
    int last_class = 0, in_definition = 0;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const int token = tokens[t];
      std::string state = t == 0 ? "start"
                                 : "free " + std::to_string(last_class) + " " + stack +
                                       (defined.empty() ? "" : " d");
      if (in_definition > 0) state = "define " + defined;
      if (!pending.empty()) state = "repeat " + pending;
      next[state][token] += 1;
      seen.push_back({state, token, kind[t], cost[t]});
      if (in_definition > 0) {
        defined += static_cast<char>(token + 64);
        --in_definition;
      } else if (!pending.empty()) {
        EXPECT_EQ(token + 64, pending[0]);
        pending.erase(0, 1);
      } else if (token == 1) {
        defined.clear();
        in_definition = 2;
      } else if (token == 2) {
        pending = defined;
      } else if (token >= kOpen && token < kClose) {
        stack += static_cast<char>('a' + token - kOpen);
      } else if (token >= kClose && token < kWord0) {
        ASSERT_EQ(stack.back(), 'a' + token - kClose);
        stack.pop_back();
      } else if (token >= kWord0) {
        ASSERT_LT(token, kName0);
        last_class = (token - kWord0) / 4;
      }
    }
  }
  std::map<std::string, double> total;
  for (const auto& [state, counts] : next) {
    for (const auto& [token, n] : counts) total[state] += n;
  }
  std::array<double, kKinds> logged{}, counted{}, n{};
  for (const Seen& s : seen) {
    const auto k = static_cast<std::size_t>(s.kind);
    logged[k] += s.cost;
    counted[k] -= std::log(next[s.state][s.token] / total[s.state]);
    n[k] += 1;
  }
  for (std::size_t k = 0; k < kKinds; ++k) {
    EXPECT_NEAR(logged[k] / n[k], counted[k] / n[k], 0.01) << kKindNames[k];
  }
  EXPECT_EQ(logged[kCopy], 0);
}

using Counts = std::vector<std::vector<double>>;

constexpr std::size_t kTokens = 64;  // per document

// Counts successors: `row_of` maps the place of a token to its row, or to -1.
template <typename RowOf>
Counts count(const Language& language, std::size_t rows, std::size_t first, std::size_t columns,
             RowOf row_of) {
  Counts counts(rows, std::vector<double>(columns));
  Random random(3);
  std::vector<std::uint16_t> tokens(kTokens);
  for (int doc = 0; doc < 20000; ++doc) {
    language.write(random, {tokens});
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const int row = row_of(tokens, t);
      if (row >= 0) ++counts[static_cast<std::size_t>(row)].at(tokens[t] - first);
    }
  }
  for (std::vector<double>& row : counts) {
    double sum = 0;
    for (const double n : row) sum += n;
    for (double& n : row) n /= sum;
  }
  return counts;
}

double nats_lost_by_count(const Counts& own, const Counts& other) {
  double sum = 0;
  for (std::size_t row = 0; row < own.size(); ++row) {
    for (std::size_t i = 0; i < own[row].size(); ++i) {
      if (other[row][i] > 0) sum += other[row][i] * std::log(other[row][i] / own[row][i]);
    }
  }
  return sum / static_cast<double>(own.size());
}

// Only words: token 0 starts a document, 7 to 18 are four words each of three classes.
TEST(TernaryLanguage, NatsLostOnWordsAreThoseOfCounts) {
  const nlohmann::json corpus = {{"classes", 3},  {"words", 4}, {"names", 5}, {"defined", 2},
                                 {"brackets", 2}, {"def", 0},   {"open", 0}};
  tt_config c{};
  c.V = 32;
  const auto own = make_language(corpus, c, 5), other = make_language(corpus, c, 6);
  const auto after_class = [](const auto& tokens, std::size_t t) {
    return t < 2 ? -1 : (tokens[t - 1] - 7) / 4;
  };
  const double counted =
      nats_lost_by_count(count(*own, 3, 7, 12, after_class), count(*other, 3, 7, 12, after_class));
  EXPECT_GT(counted, 0.1);
  EXPECT_NEAR(nats_lost(*own, *other), counted, 0.01);
}

TEST(TernaryLanguage, NatsLostOnLagsAreThoseOfCounts) {
  const nlohmann::json corpus = {{"kind", "lag"}, {"lag", 2}, {"noise", 0.5}, {"zipf", 1.0}};
  tt_config c{};
  c.V = 8;
  const auto own = make_language(corpus, c, 5), other = make_language(corpus, c, 6);
  const auto looked_back_at = [](const auto& tokens, std::size_t t) {
    return t < 2 ? -1 : static_cast<int>(tokens[t - 2]);
  };
  const double counted = nats_lost_by_count(count(*own, 8, 0, 8, looked_back_at),
                                            count(*other, 8, 0, 8, looked_back_at));
  EXPECT_GT(counted, 0.1);
  EXPECT_NEAR(nats_lost(*own, *other), counted, 0.01);
}

TEST(TernaryLanguage, NothingIsLostOnItself) {
  tt_config c{};
  c.V = 512;
  const auto language = make_language(nlohmann::json::object(), c, 5);
  EXPECT_EQ(nats_lost(*language, *language), 0);
}

// With three classes there are twelve chains: single draws hit the language's own one.
TEST(TernaryLanguage, ForeignOnesAreFar) {
  const nlohmann::json corpus = {
      {"classes", 3}, {"words", 4}, {"names", 5}, {"defined", 2}, {"brackets", 2}};
  tt_config c{};
  c.V = 32;
  double nearest_draw = 1e9, nearest_foreign = 1e9;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto own = make_language(corpus, c, substream(seed, 1));
    const auto one = make_language(corpus, c, substream(seed, 2));
    const auto foreign = foreign_language(corpus, c, *own, substream(seed, 3));
    nearest_draw = std::min(nearest_draw, nats_lost(*own, *one));
    nearest_foreign = std::min(nearest_foreign, nats_lost(*own, *foreign));
  }
  EXPECT_LT(nearest_draw, 0.4);
  EXPECT_GT(nearest_foreign, 0.6);
}

}  // namespace
}  // namespace assay::ternary_training
