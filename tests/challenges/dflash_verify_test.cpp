// The reference against witnesses that share no code with it, the baselines, the examples, the
// server, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "../../challenges/dflash_verify/harness/language_model.h"
#include "../../challenges/dflash_verify/harness/trusted.h"
#include "assay/random.h"
#include "challenges/challenge_fixture.h"
#include "challenges/recorded_case.h"

namespace assay::dflash_verify {
namespace {

using nlohmann::json;
using testing::ChallengeUnderTest;
using testing::Filled;

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("dflash_verify");
  return loaded;
}

class Case : public Filled {
 public:
  Case(const CaseSpec& spec, std::uint64_t seed) : Filled(subject(), spec, seed) {}
  explicit Case(const json& params, std::uint64_t seed = 1) : Case(spec_with(params), seed) {}

  const DflashReference& reference() const { return reference_as<DflashReference>(); }

 private:
  static CaseSpec spec_with(const json& params) {
    CaseSpec spec;
    spec.name = "witness";
    spec.params = params;
    return spec;
  }
};

// --- the witness: everything by definition, sharing no code with the reference

// Every tree of n nodes.
void for_each_tree(int n, const std::function<void(const std::vector<int>&)>& body) {
  std::vector<int> parent;
  const std::function<void()> extend = [&] {
    if (static_cast<int>(parent.size()) == n) return body(parent);
    const int i = static_cast<int>(parent.size());
    for (int p = -1; p < i; ++p) {
      parent.push_back(p);
      extend();
      parent.pop_back();
    }
  };
  extend();
}

using Text = std::vector<int>;

// A language model over the symbols 1 .. 3: some function of the text.
int next_symbol(const Text& text, std::uint64_t salt) {
  std::uint64_t h = salt * 2654435761u + 97;
  for (const int t : text) h = (h ^ static_cast<std::uint64_t>(t)) * 0x100000001b3ull;
  return 1 + static_cast<int>((h >> 33) % 3);
}

struct Toy {
  std::vector<int> parent, token;
  std::uint64_t salt = 0;

  Text text_of(int node) const {
    Text text;
    for (int i = node; i >= 0; i = parent[static_cast<std::size_t>(i)]) {
      text.insert(text.begin(), token[static_cast<std::size_t>(i)]);
    }
    return text;
  }

  bool siblings_differ() const {
    std::set<std::pair<int, int>> seen;
    for (std::size_t i = 0; i < parent.size(); ++i) {
      if (!seen.insert({parent[i], token[i]}).second) return false;
    }
    return true;
  }

  // The most drafted tokens that plain greedy decoding confirms: the longest text of any node that
  // is a prefix of what the model alone would generate.
  Text longest_confirmed() const {
    Text alone, best;
    while (alone.size() <= parent.size()) alone.push_back(next_symbol(alone, salt));
    for (int i = 0; i < static_cast<int>(parent.size()); ++i) {
      const Text text = text_of(i);
      const bool prefix = std::equal(text.begin(), text.end(), alone.begin());
      if (prefix && text.size() > best.size()) best = text;
    }
    return best;
  }

