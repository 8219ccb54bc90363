// The reference against witnesses that share only the models with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "challenges/beam_search_case.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;

using Text = std::vector<int>;

// Rounds to nearest, ties to even, with `bits` significant bits and no bit below 2^least.
double rounded(double x, int bits, int least) {
  if (x == 0 || std::isinf(x)) return x;
  const int unit = std::max(std::ilogb(x) - bits + 1, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

// The rows of one item by their texts, rounded here, independently of the model.
class Rows {
 public:
  Rows(const Case& c, int item)
      : model_(c.model()),
        item_(item),
        logits_(c.shape().kind == BS_LOGITS),
        dtype_(c.shape().row_dtype) {
    for (ItemModel& m : model_.items) m.dtype = Dtype::f32;
  }

  std::vector<double> after(const Text& text) const {
    const ItemModel& m = model_.items[static_cast<std::size_t>(item_)];
    State s = m.start(item_);
    for (const int token : text) s = m.extend(s, token);
    std::vector<float> row(static_cast<std::size_t>(m.V));
    m.row(s, row.data());
    std::vector<double> out(row.begin(), row.end());
    for (double& x : out) {
      if (dtype_ == Dtype::bf16) x = rounded(x, 8, -133);
      if (dtype_ == Dtype::f16) x = rounded(x, 11, -24);
    }
    if (!logits_) return out;
    const auto shift = static_cast<long double>(m.offset);
    long double sum = 0;
    for (const double x : out) sum += std::exp(static_cast<long double>(x) - shift);
    for (double& x : out) x -= static_cast<double>(std::log(sum) + shift);
    return out;
  }

 private:
  LanguageModel model_;
  int item_;
  bool logits_;
  Dtype dtype_;
};

// Whether a text breaks a rule of the options somewhere.
bool forbidden(const Shape& s, const Text& text) {
  std::multiset<Text> grams;
  const auto n = static_cast<std::size_t>(s.no_repeat_ngram);
  for (std::size_t i = 0; n > 0 && i + n <= text.size(); ++i) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(i);
    grams.insert(Text(begin, begin + static_cast<std::ptrdiff_t>(n)));
  }
  for (const Text& gram : grams) {
    if (grams.count(gram) > 1) return true;
  }
  return std::any_of(s.bad.begin(), s.bad.end(), [&](const auto& bad) {
    return std::search(text.begin(), text.end(), bad.begin(), bad.end()) != text.end();
  });
}

double penalised(const Shape& s, double acc, std::size_t len) {
  if (len == 0) return s.penalty == 0 ? 0 : acc;
  const double base =
      s.penalty == 0 ? static_cast<double>(len) : (5 + static_cast<double>(len)) / 6;
  return acc * std::exp(-s.alpha * std::log(base));
}

// Every text of one item that ends with eos or has max_new tokens and obeys the rules, best first.
std::vector<std::pair<double, Text>> every_text(const Case& c, int item) {
  const Shape& s = c.shape();
  const Rows rows(c, item);
  std::vector<std::pair<double, Text>> all;
  const std::function<void(Text, double)> visit = [&](const Text& text, double acc) {
    if (forbidden(s, text)) return;
    const bool ended = !text.empty() && text.back() == s.eos;
    if (ended || static_cast<std::int32_t>(text.size()) == s.max_new) {
      all.emplace_back(penalised(s, acc, text.size()), text);
      return;
    }
    const auto row = rows.after(text);
    for (int v = 0; v < s.V; ++v) {
      Text longer = text;
      longer.push_back(v);
      visit(longer, acc + row[static_cast<std::size_t>(v)]);
    }
  };
  visit({}, 0);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return all;
}

void expect_same(const Case& c, std::size_t item,
                 const std::vector<std::pair<double, Text>>& expected) {
  const std::vector<Answer>& got = c.reference().items[item];
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(Text(got[k].tokens.begin(), got[k].tokens.end()), expected[k].second) << "beam " << k;
    EXPECT_NEAR(got[k].score, expected[k].first, 1e-9) << "beam " << k;
  }
}

// If K is at least the number of hypotheses, nothing is ever pruned: the answer is every text that
// ends with eos or has max_new tokens.
TEST(BeamWitness, AWideBeamFindsEveryText) {
  for (const double alpha : {0.0, 0.7, -0.6, 2.0}) {
    for (const auto& [V, T] : {std::pair{2, 5}, std::pair{3, 3}, std::pair{5, 2}}) {
      const Case c(
          json{{"B", 2}, {"K", 60}, {"V", V}, {"max_new", T}, {"eos", V - 1}, {"alpha", alpha}}, 5);
      for (int item = 0; item < 2; ++item) {
        expect_same(c, static_cast<std::size_t>(item), every_text(c, item));
      }
    }
  }
}

