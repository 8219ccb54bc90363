// The script compiler and the model, the baselines, the examples, and outputs that must be
// rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "challenges/kv_cache_case.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;

// --- figures of memory

TEST(KvMemory, FiguresAreHeldToTheAccountWhereTheLastPhaseOnlyDestroys) {
  const auto figures = [](const std::string& script) {
    const Drawn drawn(scripted(json::object(), script));
    std::vector<Metric> metrics{
        {"held_bytes", 2000}, {"held_over_needed", 2}, {"allocated_over_needed", 3}};
    EXPECT_EQ(subject().challenge->hold_to_account(
                  drawn.spec(), drawn.plan(), {.peak = 5000, .last_phase_peak = 4000}, metrics),
              "");
    return std::vector{metrics[0].value, metrics[1].value, metrics[2].value};
  };
  EXPECT_EQ(figures("create; new a; append a:4; phase; bytes!metric"),
            (std::vector{4000., 4., 5.}));
  EXPECT_EQ(figures("create; new a; append a:4; bytes!metric"), (std::vector{2000., 2., 3.}));
}

TEST(KvMemory, FiguresThatAccountForMoreStay) {
  const Drawn drawn(scripted(json::object(), "create; new a; append a:4; phase; bytes!metric"));
  std::vector<Metric> metrics{{"held_bytes", 2000}, {"held_over_needed", 2}};
  subject().challenge->hold_to_account(drawn.spec(), drawn.plan(),
                                       {.peak = 100, .last_phase_peak = 50}, metrics);
  EXPECT_EQ(metrics[0].value, 2000);
  EXPECT_EQ(metrics[1].value, 2);
}

TEST(KvMemory, AProcessThatHoldsMoreThanTheCaseAllowsFails) {
  CaseSpec spec = scripted(json::object(), "create; new a; append a:4; phase; bytes!limit");
  spec.params.update({{"live_limit", 4000}, {"held_limit", 5000}});
  const Drawn drawn(spec);
  const auto failure_at = [&](std::uint64_t last_phase_peak) {
    std::vector<Metric> metrics;
    return subject().challenge->hold_to_account(
        drawn.spec(), drawn.plan(), {.peak = 9000, .last_phase_peak = last_phase_peak}, metrics);
  };
  EXPECT_EQ(failure_at(5000), "");
  EXPECT_THAT(failure_at(5'000'000), ::testing::HasSubstr("holds 5.0 MB"));
}

// --- the least work

LeastWork least_work(const json& config, const std::string& script) {
  const Drawn drawn(scripted(config, script));
  return subject().challenge->least_work(drawn.spec(), drawn.plan()).value();
}

TEST(KvLeastWork, ReadsWhatForksShareOnce) {
  const json config{{"n_q", 4}, {"n_kv", 2}, {"D", 16}};
  constexpr double kToken = 2 * 2 * 16 * 4, kRow = 2 * 4 * 16 * 4, kPair = 4 * 16 * 4;
  const LeastWork work = least_work(
      config, "create; new a; append a:100; fork a b; append a:1 b:2; phase; attend a:1 b:1");
  EXPECT_EQ(work.bytes, 103 * kToken + 2 * kRow);
  EXPECT_EQ(work.flops, (101 + 102) * kPair);
  EXPECT_EQ(work.launches, 1);
}

TEST(KvLeastWork, OfAWindowIsWhatItShows) {
  const json config{{"n_q", 1}, {"n_kv", 1}, {"D", 16}, {"window", 10}, {"sinks", 3}};
  constexpr double kToken = 2 * 16 * 4, kPair = 4 * 16;
  const LeastWork work = least_work(config, "create; new a; append a:100; phase; attend a:2");
  EXPECT_EQ(work.bytes, (11 + 3 + 2) * kToken);
  EXPECT_EQ(work.flops, 2 * 13 * kPair);
  const LeastWork first = least_work(config, "create; new a; append a:8; phase; attend a:1");
  EXPECT_EQ(first.flops, 8 * kPair);
}

// --- the model

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

TEST(KvPlan, EveryHandleHasItsBuffer) { testing::expect_every_handle_planned(subject(), kHandles); }

TEST(KvGenerator, DependsOnTheSeedAlone) {
  for (const char* name : {"batch", "fragmentation", "ragged_memory"}) {
    const CaseSpec& c = subject().case_named(name);
    const Drawn a(c, 5), b(c, 5), other(c, 6);
    const bool drawn_script = c.params.contains("random") || c.params.contains("ragged");
    for (const Handle handle : {kOps, kPool, kK, kV, kQ}) {
      if (a.buffer(handle).bytes == 0) continue;
      ASSERT_EQ(a.buffer(handle).bytes, other.buffer(handle).bytes);
      EXPECT_EQ(a.bytes(handle), b.bytes(handle)) << name;
      const bool differs = drawn_script || handle > kPool;
      EXPECT_EQ(a.bytes(handle) != other.bytes(handle), differs) << name << " buffer " << handle;
    }
  }
}