  json script() const {
    json greedy = json::array();
    for (int i = -1; i < static_cast<int>(parent.size()); ++i) {
      greedy.push_back(next_symbol(text_of(i), salt));
    }
    return {{"parent", parent}, {"token", token}, {"greedy", greedy}};
  }
};

TEST(DflashWitness, AcceptanceIsTheLongestConfirmedPathOfEverySmallTree) {
  std::vector<Toy> toys;
  std::uint64_t salt = 1;
  for (int n = 0; n <= 6; ++n) {
    for_each_tree(n, [&](const std::vector<int>& parent) {
      for (int repeat = 0; repeat < 4; ++repeat) {
        Toy toy{parent, {}, ++salt};
        for (int i = 0; i < n; ++i) {
          toy.token.push_back(
              1 + static_cast<int>(mix64(salt * 64 + static_cast<std::uint64_t>(i)) % 3));
        }
        toys.push_back(toy);
      }
    });
  }
  json items = json::array();
  for (const Toy& toy : toys) items.push_back(toy.script());
  const Case c(json{{"entry", "accept"}, {"V", 24}, {"items", items}});
  const DflashReference& r = c.reference();
  const auto* token = c.buffer(accept::kToken).as<std::int32_t>();
  std::int64_t first = 0, nonempty = 0;
  for (std::size_t b = 0; b < toys.size(); ++b) {
    const Toy& toy = toys[b];
    Text accepted;
    for (int j = 0; j < r.n_acc[b]; ++j) {
      accepted.push_back(
          toy.token[static_cast<std::size_t>(r.acc_node[static_cast<std::size_t>(first + j)])]);
    }
    const Text best = toy.longest_confirmed();
    // Equal siblings have equal contexts, so any of them may be taken. The rule takes the lowest,
    // and what it emits is still confirmed.
    if (toy.siblings_differ()) {
      EXPECT_EQ(accepted, best) << b;
    } else {
      ASSERT_LE(accepted.size(), best.size());
      EXPECT_TRUE(std::equal(accepted.begin(), accepted.end(), best.begin())) << b;
    }
    nonempty += accepted.empty() ? 0 : 1;
    // The bonus is the model's own next symbol. Symbols map to tokens in order, so equal symbols of
    // one item are equal tokens.
    const int bonus = next_symbol(accepted, toy.salt);
    for (std::size_t i = 0; i < toy.token.size(); ++i) {
      const bool same = token[first + static_cast<std::int64_t>(i)] == r.bonus[b];
      EXPECT_EQ(same, toy.token[i] == bonus) << b;
    }
    first += static_cast<std::int64_t>(toy.parent.size());
  }
  EXPECT_GT(nonempty, static_cast<std::int64_t>(toys.size() / 4));
}

TEST(DflashWitness, MasksAreTheTransitiveClosure) {
  const Case c(json{{"entry", "mask"}, {"items", {{{"P", 9}, {"n", 70}}, {{"P", 2}, {"n", 5}}}}},
               4);
  const auto* parent = c.buffer(mask::kParent).as<std::int32_t>();
  const DflashReference& r = c.reference();
  const std::size_t ldm = r.bits.size() / 75;
  for (const auto& [first, n, P] : {std::tuple{0, 70, 9}, std::tuple{70, 5, 2}}) {
    std::vector<std::vector<int>> sees(static_cast<std::size_t>(n),
                                       std::vector<int>(static_cast<std::size_t>(n)));
    for (int i = 0; i < n; ++i) {
      sees[i][i] = 1;
      if (parent[first + i] >= 0) sees[i][parent[first + i]] = 1;
    }
    for (int k = 0; k < n; ++k) {
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) sees[i][j] |= sees[i][k] & sees[k][j];
      }
    }
    for (int i = 0; i < n; ++i) {
      int depth = 0;
      for (int j = 0; j < n; ++j) {
        depth += sees[i][j];
        const auto word =
            r.bits[static_cast<std::size_t>(first + i) * ldm + static_cast<std::size_t>(j / 64)];
        EXPECT_EQ(static_cast<int>(word >> (j % 64) & 1), sees[i][j]);
      }
      EXPECT_EQ(r.depth[static_cast<std::size_t>(first + i)], depth);
      EXPECT_EQ(r.pos[static_cast<std::size_t>(first + i)], P + depth - 1);
    }
  }
}