// The same with rules about the text: every text that obeys them.
TEST(BeamWitness, AWideBeamFindsEveryTextThatIsAllowed) {
  const std::vector<json> rules{
      {{"no_repeat_ngram", 1}},
      {{"no_repeat_ngram", 2}},
      {{"no_repeat_ngram", 3}},
      {{"bad", {{1}}}},
      {{"bad", {{0, 0}, {1, 0, 1}}}},
      {{"bad", {{2}, {0, 1}}}},
      {{"bad", {{0, 2}, {1, 1, 2}}}, {"no_repeat_ngram", 2}},
  };
  const int V = 3, eos = 2, T = 5;
  for (const json& rule : rules) {
    SCOPED_TRACE(rule.dump());
    ASSERT_TRUE(!rule.contains("bad") || rule.at("bad").at(0).is_array());
    const Case c(json{{"K", 70}, {"V", V}, {"max_new", T}, {"eos", eos}, {"options", rule}}, 3);
    const auto all = every_text(c, 0);
    ASSERT_LE(all.size(), 70u);
    expect_same(c, 0, all);
  }
}

// The whole pool as tuples, sorted lexicographically; beams are texts, and ranks are their
// positions.
struct Hypothesis {
  Text text;
  double acc = 0;
  bool finished = false;
  int serial = 0;
};

std::vector<std::pair<double, Text>> sorted_pool_search(const Case& c, int item,
                                                        std::int64_t& rows_asked,
                                                        std::int64_t& steps) {
  const Shape s = c.shape();
  const Rows rows(c, item);
  std::vector<std::vector<Hypothesis>> lists(static_cast<std::size_t>(s.groups), {{}});
  std::vector<Hypothesis> dropped;
  const auto width = static_cast<std::size_t>(s.K / s.groups);
  int serials = 0;
  const auto impatient = [&] { return s.patience > 0 && serials >= s.patience * s.K; };
  for (int t = 1; t <= s.max_new && !impatient(); ++t) {
    int active = 0;
    Text appended;
    for (std::vector<Hypothesis>& list : lists) {
      using Key = std::tuple<double, int, int, int>;  // -key, fresh, rank of the parent, token
      std::vector<std::pair<Key, Hypothesis>> pool;
      for (int i = 0; i < static_cast<int>(list.size()); ++i) {
        const Hypothesis& h = list[static_cast<std::size_t>(i)];
        const auto key = [&](double acc, std::size_t len) {
          return s.rank_mode == 0 ? -penalised(s, acc, len) : -acc;
        };
        if (h.finished) {
          pool.push_back({{key(h.acc, h.text.size()), 0, i, -1}, h});
          continue;
        }
        ++active;
        const auto row = rows.after(h.text);
        for (int v = 0; v < s.V; ++v) {
          const double logp = row[static_cast<std::size_t>(v)];
          if (std::isinf(logp) || (v == s.eos && t < s.min_new)) continue;
          Hypothesis next{h.text, h.acc + logp, v == s.eos, -1};
          next.text.push_back(v);
          if (forbidden(s, next.text)) continue;
          const auto same = std::count(appended.begin(), appended.end(), v);
          const double compared = next.acc - s.diversity * static_cast<double>(same);
          pool.push_back({{key(compared, next.text.size()), 1, i, v}, next});
        }
      }
      std::sort(pool.begin(), pool.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      list.clear();
      for (std::size_t i = 0; i < pool.size(); ++i) {
        Hypothesis h = pool[i].second;
        const bool fresh = std::get<1>(pool[i].first) == 1;
        if (i < width) {
          if (h.finished && fresh) h.serial = serials++;
          list.push_back(h);
        } else if (!fresh) {
          dropped.push_back(h);
        }
      }
      for (const Hypothesis& h : list) {
        if (static_cast<int>(h.text.size()) == t) appended.push_back(h.text.back());
      }
    }
    if (active == 0) break;
    rows_asked += active;
    ++steps;
  }
  std::vector<Hypothesis> list;
  for (const auto& part : lists) {
    std::copy_if(part.begin(), part.end(), std::back_inserter(list),
                 [&](const Hypothesis& h) { return h.finished || !impatient(); });
  }
  if (s.keep_finished != 0) list.insert(list.end(), dropped.begin(), dropped.end());
  std::vector<std::pair<std::tuple<double, int, int>, std::size_t>> order;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double score = penalised(s, list[i].acc, list[i].text.size());
    order.push_back({{-score, list[i].finished ? 0 : 1,
                      list[i].finished ? list[i].serial : static_cast<int>(i)},
                     i});
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), static_cast<std::size_t>(s.K)));
  std::vector<std::pair<double, Text>> result;
  for (const auto& [key, i] : order) result.emplace_back(-std::get<0>(key), list[i].text);
  return result;
}