// Without its maximum subtracted, exp overflows in some rows of each timed case.
TEST(KvGenerator, TimedRowsHaveScoresAtManyLevels) {
  constexpr double kOverflows = 89;
  for (const CaseSpec& c : subject().spec.cases) {
    if (c.group != CaseGroup::timed) continue;
    double largest = 0;
    // One row of eight overflows, and a case may have few rows.
    for (std::uint64_t seed = 1; seed < 8 && largest <= kOverflows; ++seed) {
      const Drawn drawn(c, seed);
      for (std::size_t i = 0; i < drawn.reference().ops.size(); ++i) {
        if (drawn.reference().ops[i].phase != drawn.plan().timed_phase) continue;
        const auto& attended = drawn.reference().expected[i].attended;
        if (attended) largest = std::max(largest, std::ranges::max(attended->lse));
      }
    }
    EXPECT_GT(largest, kOverflows) << c.name;
  }
}

TEST(KvPlan, ATimedPhaseHoldsOneAttention) {
  CaseSpec c = scripted(json::object(), "create; new a; append a:4; phase; attend a:1; attend a:1");
  EXPECT_NO_THROW(Drawn{c});
  c.group = CaseGroup::timed;
  EXPECT_THROW(Drawn{c}, ChallengeError);
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

// Of each sequence that is left, a token that its next row sees, in the phase whose memory counts.
TEST(KvGenerator, WhatIsCountedIsReadAtTokensThatTheSeedDraws) {
  const CaseSpec spec = scripted({{"window", 20}, {"layers", 2}},
                                 "create; new a b c; append@0 a:90 b:5 c:7; append@1 b:9; free c; "
                                 "phase; append@0 a:3; phase; bytes!limit; free a b; bytes");
  std::set<std::vector<std::int64_t>> drawn;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Script s = compile_script(spec, seed);
    std::vector<std::int64_t> tokens;
    for (std::size_t i = 0; i < s.ops.size(); ++i) {
      const Op& op = s.ops[i];
      if (op.kind != kRead) continue;
      ASSERT_TRUE((s.ops[i - 1 - tokens.size()].flags & kLimit) != 0);
      EXPECT_EQ(op.phase, 2);
      EXPECT_EQ(op.sequence, std::ssize(tokens));
      EXPECT_EQ(op.until, op.from + 1);
      const std::int64_t length = op.sequence == 0 ? 93 : op.layer == 0 ? 5 : 9;
      EXPECT_GE(op.from, length + 1 - 20);
      EXPECT_LT(op.from, length);
      EXPECT_TRUE(op.sequence != 0 || op.layer == 0) << "the other layer is empty";
      tokens.push_back(op.from);
    }
    EXPECT_EQ(tokens.size(), 2u);
    drawn.insert(tokens);
    EXPECT_EQ(s.read_k, compile_script(spec, 0).read_k) << "sizes must not depend on the seed";
  }
  EXPECT_GT(drawn.size(), 5u);
}

TEST(KvGenerator, RandomScriptsDefragmentOnlyWhereTheyAreToldTo) {
  const auto count = [](const char* name) {
    const Script s = compile_script(subject().case_named(name), 3);
    return std::count_if(s.ops.begin(), s.ops.end(),
                         [](const Op& op) { return op.kind == kDefragment; });
  };
  EXPECT_EQ(count("fragmentation"), 0);
  EXPECT_GT(count("defragment_random"), 20);
}

TEST(KvGenerator, RandomScriptsReachEveryOperationAndKeepToTheirRoom) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Script s = compile_script(subject().case_named("fragmentation"), seed);
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

TEST(KvChecker, RejectsUntouchedZeroAndNanOutputs) {
  for (const char* name : {"decode", "lifecycle", "int8_normal", "read_ranges", "create_refused"}) {
    testing::expect_blank_outputs_fail(subject(), name);
    const Drawn drawn(subject().case_named(name), 3);
    for (const std::int64_t hostile : {INT64_MIN, INT64_MAX, std::int64_t{1} << 40}) {
      auto results = drawn.buffer(kResults).span<std::int64_t>();
      std::fill(results.begin(), results.end(), hostile);
      EXPECT_FALSE(drawn.check().pass) << name;
    }
  }
}