TEST(DflashWitness, AttentionIsTheMaskedFullMatrix) {
  const std::int64_t P = 21, n = 12, Hq = 4, Hkv = 2, D = 32;
  const Case c(json{{"entry", "attention"},
                    {"Hq", Hq},
                    {"Hkv", Hkv},
                    {"D", D},
                    {"scale", -0.3},
                    {"items", {{{"P", P}, {"n", n}}}}},
               3);
  const auto* parent = c.buffer(attention::kParent).as<std::int32_t>();
  const auto* q = c.buffer(attention::kQ).as<float>();
  const auto* k = c.buffer(attention::kK).as<float>();
  const auto* v = c.buffer(attention::kV).as<float>();
  const auto sees = [&](std::int64_t i, std::int64_t j) {
    if (j < P) return true;
    for (std::int64_t a = i; a >= 0; a = parent[a]) {
      if (a == j - P) return true;
    }
    return false;
  };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t h = 0; h < Hq; ++h) {
      std::vector<long double> e(static_cast<std::size_t>(P + n), 0);
      long double sum = 0;
      for (std::int64_t j = 0; j < P + n; ++j) {
        if (!sees(i, j)) continue;
        long double dot = 0;
        for (std::int64_t d = 0; d < D; ++d) {
          dot += static_cast<long double>(q[(i * Hq + h) * D + d]) * k[(j * Hkv + h / 2) * D + d];
        }
        sum += e[static_cast<std::size_t>(j)] = std::exp(dot * static_cast<long double>(-0.3f));
      }
      const auto row = static_cast<std::size_t>(i * Hq + h);
      EXPECT_NEAR(c.reference().lse[row], static_cast<double>(std::log(sum)), 1e-12);
      for (std::int64_t d = 0; d < D; ++d) {
        long double o = 0;
        for (std::int64_t j = 0; j < P + n; ++j) {
          o += e[static_cast<std::size_t>(j)] / sum * v[(j * Hkv + h / 2) * D + d];
        }
        EXPECT_NEAR(c.reference().o[row * D + static_cast<std::size_t>(d)], static_cast<double>(o),
                    1e-12);
      }
    }
  }
}

