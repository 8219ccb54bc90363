#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <tuple>

#include "../../challenges/beam_search/language_model.h"
#include "../../challenges/beam_search/trusted.h"
#include "run/challenge_registry.h"
#include "run/layout.h"
#include "support/direct_runner.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kName = "beam_search";

const Challenge& challenge() {
  for (const auto& row : challenge_rows()) {
    if (row.name == std::string(kName)) return row.get();
  }
  throw std::runtime_error("not registered");
}

std::string source(const std::string& file) {
  return std::string(ASSAY_SOURCE_DIR) + "/challenges/" + kName + "/" + file;
}

// The buffers of one case, filled and poisoned.
class Case {
 public:
  Case(CaseSpec given, std::uint64_t seed)
      : spec(std::move(given)),
        plan(challenge().plan(spec)),
        layout(run::make_layout(plan, true)),
        input(layout.input_bytes + 64),
        output(layout.output_bytes + 64),
        buffers(run::views(layout, input.data(), output.data())) {
    challenge().fill(spec, plan, seed, buffers);
    made = challenge().reference(spec, plan, buffers);
    server = challenge().callbacks(spec, plan, buffers);
    run::poison(plan, layout, output.data(), seed);
  }
  explicit Case(const json& params, std::uint64_t seed = 1) : Case(spec_with(params), seed) {}

  const BeamReference& reference() const { return static_cast<const BeamReference&>(*made); }
  Shape shape() const { return shape_of(spec); }
  LanguageModel model() const {
    return model_of(spec, shape(), *buffers[kModelSeed].as<std::uint64_t>());
  }
  CheckResult check() const { return challenge().check(spec, plan, *made, buffers, server.get()); }

  // Answers one step.
  std::int32_t ask(const std::vector<std::int64_t>& parent, const std::vector<std::int32_t>& item,
                   const std::vector<std::int32_t>& token) {
    std::vector<std::byte> request(sizeof(StepHeader) + parent.size() * 16);
    const StepHeader header{static_cast<std::int64_t>(parent.size())};
    std::memcpy(request.data(), &header, sizeof header);
    std::byte* at = request.data() + sizeof header;
    std::memcpy(at, parent.data(), parent.size() * 8);
    std::memcpy(at + parent.size() * 8, item.data(), parent.size() * 4);
    std::memcpy(at + parent.size() * 12, token.data(), parent.size() * 4);
    answer.resize(parent.size() * (8 + 4 * static_cast<std::size_t>(shape().V)));
    return server->serve(kStep, request, answer);
  }
  std::int64_t state(std::size_t i) const {
    std::int64_t id;
    std::memcpy(&id, answer.data() + 8 * i, 8);
    return id;
  }

  CaseSpec spec;
  CasePlan plan;
  run::Layout layout;
  std::vector<std::byte> input, output, answer;
  std::vector<BufferView> buffers;
  std::unique_ptr<Reference> made;
  std::unique_ptr<CallbackServer> server;

 private:
  static CaseSpec spec_with(const json& params) {
    CaseSpec spec;
    spec.name = "witness";
    spec.params = params;
    return spec;
  }
};

// --- the witnesses: they share the models with the reference, and nothing else
// ----------------------

using Text = std::vector<int>;