// Outputs as a right implementation writes them, with one thing changed.
class KvTampered : public ::testing::Test {
 protected:
  KvTampered()
      : drawn_(scripted(
            {{"n_q", 2}, {"n_kv", 1}, {"D", 4}},
            "create; new a b; append a:3 b:2; attend a:1 b:1; len a; read a 0 2; attend a:1 a:1; "
            "bytes; destroy")) {
    const KvReference& r = drawn_.reference();
    auto* results = drawn_.buffer(kResults).as<Result>();
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
      results[i] = {r.expected[i].status == Expect::success ? ASSAY_OK : ASSAY_EINVAL, 0, 0, 0, 0};
      if (r.ops[i].kind == kNew) results[i].first = static_cast<std::int64_t>(i);
      if (r.ops[i].kind == kLen) results[i].first = r.expected[i].length;
      if (r.ops[i].kind == kBytes) results[i] = {ASSAY_OK, r.expected[i].needed, 1000, 1000, 1000};
    }
    const Attended& a = *r.expected[4].attended;
    std::copy(a.o.begin(), a.o.end(), drawn_.buffer(kO).as<float>());
    std::copy(a.lse.begin(), a.lse.end(), drawn_.buffer(kLse).as<float>());
    std::memcpy(drawn_.buffer(kReadK).data, drawn_.buffer(kK).data, 2 * 4 * sizeof(float));
    std::memcpy(drawn_.buffer(kReadV).data, drawn_.buffer(kV).data, 2 * 4 * sizeof(float));
  }

  Result& result(std::size_t i) { return drawn_.buffer(kResults).as<Result>()[i]; }
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
  drawn_.buffer(kReadV).as<std::uint32_t>()[7] ^= 1;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, OutputsOffByALittle) {
  drawn_.buffer(kO).as<float>()[9] += 1e-4f;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, LseOffByALittle) {
  drawn_.buffer(kLse).as<float>()[3] += 1e-4f;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, RefusedCallSucceeds) {
  result(7).status = ASSAY_OK;
  EXPECT_FALSE(passes());
}
TEST_F(KvTampered, RefusedCallWrites) {
  drawn_.buffer(kO).as<float>()[16] = 1;
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

// Whether `bytes` is accepted around a defragmentation that left `live` of 4000 live and `held`
// held.
bool accepts_compaction(std::int64_t live, std::int64_t held, const std::string& between = "") {
  const Drawn drawn(scripted({{"n_q", 1}, {"n_kv", 1}, {"D", 1}},
                             "create; new a; append a:2; bytes; defragment; " + between + "bytes"));
  auto* results = drawn.buffer(kResults).as<Result>();
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
  // Only a `bytes` that follows at once is judged.
  EXPECT_TRUE(accepts_compaction(4001, 1 << 20, "len@0 a; "));
}

// --- implementations

class KvBaseline : public ::testing::TestWithParam<const char*> {};

TEST_P(KvBaseline, PassesEveryUntimedCase) { testing::expect_passes(subject(), GetParam(), 2); }

TEST(KvExamples, CoverEveryTrap) { testing::expect_traps_covered(subject()); }

// The library of a file with some lines before it.
std::string compiled_with_lines(const std::string& lines, const std::string& source) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path / "with_lines.cpp";
  write_file_atomically(path, lines + read_file(subject().file(source)));
  return testing::compile(path, subject().name);
}

std::vector<CaseSpec> cases_of(const std::string& capability) {
  std::vector<CaseSpec> out;
  for (const CaseSpec& c : subject().spec.cases) {
    if (c.capability == capability) out.push_back(c);
  }
  return out;
}

TEST(KvOptional, MissingFunctionsCostTheirCapabilityOnly) {
  testing::DirectRunner runner(
      subject().name, compiled_with_lines("#define kvc_attend_tree t\n#define kvc_attend_shared s\n"
                                          "#define kvc_defragment d\n",
                                          "baselines/naive.cpp"));
  for (const char* capability : {"tree_rows", "shared_prefix", "defragment"}) {
    const std::vector<CaseSpec> cases = cases_of(capability);
    EXPECT_GE(cases.size(), 4u);
    for (const CaseSpec& c : cases)
      EXPECT_EQ(runner.run(c, 1).verdict, Verdict::unsupported) << c.name;
  }
  // Also where the call must fail.
  EXPECT_EQ(runner.run(scripted(json::object(), "create; defragment!nullcache"), 1).verdict,
            Verdict::unsupported);
  EXPECT_EQ(runner.run(subject().case_named("fork_diverge"), 1).verdict, Verdict::ok);
}

// The plain implementation has nothing to move; this one has, and can give memory back.
TEST(KvOptional, SlabsThatAreEmptiedPassDefragmentation) {
  testing::DirectRunner runner(
      subject().name,
      compiled_with_lines("#define MOVES_PAGES\n", "examples/wrong_defragment_slabs.cpp"));
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const CaseSpec& c : cases_of("defragment")) {
      const CaseResult result = runner.run(c, seed);
      EXPECT_EQ(result.verdict, Verdict::ok) << c.name << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, KvBaseline,
                         ::testing::Values("baselines/naive.cpp", "baselines/par.cpp"));

}  // namespace
}  // namespace assay::kv_cache
