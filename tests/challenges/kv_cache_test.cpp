// The reference against an attention written here, the script compiler and the model, the
// baselines, the examples, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "run/challenge_registry.h"
#include "run/layout.h"
#include "support/direct_runner.h"
#include "trusted.h"
#include "util/files.h"

namespace assay::kv_cache {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kName = "kv_cache";

const Challenge& challenge() {
  for (const auto& row : challenge_rows()) {
    if (row.name == kName) return row.get();
  }
  throw Error("not registered");
}

const ChallengeSpec& spec() {
  static const ChallengeSpec loaded = testing::spec_of(kName);
  return loaded;
}

const CaseSpec& case_named(const std::string& name) {
  for (const CaseSpec& c : spec().cases) {
    if (c.name == name) return c;
  }
  throw Error("no case " + name);
}

CaseSpec scripted(const json& config, const std::string& script) {
  CaseSpec c;
  c.name = "made_here";
  c.params = {{"config", config}, {"script", script}};
  return c;
}

std::string file(const std::string& name) { return spec().directory + "/" + name; }

// A case drawn from a seed, with poisoned room for outputs.
struct Drawn {
  explicit Drawn(const CaseSpec& given, std::uint64_t seed = 1)
      : spec(given),
        plan(challenge().plan(spec)),
        layout(run::make_layout(plan, false)),
        input(layout.input_bytes + 64),
        output(layout.output_bytes + 64),
        buffers(run::views(layout, input.data(), output.data())) {
    challenge().fill(spec, plan, seed, buffers);
    made = challenge().reference(spec, plan, buffers);
    run::poison(plan, layout, output.data(), seed);
  }

  const KvReference& reference() const { return static_cast<const KvReference&>(*made); }
  const Params& params() const { return *reinterpret_cast<const Params*>(plan.params.data()); }
  CheckResult check() const { return challenge().check(spec, plan, *made, buffers, nullptr); }

  CaseSpec spec;
  CasePlan plan;
  run::Layout layout;
  std::vector<std::byte> input, output;
  std::vector<BufferView> buffers;
  std::unique_ptr<Reference> made;
};

// --- the witness: histories as plain rows, attention element by element
// --------------------------------

// Every token of every sequence and layer as a row of its own, by the most literal reading of the
// script; sequences are numbered by the script's variables.
class Witness {
 public:
  explicit Witness(const Drawn& drawn) : drawn_(drawn), c_(drawn.params().config[0]) {}

  // The largest difference of the reference's o and lse from this one's, over the whole script.
  double worst() {
    const auto ops = drawn_.buffers[kOps].span<const Op>();
    for (std::size_t i = 0; i < ops.size(); ++i) step(ops[i], drawn_.reference().expected[i]);
    return worst_;
  }

  int compared() const { return compared_; }

 private:
  struct Token {
    std::vector<double> k, v;
  };
  using Layers = std::vector<std::vector<Token>>;

  std::vector<double> row(int buffer, std::int64_t at, std::int64_t n) const {
    std::vector<double> out;
    for (std::int64_t i = 0; i < n; ++i) {
      const BufferView& view = drawn_.buffers[static_cast<std::size_t>(buffer)];
      out.push_back(drawn_.params().element_bytes == 2
                        ? static_cast<double>(bf16_to_float(view.as<std::uint16_t>()[at + i]))
                        : static_cast<double>(view.as<float>()[at + i]));
    }
    return out;
  }

  void step(const Op& op, const Expected& expected) {
    if (expected.status != Expect::success) return;
    const auto* pool = drawn_.buffers[kPool].as<std::int64_t>() + op.pool;
    switch (op.kind) {
      case kNew: held_[op.var].assign(static_cast<std::size_t>(c_.n_layers), {}); return;
      case kFree: held_.erase(op.var); return;
      case kFork: held_[op.other] = held_.at(op.var); return;
      case kTruncate:
        for (auto& layer : held_.at(op.var)) {
          if (std::ssize(layer) > op.a) layer.resize(static_cast<std::size_t>(op.a));
        }
        return;
      case kAppend: return append(op, pool);
      case kAttend:
      case kAttendShared: return attend(op, pool, *expected.attended);
      case kAttendTree: return attend_tree(op, pool, *expected.attended);
      case kLen:
        EXPECT_EQ(expected.length,
                  held_.contains(op.var) ? std::ssize(layer(op.var, op.layer)) : -1);
        return;
      default: return;
    }
  }