// One row per call and no draft: the slow way, with which generation must agree.
TEST(DflashWitness, TheTextIsThatOfOneTokenAtATime) {
  const Case c(
      json{{"entry", "generate"}, {"V", 41}, {"n_prompt", 6}, {"max_new", 25}, {"max_nodes", 5}},
      8);
  const auto prompt = c.buffer(generate::kPrompt).span<std::int32_t>();
  Text text(prompt.begin(), prompt.end());
  std::vector<float> logits(41);
  for (std::size_t at = 0; text.size() < prompt.size() + 25; ++at) {
    struct {
      CallHeader header{1, 1};
      std::int64_t pos = 0;
      std::uint64_t bits = 1;
      std::int32_t token = 0;
    } request;
    request.pos = static_cast<std::int64_t>(at);
    request.token = text[at];
    const std::span bytes(reinterpret_cast<const std::byte*>(&request), sizeof(CallHeader) + 20);
    ASSERT_EQ(c.server()->serve(kVerify, bytes, std::as_writable_bytes(std::span(logits))),
              ASSAY_OK);
    if (at + 1 < text.size()) continue;
    text.push_back(
        static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  const std::vector<std::int32_t> emitted(text.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
                                          text.end());
  EXPECT_EQ(c.reference().text, emitted);
  EXPECT_LT(c.reference().verify_calls, 25);
}

TEST(DflashWitness, WrongPositionsMasksAndStaleRowsChangeTheModel) {
  LanguageModel model;
  model.hash = KeyedHash(5);
  model.V = 30;
  Context right;
  for (const int t : {3, 4, 5}) right.append(model, t);
  Context stale = right;
  stale.sum += model.state(7, 3, right.sum);
  const std::uint64_t state = model.state(6, 3, right.sum);
  EXPECT_NE(state, model.state(6, 4, right.sum));
  EXPECT_NE(state, model.state(6, 3, stale.sum));
  EXPECT_EQ(state, model.state(6, 3, right.sum));
}

// Emitted tokens over many trials: the first has the root's distribution, and the one after an
// accepted root has the node's.
TEST(DflashWitness, SamplingIsLossless) {
  for (const char* mode : {"A", "B", "C"}) {
    const int V = 16, trials = 200000;
    const Case c(json{{"entry", "accept"},
                      {"V", V},
                      {"copies", trials},
                      {"sampling", mode},
                      {"shared", true},
                      {"items", {{{"P", 3}, {"parent", {-1, -1}}}}}},
                 12);
    const DflashReference& r = c.reference();
    const auto* token = c.buffer(accept::kToken).as<std::int32_t>();
    const auto softmax = [&](int handle) {
      std::vector<double> p(16);
      const float* x = c.buffer(handle).as<float>();
      double sum = 0;
      for (std::size_t j = 0; j < 16; ++j) sum += p[j] = std::exp(static_cast<double>(x[j]));
      for (double& y : p) y /= sum;
      return p;
    };
    std::vector<double> first(V), second(V);
    double seconds = 0;
    for (std::size_t b = 0; b < trials; ++b) {
      const bool accepted = r.n_acc[b] > 0;
      const std::int32_t t =
          accepted ? token[2 * b + static_cast<std::size_t>(r.acc_node[2 * b])] : r.bonus[b];
      first[static_cast<std::size_t>(t)] += 1.0 / trials;
      if (!accepted) continue;
      second[static_cast<std::size_t>(r.bonus[b])] += 1;
      seconds += 1;
    }
    double tv = 0, tv2 = 0, chi2 = 0;
    const auto p = softmax(accept::kRootLogits), p2 = softmax(accept::kNodeLogits);
    for (std::size_t j = 0; j < 16; ++j) {
      tv += std::abs(first[j] - p[j]) / 2;
      tv2 += std::abs(second[j] / seconds - p2[j]) / 2;
      chi2 += trials * (first[j] - p[j]) * (first[j] - p[j]) / p[j];
    }
    EXPECT_LT(tv, 0.008) << mode;
    EXPECT_LT(tv2, 0.012) << mode;
    EXPECT_LT(chi2, 50) << mode;  // 15 degrees of freedom: probability below 1e-5
  }
}

// --- implementations and examples

class Correct : public ::testing::TestWithParam<const char*> {};

TEST_P(Correct, PassesEveryCaseThatIsNotTimed) {
  testing::DirectRunner runner(subject().name,
                               testing::compile(subject().file(GetParam()), subject().name));
  for (const CaseSpec& c : subject().spec.cases) {
    if (c.group == CaseGroup::timed) continue;
    for (const std::uint64_t seed : {1, 2}) {
      const CaseResult result = runner.run(c, seed);
      // The sample submissions may lack an optional part; the challenge's own implementations may
      // not.
      const bool may_lack = std::string(GetParam()).find("submissions") != std::string::npos &&
                            c.group == CaseGroup::completeness;
      if (may_lack && result.verdict == Verdict::unsupported) continue;
      EXPECT_EQ(result.verdict, Verdict::ok)
          << c.name << ", seed " << seed << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dflash, Correct,
    ::testing::Values("baselines/naive.cpp", "baselines/par.cpp",
                      "../../submissions/textbook/dflash_verify/submission.cpp",
                      "../../submissions/tuned/dflash_verify/submission.cpp"));

TEST(DflashAccept, AnOffsetMovesEveryLogitAndNoChoice) {
  CaseSpec moved = subject().case_named("negative_logits_v_1000");
  CaseSpec there = moved;
  for (auto& item : there.params.at("items")) item.erase("offset");
  const Filled low(subject(), moved, 3), usual(subject(), there, 3);
  const auto below = low.buffer(accept::kNodeLogits).span<float>(),
             as_drawn = usual.buffer(accept::kNodeLogits).span<float>();
  ASSERT_EQ(below.size(), as_drawn.size());
  for (std::size_t i = 0; i < below.size(); ++i) {
    ASSERT_LT(below[i], 0);
    ASSERT_EQ(below[i], as_drawn[i] - 100);
  }
  EXPECT_EQ(low.bytes(accept::kToken), usual.bytes(accept::kToken));
}

// A decision within rounding of its threshold may go either way, so such items are not compared. A
// case in which all are such would pass whatever came.
TEST(DflashAccept, EveryCaseHasAnItemThatIsCompared) {
  int looked_at = 0;
  for (const CaseSpec& spec : subject().spec.cases) {
    if (spec.drawn || spec.expect_status != 0 || spec.params.value("shared", false) ||
        spec.params.value("entry", "") != "accept")
      continue;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const testing::Filled filled(subject(), spec, seed);
      const std::vector<char>& unclear = filled.reference_as<DflashReference>().unclear;
      EXPECT_TRUE(unclear.empty() || std::ranges::count(unclear, 0) > 0)
          << spec.name << ", seed " << seed;
    }
    ++looked_at;
  }
  EXPECT_GT(looked_at, 20);
}

TEST(DflashExamples, CoverEveryTrap) { testing::expect_traps_covered(subject()); }

// --- generator and checker

TEST(DflashPlan, EveryHandleHasItsBuffer) {
  const std::map<std::int32_t, int> handles{
      {kMask, mask::kHandles},           {kFullMask, full_mask::kHandles},
      {kAttention, attention::kHandles}, {kAccept, accept::kHandles},
      {kCompact, compact::kHandles},     {kGenerate, generate::kHandles}};
  for (const CaseSpec& spec : subject().spec.cases) {
    const CasePlan plan = subject().challenge->plan(spec);
    EXPECT_EQ(std::ssize(plan.buffers), handles.at(plan.entry)) << spec.name;
  }
}

TEST(DflashFill, DependsOnTheSeedAlone) {
  for (const CaseSpec& spec : subject().spec.cases) {
    if (spec.group != CaseGroup::core) continue;
    const Case a(spec, 7), b(spec, 7), other(spec, 8);
    bool differs = false;
    for (int handle = 0; handle < std::ssize(a.plan().buffers); ++handle) {
      if (a.plan().buffers[static_cast<std::size_t>(handle)].role == Role::output) continue;
      EXPECT_EQ(a.bytes(handle), b.bytes(handle)) << spec.name;
      differs |= a.bytes(handle) != other.bytes(handle);
    }
    EXPECT_TRUE(differs) << spec.name;
  }
}

TEST(DflashCheck, RejectsUntouchedZeroAndNanOutputs) {
  for (const CaseSpec& spec : subject().spec.cases) {
    // dv_compact works in place: the examples test its untouched output.
    if (spec.group != CaseGroup::core || spec.params.at("entry") == "compact") continue;
    testing::expect_blank_outputs_fail(subject(), spec.name);
  }
}

TEST(DflashServer, RefusesWhatDoesNotFit) {
  const Case c(
      json{{"entry", "generate"}, {"V", 41}, {"n_prompt", 6}, {"max_new", 5}, {"max_nodes", 5}}, 8);
  std::vector<std::byte> response(1 << 12);
  const auto ask = [&](std::uint32_t kind, CallHeader header, std::size_t body) {
    std::vector<std::byte> request(sizeof header + body);
    std::memcpy(request.data(), &header, sizeof header);
    return c.server()->serve(kind, request, response);
  };
  EXPECT_EQ(c.server()->serve(kVerify, {}, response), ASSAY_EINVAL);
  EXPECT_EQ(ask(kVerify, {-1, 1}, 64), ASSAY_EINVAL);
  EXPECT_EQ(ask(kVerify, {std::int64_t{1} << 62, std::int64_t{1} << 62}, 64), ASSAY_EINVAL);
  EXPECT_EQ(ask(kVerify, {2, 1}, 24), ASSAY_EINVAL);
  EXPECT_EQ(ask(kDraft, {0, 0}, 0), ASSAY_EINVAL);
  EXPECT_EQ(ask(kDraft, {8, 0}, 12), ASSAY_EINVAL);
  EXPECT_EQ(ask(kCommit, {1, 0}, 8), ASSAY_EINVAL);  // nothing to keep yet
  EXPECT_EQ(ask(9, {0, 0}, 0), ASSAY_EINVAL);
  EXPECT_FALSE(c.check().pass);
}

// Random bytes after counts of every size: each request is answered at once, and malformed ones are
// never honoured.
TEST(DflashServer, SurvivesRandomRequests) {
  Random random(3);
  std::vector<std::byte> request, response;
  const Case c(
      json{{"entry", "generate"}, {"V", 2}, {"n_prompt", 6}, {"max_new", 5}, {"max_nodes", 5}}, 8);
  for (int i = 0; i < 5000; ++i) {
    request.resize(static_cast<std::size_t>(random.below(400)));
    response.resize(static_cast<std::size_t>(random.below(400)));
    for (std::byte& b : request) b = static_cast<std::byte>(random.next());
    for (const std::size_t at : {std::size_t{0}, std::size_t{8}}) {  // counts that may be valid
      const std::int64_t count = std::int64_t{1} << random.below(63) >> random.below(63);
      if (request.size() >= at + 8 && random.below(4) > 0)
        std::memcpy(request.data() + at, &count, sizeof count);
    }
    const auto kind = static_cast<std::uint32_t>(random.below(4));
    c.server()->serve(kind, request, response);
  }
  EXPECT_FALSE(c.check().pass);
}

TEST(DflashServer, BoundsRowsBeforeItCountsThem) {
  const Case c(
      json{{"entry", "generate"}, {"V", 2}, {"n_prompt", 6}, {"max_new", 5}, {"max_nodes", 5}}, 8);
  constexpr std::int64_t kRows = 1 << 12;
  std::vector<std::byte> request(sizeof(CallHeader) + kRows * (8 + 8 * (kRows / 64) + 4)),
      response(kRows * 8);
  const CallHeader header{kRows, kRows / 64};
  std::memcpy(request.data(), &header, sizeof header);
  EXPECT_EQ(c.server()->serve(kVerify, request, response), ASSAY_EINVAL);
  EXPECT_NE(c.server()->complaint().find("more rows than a text can have"), std::string::npos)
      << c.server()->complaint();
}

TEST(DflashVerifyRecorded, AllButSamplingAndGenerationComesBack) {
  std::set<std::string> others;
  for (const std::string& name : testing::not_recorded(subject())) {
    const auto& params = subject().case_named(name).params;
    const std::string entry = params.at("entry");
    const bool greedy = params.value("sampling", "greedy") == "greedy";
    if (entry != "generate" && greedy) others.insert(name);
  }
  // The cases with NaN or huge values, one with 20 million logits, one with 65,540 items, one with
  // rows of 8 MiB, and those where nothing is given at all.
  EXPECT_THAT(others, ::testing::UnorderedElementsAre(
                          "accept_wide_256", "budget_0", "huge_masked", "items_beyond_16_bits",
                          "compact_wide_rows", "nan_unvisited", "sibling_leak", "bf16_nan",
                          "batch_0_null", "attention_batch_0_null", "accept_batch_0_null"));
}

// Forged numbers: none makes the harness compute or read without bounds.
TEST(DflashVerifyRecorded, TreesThatAreNoneAreNoCase) {
  const Filled filled(subject(), "mask_basic", 1);
  const std::size_t nodes = filled.buffer(mask::kParent).bytes / 4;
  for (const std::int32_t parent : {-2, static_cast<std::int32_t>(nodes), 0, -1}) {
    testing::RecordedCase recorded(filled);
    std::vector<std::int32_t> parents(nodes, -1);
    parents[0] = parent;
    recorded.array(mask::kParent).bytes = std::as_bytes(std::span(parents));
    EXPECT_EQ(cases::GivenInputs(*subject().challenge).take(recorded.call).has_value(),
              parent == -1)
        << parent;
  }
  const auto refused = [&](auto change) {
    testing::RecordedCase recorded(filled);
    recorded.with<Params>(change);
    return !cases::GivenInputs(*subject().challenge).take(recorded.call);
  };
  EXPECT_FALSE(refused([](Params&) {}));
  EXPECT_TRUE(refused([](Params& p) { p.B = -1; }));
  EXPECT_TRUE(refused([](Params& p) { p.B = 1 << 30; }));
  EXPECT_TRUE(refused([](Params& p) { p.ldm = 0; }));
  EXPECT_TRUE(refused([](Params& p) { p.ldm = std::int64_t{1} << 62; }));
}

TEST(DflashVerifyRecorded, AttentionOfAForgerIsNoCase) {
  const Filled filled(subject(), "attention_basic", 1);
  const auto refused = [&](auto change) {
    testing::RecordedCase recorded(filled);
    recorded.with<Params>([&](Params& p) { change(p.fa); });
    return !cases::GivenInputs(*subject().challenge).take(recorded.call);
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_FALSE(refused([](fa_params&) {}));
  EXPECT_TRUE(refused([](fa_params& p) { p.B = kHuge; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.Hkv = 0; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.Hq = kHuge; }));
  EXPECT_TRUE(refused([](fa_params& p) { --p.D; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.dtype = ASSAY_F16; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.scale = INFINITY; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.size = 8; }));
  for (const std::int64_t P : {std::int64_t{1}, kHuge}) {  // a length other than that of the keys
    testing::RecordedCase recorded(filled);
    std::vector<std::int64_t> prefixes(filled.buffer(attention::kP).bytes / 8, P);
    recorded.array(attention::kP).bytes = std::as_bytes(std::span(prefixes));
    EXPECT_FALSE(cases::GivenInputs(*subject().challenge).take(recorded.call)) << P;
  }
}

TEST(DflashVerifyRecorded, KeysComeInPieces) {
  const Filled filled(subject(), "attention_basic", 1);
  testing::RecordedCase recorded(filled);
  RecordedCall::Array& keys = recorded.array(attention::kK);
  const auto all = keys.bytes;
  keys.bytes = all.first(64);
  EXPECT_FALSE(cases::GivenInputs(*subject().challenge).take(recorded.call));
  recorded.call.arrays.push_back({attention::kK, false, all.subspan(64)});
  EXPECT_TRUE(cases::GivenInputs(*subject().challenge).take(recorded.call));
}

TEST(DflashVerifyRecorded, RowsThatWereNotAcceptedInOrderAreNoCase) {
  CaseSpec spec;
  spec.name = "made_here";
  spec.params = {{"entry", "compact"}, {"items", {{{"P", 3}, {"n", 3}}}}, {"row_bytes", 8}};
  const Filled filled(subject(), spec, 1);
  const auto taken = [&](std::vector<std::int32_t> nodes, std::int32_t n) {
    testing::RecordedCase recorded(filled);
    recorded.array(compact::kAccNode).bytes = std::as_bytes(std::span(nodes));
    recorded.array(compact::kNAcc).bytes = std::as_bytes(std::span(&n, 1));
    return cases::GivenInputs(*subject().challenge).take(recorded.call).has_value();
  };
  EXPECT_TRUE(taken({0, 2, -1}, 2));
  EXPECT_FALSE(taken({2, 0, -1}, 2));
  EXPECT_FALSE(taken({1, 1, -1}, 2));
  EXPECT_FALSE(taken({0, 3, -1}, 2));
  EXPECT_FALSE(taken({-1, 0, 1}, 3));
  EXPECT_FALSE(taken({0, 1, 2}, 4));
  EXPECT_FALSE(taken({0, 1, 2}, -1));
}

TEST(DflashVerifyRecorded, TokensOutsideTheVocabularyAreNoCase) {
  const Filled filled(subject(), "accept_basic", 1);
  testing::RecordedCase recorded(filled);
  cases::GivenInputs given(*subject().challenge);
  ASSERT_TRUE(given.take(recorded.call));
  std::vector<std::int32_t> tokens(filled.buffer(accept::kToken).bytes / 4, 0);
  tokens[0] = 1 << 30;
  recorded.array(accept::kToken).bytes = std::as_bytes(std::span(tokens));
  EXPECT_FALSE(given.take(recorded.call));
}

}  // namespace
}  // namespace assay::dflash_verify