// To nearest, ties to even, with `bits` significant bits and no bit below 2^least.
double rounded(double x, int bits, int least) {
  if (x == 0 || std::isinf(x)) return x;
  const int unit = std::max(std::ilogb(x) - bits + 1, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

// The rows of one item by their texts, rounded here and not by the model.
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

// Every text of one item that ends with eos or has max_new tokens and keeps the rules, the best first.
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

// With K no smaller than the number of hypotheses nothing is ever pruned: the answer is every text
// that ends with eos or has max_new tokens.
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

// Likewise with rules about the text: every text that keeps them.
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

// The whole pool as tuples, sorted lexicographically; beams are texts, and ranks their places.
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

const json kTogether{{"K", 6},
                     {"V", 7},
                     {"keep_finished", 1},
                     {"min_new", 2},
                     {"options",
                      {{"rows", "f16"},
                       {"no_repeat_ngram", 2},
                       {"bad", {{5}, {1, 2}, {4, 3}}},
                       {"groups", 2},
                       {"diversity", 0.5},
                       {"patience", 1.5}}}};

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
  const ChallengeSpec spec = testing::spec_of(kName);
  const auto expect = [&](const std::string& name,
                          const std::vector<std::pair<double, Text>>& answer) {
    const auto c = std::find_if(spec.cases.begin(), spec.cases.end(),
                                [&](const CaseSpec& s) { return s.name == name; });
    ASSERT_NE(c, spec.cases.end());
    SCOPED_TRACE(name);
    expect_same(Case(*c, 1), 0, answer);
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

// --- implementations and examples
// ------------------------------------------------------------------

class Correct : public ::testing::TestWithParam<const char*> {};

TEST_P(Correct, PassesEveryCaseThatIsNotTimed) {
  testing::DirectRunner runner(kName, testing::compile(source(GetParam()), kName));
  for (const CaseSpec& c : testing::spec_of(kName).cases) {
    if (c.group == CaseGroup::timed) continue;
    for (const std::uint64_t seed : {1, 2}) {
      const CaseResult result = runner.run(c, seed);
      // The plain implementation has every optional part, the expert one all but groups.
      const std::string file = GetParam();
      const bool may_lack = c.group == CaseGroup::completeness &&
                            (file.find("submissions") != std::string::npos ||
                             (file == "par.cpp" && c.capability == "diverse_groups"));
      if (may_lack && result.verdict == Verdict::unsupported) continue;
      EXPECT_EQ(result.verdict, Verdict::ok)
          << c.name << ", seed " << seed << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Beam, Correct,
                         ::testing::Values("naive.cpp", "par.cpp",
                                           "../../submissions/textbook/beam_search/submission.cpp",
                                           "../../submissions/tuned/beam_search/submission.cpp"));

CaseResult run_with(testing::DirectRunner& runner, json params, std::uint64_t seed,
                    std::int32_t status = ASSAY_OK) {
  CaseSpec spec;
  spec.name = "witness";
  spec.group = CaseGroup::completeness;
  spec.expect_status = status;
  spec.params = std::move(params);
  return runner.run(spec, seed);
}

class Options : public ::testing::TestWithParam<const char*> {};

// The cases set one option each; here they meet.
TEST_P(Options, WorkTogether) {
  testing::DirectRunner runner(kName, testing::compile(source(GetParam()), kName));
  json params = kTogether;
  params.update(json{{"B", 5}, {"max_new", 12}, {"eos", 3}, {"model", {{"eos_rate", 0.2}}}});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CaseResult result = run_with(runner, params, seed);
    if (std::string(GetParam()) == "naive.cpp") {
      EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
    }
    json without_groups = params;
    without_groups["options"]["groups"] = 1;
    without_groups["logits"] = seed % 2 == 0;
    without_groups["V"] = seed % 3 == 0 ? 700 : 7;
    result = run_with(runner, without_groups, seed);
    EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
  }
}

// With a negative alpha a beam is worth less with every token: two finished beams can outrank what
// the active one becomes, and not what it is.
TEST_P(Options, GiveUpNothingThatIsStillAhead) {
  testing::DirectRunner runner(kName, testing::compile(source(GetParam()), kName));
  const json script{{"", {{"0", -1.25}, {"1", -0.25}}},
                    {"1", {{"0", -0.3125}, {"2", -0.25}}},
                    {"*", {{"3", -0.25}}}};
  const json params{{"K", 2},
                    {"V", 8},
                    {"max_new", 5},
                    {"eos", 0},
                    {"alpha", -1},
                    {"keep_finished", 1},
                    {"model", {{"script", script}}}};
  const CaseResult result = run_with(runner, params, 1);
  EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
}

TEST_P(Options, AreChecked) {
  testing::DirectRunner runner(kName, testing::compile(source(GetParam()), kName));
  const json base{{"B", 2}, {"K", 4}, {"V", 9}, {"max_new", 5}, {"eos", 3}, {"keep_finished", 1}};
  const std::vector<json> wrong{
      {{"options", {{"groups", 0}}}},
      {{"options", {{"groups", 8}}}},
      {{"options", {{"groups", 2}, {"diversity", -0.5}}}},
      {{"options", {{"patience", -1.0}}}},
      {{"options", {{"bad", {{2}, json::array()}}}}},
      {{"options", {{"bad", {{2}, {-1}}}}}},
      {{"options", {{"no_repeat_ngram", -2}}}},
      {{"options", json::object()}, {"override", {{"n_bad", -1}}}},
      {{"options", json::object()}, {"override", {{"row_dtype", 3}}}},
      {{"options", json::object()}, {"override", {{"options_size", 8}}}},
      {{"options", json::object()}, {"override", {{"K", 0}}}},
  };
  for (const json& change : wrong) {
    json params = base;
    params.update(change);
    const CaseResult result = run_with(runner, params, 1, ASSAY_EINVAL);
    EXPECT_EQ(result.verdict, Verdict::ok) << change.dump() << " " << result.detail;
  }
  json right = base;
  right["options"] = json::object();
  EXPECT_EQ(run_with(runner, right, 1).verdict, Verdict::ok);
}

INSTANTIATE_TEST_SUITE_P(Beam, Options, ::testing::Values("naive.cpp", "par.cpp"));

struct Example {
  std::string path, verdict;
  std::vector<std::string> cases;
};

std::vector<Example> examples() {
  std::vector<Example> found;
  for (const auto& entry : fs::directory_iterator(source("examples"))) {
    std::ifstream file(entry.path());
    std::string line, slashes, name;
    std::getline(file, line);
    std::istringstream words(line);
    Example example{entry.path(), "", {}};
    words >> slashes >> example.verdict;
    while (words >> name) example.cases.push_back(name);
    found.push_back(example);
  }
  return found;
}

TEST(BeamExamples, CoverEveryTrap) {
  std::set<std::string> caught;
  for (const Example& example : examples())
    caught.insert(example.cases.begin(), example.cases.end());
  for (const CaseSpec& c : testing::spec_of(kName).cases) {
    if (c.group != CaseGroup::trap) continue;
    EXPECT_TRUE(caught.contains(c.name) || !c.uncaught_reason.empty()) << c.name;
  }
}

// --- generator, server and checker
// -----------------------------------------------------------------

TEST(BeamFill, DependsOnTheSeedAlone) {
  for (const CaseSpec& spec : testing::spec_of(kName).cases) {
    if (spec.group != CaseGroup::core) continue;
    const Case a(spec, 7), b(spec, 7), other(spec, 8);
    bool differs = false;
    for (std::size_t i = 0; i < a.buffers.size(); ++i) {
      if (a.plan.buffers[i].role == Role::output || a.buffers[i].bytes == 0) continue;
      EXPECT_EQ(std::memcmp(a.buffers[i].data, b.buffers[i].data, a.buffers[i].bytes), 0)
          << spec.name;
      differs |= std::memcmp(a.buffers[i].data, other.buffers[i].data, a.buffers[i].bytes) != 0;
    }
    EXPECT_TRUE(differs) << spec.name;
    EXPECT_NE(a.reference().items[0][0].tokens, other.reference().items[0][0].tokens) << spec.name;
  }
}

// Whatever seed a case is run with, no decision is left to rounding.
TEST(BeamFill, LeavesNoDecisionToRounding) {
  for (const CaseSpec& spec : testing::spec_of(kName).cases) {
    if (spec.expect_status != ASSAY_OK || spec.group == CaseGroup::timed ||
        spec.group == CaseGroup::resource)
      continue;
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      EXPECT_TRUE(Case(spec, seed).reference().clear) << spec.name;
  }
}

TEST(BeamCheck, RejectsUntouchedZeroAndNanOutputs) {
  for (const CaseSpec& spec : testing::spec_of(kName).cases) {
    if (spec.group != CaseGroup::core) continue;
    const Case c(spec, 5);
    EXPECT_FALSE(c.check().pass) << spec.name << " untouched";
    for (const int byte : {0x00, 0xff, 0x7f}) {
      for (std::size_t i = 0; i < c.buffers.size(); ++i) {
        if (c.plan.buffers[i].role == Role::output)
          std::memset(c.buffers[i].data, byte, c.buffers[i].bytes);
      }
      EXPECT_FALSE(c.check().pass) << spec.name << " filled with " << byte;
    }
  }
}

// The right answer without a single call of the model must not pass either.
TEST(BeamCheck, RejectsAnAnswerThatNobodyAskedFor) {
  const Case c(json{{"B", 1}, {"K", 2}, {"V", 9}, {"max_new", 3}}, 4);
  const std::vector<Answer>& answer = c.reference().items[0];
  std::memset(c.buffers[kSeq].data, 0xff, c.buffers[kSeq].bytes);
  for (std::size_t k = 0; k < answer.size(); ++k) {
    std::copy(answer[k].tokens.begin(), answer[k].tokens.end(),
              c.buffers[kSeq].as<std::int32_t>() + 3 * k);
    c.buffers[kLen].as<std::int32_t>()[k] = 3;
    c.buffers[kAcc].as<double>()[k] = answer[k].acc;
    c.buffers[kScore].as<double>()[k] = answer[k].score;
    c.buffers[kFinished].as<std::int32_t>()[k] = 0;
  }
  *c.buffers[kNOut].as<std::int32_t>() = 2;
  const CheckResult result = c.check();
  EXPECT_FALSE(result.pass);
  EXPECT_NE(result.detail.find("only 0 calls"), std::string::npos) << result.detail;
}

TEST(BeamServer, RefusesWhatNoSearchMayAsk) {
  const json params{{"B", 2},       {"K", 3},   {"V", 9},
                    {"max_new", 9}, {"eos", 1}, {"model", {{"dead", 0.5}}}};
  const auto fresh = [&] { return Case(params, 8); };
  {
    Case c = fresh();
    ASSERT_EQ(c.ask({-1, -1}, {0, 1}, {0, 0}), ASSAY_OK);
    std::vector<float> row(9);
    std::memcpy(row.data(), c.answer.data() + 16, 36);
    std::int32_t alive = -1, dead = -1;
    for (std::int32_t v = 0; v < 9; ++v) {
      if (v != 1) (std::isinf(row[static_cast<std::size_t>(v)]) ? dead : alive) = v;
    }
    ASSERT_TRUE(alive >= 0 && dead >= 0);
    const std::int64_t first = c.state(0);
    EXPECT_EQ(c.ask({first}, {1}, {alive}), ASSAY_EINVAL) << "another item";
    EXPECT_EQ(c.ask({first}, {0}, {1}), ASSAY_EINVAL) << "eos";
    EXPECT_EQ(c.ask({first}, {0}, {dead}), ASSAY_EINVAL) << "probability 0";
    EXPECT_EQ(c.ask({first}, {0}, {9}), ASSAY_EINVAL) << "token";
    EXPECT_EQ(c.ask({first}, {0}, {-1}), ASSAY_EINVAL) << "token";
    EXPECT_EQ(c.ask({first + 1}, {0}, {alive}), ASSAY_EINVAL) << "state";
    EXPECT_FALSE(c.check().pass);
  }
  EXPECT_EQ(fresh().ask({-1, -1}, {0, 0}, {0, 0}), ASSAY_EINVAL) << "the start twice";
  {
    json grouped = params;
    grouped.update(json{{"K", 4}, {"options", {{"groups", 2}}}});
    Case c(grouped, 8);
    EXPECT_EQ(c.ask({-1, -1, -1}, {0, 1, 0}, {0, 0, 0}), ASSAY_OK) << "the start for two groups";
    EXPECT_EQ(c.ask({-1}, {0}, {0}), ASSAY_EINVAL) << "the start for a third group";
  }
  EXPECT_EQ(fresh().ask({-1}, {2}, {0}), ASSAY_EINVAL) << "item";
  EXPECT_EQ(fresh().ask({-1}, {-1}, {0}), ASSAY_EINVAL) << "item";
  EXPECT_EQ(fresh().ask({}, {}, {}), ASSAY_EINVAL) << "no rows";
  EXPECT_EQ(fresh().ask(std::vector<std::int64_t>(7, -1), std::vector<std::int32_t>(7),
                        std::vector<std::int32_t>(7)),
            ASSAY_EINVAL)
      << "too many rows";
  Case c = fresh();
  std::vector<std::byte> response(64), request(24);
  EXPECT_EQ(c.server->serve(kStep, {}, response), ASSAY_EINVAL);
  EXPECT_EQ(c.server->serve(kStep, request, response), ASSAY_EINVAL);
  const StepHeader huge{std::int64_t{1} << 62};
  std::memcpy(request.data(), &huge, sizeof huge);
  EXPECT_EQ(c.server->serve(kStep, request, response), ASSAY_EINVAL);
  EXPECT_EQ(c.server->serve(7, request, response), ASSAY_EINVAL);
}

}  // namespace
}  // namespace assay::beam_search