  std::vector<Token>& layer(std::int64_t v, std::int64_t l) {
    return held_.at(v).at(static_cast<std::size_t>(l));
  }

  void append(const Op& op, const std::int64_t* pool) {
    for (std::int64_t b = 0; b < op.n; ++b) {
      for (std::int64_t t = pool[op.n + b]; t < pool[op.n + b + 1]; ++t) {
        layer(pool[b], op.layer)
            .push_back(
                {row(op.phase == 1 ? kLaterK : kK, op.k_at + t * c_.n_kv * c_.D, c_.n_kv * c_.D),
                 row(op.phase == 1 ? kLaterV : kV, op.v_at + t * c_.n_kv * c_.Dv,
                     c_.n_kv * c_.Dv)});
      }
    }
  }

  void attend(const Op& op, const std::int64_t* pool, const Attended& reference) {
    for (std::int64_t b = 0; b < op.n; ++b) {
      const std::int64_t begin = pool[op.n + b], end = pool[op.n + b + 1];
      for (std::int64_t t = begin; t < end; ++t) {
        const std::vector<Token>& tokens = layer(pool[b], op.layer);
        const std::int64_t position = std::ssize(tokens) - (end - t);
        const std::vector<double> q =
            row(op.phase == 1 ? kLaterQ : kQ, op.q_at + t * c_.n_q * c_.D, c_.n_q * c_.D);
        std::vector<bool> seen;
        for (std::int64_t j = 0; j < std::ssize(tokens); ++j)
          seen.push_back(j <= position && near(j, position));
        for (std::int64_t h = 0; h < c_.n_q; ++h) compare(tokens, seen, q, h, t, reference);
      }
    }
  }

  bool near(std::int64_t key, std::int64_t position) const {
    return c_.window < 0 || position < key + c_.window || key < c_.sinks;
  }

  // A node sees what its path from the root would see if the path were all that follows the prefix.
  void attend_tree(const Op& op, const std::int64_t* pool, const Attended& reference) {
    const std::int64_t* parent = pool + 2 * op.n + 1;
    for (std::int64_t b = 0; b < op.n; ++b) {
      const std::int64_t begin = pool[op.n + b], end = pool[op.n + b + 1];
      for (std::int64_t t = begin; t < end; ++t) {
        const std::vector<Token>& tokens = layer(pool[b], op.layer);
        const std::int64_t prefix = std::ssize(tokens) - (end - begin);
        std::vector<std::int64_t> path;
        for (std::int64_t i = t - begin; i >= 0; i = parent[begin + i])
          path.insert(path.begin(), prefix + i);
        const std::int64_t position = prefix + std::ssize(path) - 1;
        std::vector<bool> seen(tokens.size());
        for (std::int64_t j = 0; j < prefix; ++j)
          seen[static_cast<std::size_t>(j)] = near(j, position);
        for (std::int64_t i = 0; i < std::ssize(path); ++i)
          seen[static_cast<std::size_t>(path[static_cast<std::size_t>(i)])] =
              near(prefix + i, position);
        const std::vector<double> q =
            row(op.phase == 1 ? kLaterQ : kQ, op.q_at + t * c_.n_q * c_.D, c_.n_q * c_.D);
        for (std::int64_t h = 0; h < c_.n_q; ++h) compare(tokens, seen, q, h, t, reference);
      }
    }
  }