TEST(BeamWitness, SortingTheWholePoolGivesTheSame) {
  const json base{{"B", 3},
                  {"K", 4},
                  {"V", 17},
                  {"max_new", 9},
                  {"eos", 3},
                  {"alpha", 0.6},
                  {"model", {{"eos_rate", 0.25}}}};
  const std::vector<json> variants{
      json::object(),
      {{"alpha", -0.5}},
      {{"alpha", 1.7}, {"K", 2}},
      {{"rank_mode", 1}, {"alpha", 1.0}},
      {{"keep_finished", 1}, {"alpha", 0.4}},
      {{"penalty", 1}},
      {{"min_new", 5}},
      {{"K", 1}},
      {{"K", 30}, {"V", 6}},
      {{"alpha", 0.0}, {"model", {{"coarse", 14}}}},
      {{"alpha", 0.0}, {"keep_finished", 1}, {"model", {{"coarse", 14}}}},
      {{"alpha", 0.0}, {"model", {{"equal", 0}}}},
      {{"alpha", 0.0}, {"model", {{"equal", 4096}}}},
      {{"model", {{"eos_rate", 0.2}, {"dead", 0.7}, {"dead_rows", 0.3}}}},
      {{"model", {{"eos_rate", 0.2}, {"inexact", true}}}},
      {{"logits", true}, {"model", {{"eos_rate", 0.2}, {"offset", 1000}}}},
      {{"model", {{"end_at", 4}}}},
      {{"options", {{"rows", "f16"}}}},
      {{"options", {{"rows", "bf16"}}}, {"alpha", 0.0}, {"V", 200}},
      {{"options", {{"rows", "f16"}}}, {"logits", true}, {"model", {{"offset", 20}}}},
      {{"options", {{"rows", "bf16"}}},
       {"logits", true},
       {"model", {{"offset", -9}, {"dead", 0.5}}}},
      {{"options", {{"no_repeat_ngram", 2}}}, {"V", 4}},
      {{"options", {{"no_repeat_ngram", 1}}}, {"V", 5}},
      {{"options", {{"bad", {{1}, {2, 0}, {0, 0, 3}, {0, 2, 0, 2}}}}}, {"V", 5}},
      {{"options", {{"groups", 2}, {"diversity", 0.5}}}},
      {{"options", {{"groups", 4}, {"diversity", 2.0}}}},
      {{"options", {{"groups", 2}, {"diversity", 0.25}}}, {"rank_mode", 1}, {"keep_finished", 1}},
      {{"options", {{"groups", 2}, {"diversity", 1.0}}},
       {"alpha", 0.0},
       {"model", {{"coarse", 14}}}},
      {{"options", {{"patience", 1.0}}}, {"keep_finished", 1}},
      {{"options", {{"patience", 0.5}}}, {"keep_finished", 1}},
      {{"options", {{"patience", 1.75}}}, {"keep_finished", 1}, {"alpha", 1.5}},
      kTogether,
  };
  for (const json& variant : variants) {
    json params = base;
    params.update(variant);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Case c(params, seed);
      std::int64_t rows = 0, calls = 0;
      for (int item = 0; item < 3; ++item) {
        std::int64_t steps = 0;
        const auto expected = sorted_pool_search(c, item, rows, steps);
        calls = std::max(calls, steps);
        SCOPED_TRACE(variant.dump() + " seed " + std::to_string(seed) + " item " +
                     std::to_string(item));
        expect_same(c, static_cast<std::size_t>(item), expected);
      }
      EXPECT_EQ(c.reference().rows, rows);
      EXPECT_EQ(c.reference().calls, calls);
    }
  }
}

// Hand-computed answers of the scripted cases.
TEST(BeamWitness, ScriptsEndAsWorkedOutByHand) {
  const auto expect = [&](const std::string& name,
                          const std::vector<std::pair<double, Text>>& answer) {
    SCOPED_TRACE(name);
    expect_same(Case(subject().case_named(name), 1), 0, answer);
  };
  expect("eos_retained", {{-3, {1, 0}}, {-5, {1, 3, 4}}});
  expect("eos_costs", {{-4, {1, 1, 1, 1}}, {-10, {0}}});
  expect("eos_at_step1_K2_widen", {{-0.5, {0}}, {-4, {1, 1}}});
  expect("finished_evicted", {{-9, {1, 5, 6, 3}}, {-9.25, {1, 5, 7, 3}}});
  expect("keep_finished_evicted", {{-3, {1, 0}}, {-9, {1, 5, 6, 3}}});
  expect("penalty_flip", {{-1.5 / std::pow(3.0, 0.6), {1, 2, 0}}, {-1, {0}}});
  expect("raw_vs_score", {{-0.625, {1, 2}}, {-0.75, {1, 3}}});
  expect("rank_by_acc_script", {{-0.625, {1, 2}}, {-1, {0}}});
  expect("groups_script", {{-3, {1, 4, 6}}, {-3.75, {2, 5, 6}}});
  expect("patience_script", {{-0.875, {1, 2, 0}}, {-1, {0}}});
  expect("same_token_two_parents", {{-2.5, {1, 3, 6}}, {-2.75, {2, 3, 6}}});
  expect("frozen_score", {{-1, {1, 0}}, {-17.5 / 12, {1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}}});
}

}  // namespace
}  // namespace assay::beam_search