  void compare(const std::vector<Token>& tokens, const std::vector<bool>& seen,
               const std::vector<double>& q, std::int64_t h, std::int64_t t,
               const Attended& reference) {
    const std::int64_t ratio = c_.n_q / c_.n_kv;
    std::vector<double> o(static_cast<std::size_t>(c_.Dv), 0.0), scores;
    double sum = 0, most = -HUGE_VAL;
    for (std::int64_t j = 0; j < std::ssize(tokens); ++j) {
      double dot = 0;
      for (std::int64_t d = 0; d < c_.D; ++d) {
        dot +=
            q[static_cast<std::size_t>(h * c_.D + d)] *
            tokens[static_cast<std::size_t>(j)].k[static_cast<std::size_t>(h / ratio * c_.D + d)];
      }
      scores.push_back(seen[static_cast<std::size_t>(j)]
                           ? dot * static_cast<double>(drawn_.params().scale)
                           : -HUGE_VAL);
      most = std::max(most, scores.back());
    }
    for (std::size_t j = 0; j < scores.size() && most > -HUGE_VAL; ++j) {
      const double p = std::exp(scores[j] - most);
      sum += p;
      for (std::size_t d = 0; d < o.size(); ++d) {
        o[d] += p * tokens[j].v[static_cast<std::size_t>(h / ratio * c_.Dv) + d];
      }
    }
    const auto at = static_cast<std::size_t>(t * c_.n_q + h);
    for (std::size_t d = 0; d < o.size(); ++d) {
      note(sum > 0 ? o[d] / sum : 0, reference.o[at * o.size() + d]);
    }
    if (sum > 0) return note(most + std::log(sum), reference.lse[at]);
    EXPECT_EQ(reference.lse[at], -HUGE_VAL);
  }

  void note(double mine, double theirs) {
    const double difference = std::abs(mine - theirs);
    if (!(difference <= worst_)) worst_ = difference;
    ++compared_;
  }

  const Drawn& drawn_;
  const kvc_config& c_;
  std::map<std::int64_t, Layers> held_;
  double worst_ = 0;
  int compared_ = 0;
};

TEST(KvReference, AgreesWithAttentionOverPlainHistories) {
  for (const char* name : {"batch",          "lifecycle",
                           "nothing_cached", "more_rows_than_tokens",
                           "scale_negative", "causal_in_chunk",
                           "ragged_lengths", "truncate_then_append",
                           "fork_diverge",   "page_edges",
                           "layers_skewed",  "capacity",
                           "fragmentation",  "score_spike",
                           "window_1",       "window_16",
                           "window_random",  "sinks_4",
                           "dv_larger",      "gqa_groups_of_3",
                           "bf16_lifecycle", "decode_ragged_small",
                           "tree_nodes",     "tree_random",
                           "tree_refused",   "tree_window",
                           "shared_forks",   "shared_nothing_own",
                           "shared_spike",   "defragment_forks"}) {
    CaseSpec c = case_named(std::string(name) == "decode_ragged_small" ? "decode_ragged" : name);
    if (c.params.contains("ragged")) {
      c.params["ragged"] = {{"sequences", 5}, {"low", 3}, {"high", 40}, {"steps", 3}};
    }
    const Drawn drawn(c, 21);
    Witness witness(drawn);
    EXPECT_LT(witness.worst(), 1e-11) << name;
    EXPECT_GT(witness.compared(), 50) << name;
  }
}

TEST(KvReference, OneKeyGivesItsValue) {
  const Drawn drawn(
      scripted({{"n_q", 2}, {"n_kv", 1}, {"D", 3}, {"Dv", 5}}, "create; new a; step a:1"));
  const Attended& a = *drawn.reference().expected[3].attended;
  for (std::size_t i = 0; i < a.o.size(); ++i) {
    EXPECT_EQ(a.o[i], static_cast<double>(drawn.buffers[kV].as<float>()[i % 5]));
  }
  double score = 0;
  for (int d = 0; d < 3; ++d) {
    score += static_cast<double>(drawn.buffers[kQ].as<float>()[d]) *
             static_cast<double>(drawn.buffers[kK].as<float>()[d]);
  }
  EXPECT_NEAR(a.lse[0], score * static_cast<double>(drawn.params().scale), 1e-14);
}

// --- the model
// -----------------------------------------------------------------------------------------

std::vector<Expect> statuses(const json& config, const std::string& script) {
  const Drawn drawn(scripted(config, script));
  std::vector<Expect> out;
  for (const Expected& e : drawn.reference().expected) out.push_back(e.status);
  return out;
}

TEST(KvModel, KnowsWhatIsRefused) {
  using enum Expect;
  EXPECT_EQ(statuses({{"max_seqs", 1}, {"max_tokens", 5}, {"max_len", 4}},
                     "create; new a; new b; append a:5; append a:4; append a:1; fork a c; trunc a "
                     "5; trunc a 3; "
                     "append a:1 a:0; append@1 a:1; attend #0:1; free a; free a; destroy"),
            (std::vector<Expect>{success, success, full, full, success, full, full, invalid,
                                 success, invalid, invalid, invalid, success, invalid, success}));
  EXPECT_EQ(
      statuses({{"max_tokens", 7}},
               "create; new a b; append a:4; append a:1 b:3; append b:3; fork a c"),
      (std::vector<Expect>{success, success, success, success, full, success, full, success}));
  EXPECT_EQ(statuses(json::object(),
                     "create quant=3; create!nullout; create; new!nullout a; append!nullk #0:0"),
            (std::vector<Expect>{invalid, invalid, success, invalid, invalid, success}));
}

TEST(KvModel, KnowsWhatIsRefusedOfTrees) {
  using enum Expect;
  EXPECT_EQ(statuses(json::object(),
                     "create; new a b; append a:4 b:2; tree@0 a=-1.0.0.2; tree@0 a=-1.1; "
                     "tree@0 a=-2; tree@0 a=-1.0 b=-1.1; tree@0 a=-1.-1.-1 b=0; "
                     "tree@0 b=-1.0.0; tree@0!nullparent b=-1; tree@0 b= a=-1; destroy"),
            (std::vector<Expect>{success, success, success, success, success, invalid, invalid,
                                 invalid, invalid, invalid, invalid, success, success}));
}

TEST(KvModel, KnowsWhatIsRefusedOfSharedPrefixes) {
  using enum Expect;
  EXPECT_EQ(statuses(json::object(),
                     "create; new a; append a:4; fork a b; append b:1; shared 4 a:1 b:1; "
                     "shared -1 a:1; shared 5 b:1 a:0; shared 5 b:1; shared@1 0 b:1; destroy"),
            (std::vector<Expect>{success, success, success, success, success, success, invalid,
                                 invalid, success, invalid, success}));
  EXPECT_THROW(
      statuses(json::object(), "create; new a b; append a:4; append b:4; shared 4 a:1 b:1"), Error);
  EXPECT_THROW(statuses(json::object(),
                        "create; new a; append a:4; fork a b; trunc a 3; append a:1; "
                        "shared 4 a:1 b:1"),
               Error);
}

TEST(KvModel, DefragmentationMayLackMemory) {
  using enum Expect;
  EXPECT_EQ(statuses(json::object(),
                     "create; defragment!nullcache; defragment; allow 0; defragment; allow -1; "
                     "defragment; destroy"),
            (std::vector<Expect>{success, invalid, success, success, success_or_no_memory, success,
                                 success, success}));
}

TEST(KvModel, CountsSharedAndVisibleTokensOnce) {
  const auto needed = [](const json& config, const std::string& script) {
    const Drawn drawn(scripted(config, script + "; bytes; destroy"));
    return drawn.reference().expected[drawn.reference().expected.size() - 2].needed;
  };
  const json config{{"n_q", 1}, {"n_kv", 1}, {"D", 1}};
  EXPECT_EQ(needed(config, "create; new a; append a:10"), 80);
  EXPECT_EQ(needed(config, "create; new a; append a:10; fork a b; append b:2 a:1"), 8 * 13);
  EXPECT_EQ(needed(config, "create; new a; append a:10; fork a b; trunc a 4; free b"), 8 * 4);
  EXPECT_EQ(
      needed({{"n_q", 1}, {"n_kv", 1}, {"D", 1}, {"window", 3}}, "create; new a; append a:10"), 24);
  EXPECT_EQ(needed({{"n_q", 1}, {"n_kv", 1}, {"D", 2}, {"quant", 4}}, "create; new a; append a:10"),
            20);
}

TEST(KvGenerator, DependsOnTheSeedAlone) {
  for (const char* name : {"batch", "fragmentation", "ragged_memory"}) {
    const CaseSpec& c = case_named(name);
    const Drawn a(c, 5), b(c, 5), other(c, 6);
    const bool drawn_script = c.params.contains("random") || c.params.contains("ragged");
    for (const Handle buffer : {kOps, kPool, kK, kV, kQ}) {
      const auto i = static_cast<std::size_t>(buffer);
      if (a.buffers[i].bytes == 0) continue;
      ASSERT_EQ(a.buffers[i].bytes, other.buffers[i].bytes);
      EXPECT_EQ(std::memcmp(a.buffers[i].data, b.buffers[i].data, a.buffers[i].bytes), 0) << name;
      const bool same =
          std::memcmp(a.buffers[i].data, other.buffers[i].data, a.buffers[i].bytes) == 0;
      const bool differs =
          drawn_script ? buffer != kOps || c.params.contains("random") : buffer > kPool;
      EXPECT_EQ(same, !differs) << name << " buffer " << i;
    }
  }
}

TEST(KvGenerator, TreesDependOnTheSeedAndHaveTheirParentsBeforeThem) {
  const CaseSpec c = scripted(json::object(), "create; new a b; append a:90 b:9; tree a~80 b~9");
  const auto pool = [&](std::uint64_t seed) { return compile_script(c, seed).pool; };
  EXPECT_EQ(pool(7), pool(7));
  EXPECT_NE(pool(7), pool(8));
  const Script s = compile_script(c, 7);
  const Op& op = s.ops[s.ops.size() - 2];
  ASSERT_EQ(op.kind, kAttendTree);
  ASSERT_EQ(std::ssize(s.pool), op.pool + 2 * 2 + 1 + 89);
  std::map<std::int64_t, int> children;
  for (std::int64_t i = 0; i < 89; ++i) {
    const std::int64_t parent = s.pool[static_cast<std::size_t>(op.pool + 5 + i)];
    EXPECT_GE(parent, -1);
    EXPECT_LT(parent, i < 80 ? i : i - 80);
    if (i < 80) ++children[parent];
  }
  EXPECT_GT(children.size(), 15);
  EXPECT_LT(children.size(), 75);
}

TEST(KvGenerator, RandomScriptsDefragmentOnlyWhereTheyAreToldTo) {
  const auto count = [](const char* name) {
    const Script s = compile_script(case_named(name), 3);
    return std::count_if(s.ops.begin(), s.ops.end(),
                         [](const Op& op) { return op.kind == kDefragment; });
  };
  EXPECT_EQ(count("fragmentation"), 0);
  EXPECT_GT(count("defragment_random"), 20);
}

TEST(KvGenerator, RandomScriptsReachEveryOperationAndKeepToTheirRoom) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Script s = compile_script(case_named("fragmentation"), seed);
    std::map<std::int64_t, int> count;
    int refused = 0;
    for (const Op& op : s.ops) {
      ++count[op.kind];
      refused += (op.flags & kMayFail) != 0 ? 1 : 0;
    }
    for (const Kind kind : {kNew, kFree, kTruncate, kFork, kAppend, kAttend, kLen, kBytes, kRead}) {
      EXPECT_GT(count[kind], 20) << kind;
    }
    EXPECT_GT(refused, 20);
    EXPECT_GE(std::ssize(s.ops) - count[kNothing], 2000);
  }
}

// --- the check
// -------------------------------------------------------------------------------------------

TEST(KvChecker, RejectsUntouchedZeroAndNanOutputs) {
  for (const char* name : {"decode", "lifecycle", "int8_normal", "read_ranges", "create_refused"}) {
    Drawn drawn(case_named(name), 3);
    EXPECT_FALSE(drawn.check().pass) << name;
    std::fill(drawn.output.begin(), drawn.output.end(), std::byte{0});
    EXPECT_FALSE(drawn.check().pass) << name;
    std::fill(drawn.output.begin(), drawn.output.end(), std::byte{0xff});
    EXPECT_FALSE(drawn.check().pass) << name;
    for (const std::int64_t hostile : {INT64_MIN, INT64_MAX, std::int64_t{1} << 40}) {
      auto results = drawn.buffers[kResults].span<std::int64_t>();
      std::fill(results.begin(), results.end(), hostile);
      EXPECT_FALSE(drawn.check().pass) << name;
    }
  }
}

// Outputs as a right implementation writes them, then one thing changed.
class KvTampered : public ::testing::Test {
 protected:
  KvTampered()
      : drawn_(scripted(
            {{"n_q", 2}, {"n_kv", 1}, {"D", 4}},
            "create; new a b; append a:3 b:2; attend a:1 b:1; len a; read a 0 2; attend a:1 a:1; "
            "bytes; destroy")) {
    const KvReference& r = drawn_.reference();
    auto* results = drawn_.buffers[kResults].as<Result>();
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
      results[i] = {r.expected[i].status == Expect::success ? ASSAY_OK : ASSAY_EINVAL, 0, 0, 0, 0};
      if (r.ops[i].kind == kNew) results[i].first = static_cast<std::int64_t>(i);
      if (r.ops[i].kind == kLen) results[i].first = r.expected[i].length;
      if (r.ops[i].kind == kBytes) results[i] = {ASSAY_OK, r.expected[i].needed, 1000, 1000, 1000};
    }
    const Attended& a = *r.expected[4].attended;
    std::copy(a.o.begin(), a.o.end(), drawn_.buffers[kO].as<float>());
    std::copy(a.lse.begin(), a.lse.end(), drawn_.buffers[kLse].as<float>());
    std::memcpy(drawn_.buffers[kReadK].data, drawn_.buffers[kK].data, 2 * 4 * sizeof(float));
    std::memcpy(drawn_.buffers[kReadV].data, drawn_.buffers[kV].data, 2 * 4 * sizeof(float));
  }

  Result& result(std::size_t i) { return drawn_.buffers[kResults].as<Result>()[i]; }
  bool passes() const { return drawn_.check().pass; }

  Drawn drawn_;
};

TEST_F(KvTampered, PassesAsItIs) { EXPECT_TRUE(passes()) << drawn_.check().detail; }
TEST_F(KvTampered, SameSlotTwice) {
  result(2).first = result(1).first;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, SlotOutOfRange) {
  result(2).first = 16;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, WrongLength) {
  result(5).first = 4;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, OneBitOfARead) {
  drawn_.buffers[kReadV].as<std::uint32_t>()[7] ^= 1;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, OutputsOffByALittle) {
  drawn_.buffers[kO].as<float>()[9] += 1e-4f;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, LseOffByALittle) {
  drawn_.buffers[kLse].as<float>()[3] += 1e-4f;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, RefusedCallSucceeds) {
  result(7).status = ASSAY_OK;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, RefusedCallWrites) {
  drawn_.buffers[kO].as<float>()[16] = 1;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, BytesThatAreNotHeld) {
  result(8).held = 1001;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, FewerLiveBytesThanTokensNeed) {
  result(8).first -= 1;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, MemoryLeftAtTheEnd) {
  result(9).held = 64;
  EXPECT_FALSE(passes());
}

// What `bytes` says around a defragmentation that left `live` of 4000 live and `held` held.
bool accepts_compaction(std::int64_t live, std::int64_t held, const std::string& between = "") {
  const Drawn drawn(scripted({{"n_q", 1}, {"n_kv", 1}, {"D", 1}},
                             "create; new a; append a:2; bytes; defragment; " + between + "bytes"));
  auto* results = drawn.buffers[kResults].as<Result>();
  const std::size_t n = drawn.reference().ops.size(), after = n - 2;
  for (std::size_t i = 0; i < n; ++i) results[i] = {ASSAY_OK, 0, 0, 0, 0};
  results[3] = {ASSAY_OK, 4000, 1 << 20, 1 << 20, 1 << 20};
  results[5].first = 2;  // len
  results[after] = {ASSAY_OK, live, held, held, held};
  return drawn.check().pass;
}

TEST(KvChecker, DefragmentationLeavesLittleMoreThanIsLive) {
  EXPECT_TRUE(accepts_compaction(4000, 5000 + KVC_LEFTOVER));
  EXPECT_FALSE(accepts_compaction(4000, 5001 + KVC_LEFTOVER));
  EXPECT_TRUE(accepts_compaction(3000, 3000));
  EXPECT_FALSE(accepts_compaction(4001, 5000));
  // Only what follows at once is judged.
  EXPECT_TRUE(accepts_compaction(4001, 1 << 20, "len@0 a; "));
}

// --- implementations
// -------------------------------------------------------------------------------------

class KvBaseline : public ::testing::TestWithParam<const char*> {};

TEST_P(KvBaseline, PassesEveryUntimedCase) {
  testing::DirectRunner runner(kName, testing::compile(file(GetParam()), kName));
  for (const std::uint64_t seed : {1, 2}) {
    for (const CaseSpec& c : spec().cases) {
      if (c.group == CaseGroup::timed) continue;
      const CaseResult result = runner.run(c, seed);
      EXPECT_EQ(result.verdict, Verdict::ok) << c.name << " seed " << seed << ": " << result.detail;
    }
  }
}

// A file that includes another one after some lines.
std::string with_lines(const std::string& lines, const std::string& source) {
  const std::string path = ::testing::TempDir() + "/kv_cache_" +
                           ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".cpp";
  write_file_atomically(path, lines + "#include \"" + file(source) + "\"\n");
  return path;
}

std::vector<CaseSpec> cases_of(const std::string& capability) {
  std::vector<CaseSpec> out;
  for (const CaseSpec& c : spec().cases) {
    if (c.capability == capability) out.push_back(c);
  }
  return out;
}

TEST(KvOptional, MissingFunctionsCostTheirCapabilityOnly) {
  testing::DirectRunner runner(
      kName, testing::compile(with_lines("#define kvc_attend_tree t\n#define kvc_attend_shared s\n"
                                         "#define kvc_defragment d\n",
                                         "naive.cpp"),
                              kName));
  for (const char* capability : {"tree_rows", "shared_prefix", "defragment"}) {
    const std::vector<CaseSpec> cases = cases_of(capability);
    EXPECT_GE(cases.size(), 4u);
    for (const CaseSpec& c : cases)
      EXPECT_EQ(runner.run(c, 1).verdict, Verdict::unsupported) << c.name;
  }
  // Where the call must fail, too.
  EXPECT_EQ(runner.run(scripted(json::object(), "create; defragment!nullcache"), 1).verdict,
            Verdict::unsupported);
  EXPECT_EQ(runner.run(case_named("fork_diverge"), 1).verdict, Verdict::ok);
}

// The plain implementation has nothing to move; this one has, and memory to give back.
TEST(KvOptional, SlabsThatAreEmptiedPassDefragmentation) {
  testing::DirectRunner runner(
      kName,
      testing::compile(with_lines("#define MOVES_PAGES\n", "examples/wrong_defragment_slabs.cpp"),
                       kName));
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const CaseSpec& c : cases_of("defragment")) {
      const CaseResult result = runner.run(c, seed);
      EXPECT_EQ(result.verdict, Verdict::ok) << c.name << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, KvBaseline, ::testing::Values("naive.cpp", "par.cpp"));

}  // namespace
}  // namespace assay::kv_cache
