#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "sim/operations/fake_warp.h"

namespace assay::sim {
namespace {

using fake::FakeWarp;
using fake::instruction;
using fake::select_for_test;

constexpr std::uint32_t kFull = 0xffffffffu;

std::uint32_t bit(std::uint32_t lane) { return 1u << lane; }

// The PTX ISA's pseudo-code for one lane. `group`: the lanes that exchange values with it.
struct Shuffled {
  std::uint32_t source = 0;
  bool valid = false;
};

Shuffled shuffle(const std::string& mode, int lane, std::uint32_t b, std::uint32_t c,
                 std::uint32_t group) {
  const int bval = static_cast<int>(b % 32), cval = static_cast<int>(c % 32);
  const int segmask = static_cast<int>(c / 256 % 32);
  const int max_lane = (lane & segmask) | (cval & (31 - segmask)), min_lane = lane & segmask;
  int j = 0;
  bool valid = false;
  if (mode == "up") {
    j = lane - bval;
    valid = j >= max_lane;
  } else if (mode == "down") {
    j = lane + bval;
    valid = j <= max_lane;
  } else if (mode == "bfly") {
    j = lane ^ bval;
    valid = j <= max_lane;
  } else {
    j = min_lane | (bval & (31 - segmask));
    valid = j <= max_lane;
  }
  if (!valid || (group >> j & 1) == 0) j = lane;
  return {static_cast<std::uint32_t>(j), valid};
}

TEST(Shuffle, AgreesWithTheIsa) {
  std::mt19937 random(1);
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (std::uint32_t width = 1; width <= 32; width *= 2) {
      for (int repeat = 0; repeat < 50; ++repeat) {
        FakeWarp w;
        const std::uint32_t active =
            repeat % 3 == 0 ? kFull : static_cast<std::uint32_t>(random()) | bit(random() % 32);
        w.activate(active);
        const std::uint32_t c = (32 - width) << 8 | (mode == "up" ? 0 : 31);
        const auto uniform = static_cast<std::uint32_t>(random() % 40);
        w.fill32("%r1", [&](auto) { return random(); });
        w.fill32("%r2", [&](auto) { return repeat % 2 == 0 ? uniform : random(); });
        w.fill32("%r3", [&](auto) { return c; });
        w.fill32("%r4", [&](auto) { return active; });
        w.fill32("%r5", [](auto l) { return 1000 + l; });
        w.pred("%p1") = 0xaaaaaaaau;
        const Lanes32 a = w.r32("%r1"), b = w.r32("%r2");
        const bool with_pred = repeat % 4 < 2;
        w.run("shfl.sync." + mode + ".b32 %r5" + (with_pred ? "|%p1" : "") +
              ", %r1, %r2, %r3, %r4;");
        for (std::uint32_t l = 0; l < 32; ++l) {
          const bool on = (active & bit(l)) != 0;
          const Shuffled expected = shuffle(mode, static_cast<int>(l), b.v[l], c, active);
          ASSERT_EQ(w.r32("%r5").v[l], on ? a.v[expected.source] : 1000 + l)
              << mode << " lane " << l;
          const bool pred = (w.pred("%p1") & bit(l)) != 0;
          ASSERT_EQ(pred, on && with_pred ? expected.valid : l % 2 == 1) << mode << " lane " << l;
        }
      }
    }
  }
}

// Literals and the whole warp take a separate path.
TEST(Shuffle, LiteralsAgreeWithTheIsa) {
  std::mt19937 random(5);
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (int repeat = 0; repeat < 200; ++repeat) {
      FakeWarp w;
      w.activate(repeat % 4 == 0 ? static_cast<std::uint32_t>(random()) | 1 : kFull);
      const auto b = static_cast<std::uint32_t>(random() % 40);
      const auto c = static_cast<std::uint32_t>(repeat % 2 == 0 ? (mode == "up" ? 0u : 31u)
                                                                : random() & 0x1f1fu);
      w.fill32("%r1", [&](auto) { return random(); });
      const Lanes32 a = w.r32("%r1");
      const bool in_place = repeat % 3 == 0;
      w.pred("%p1") = 0xaaaaaaaau;
      const std::uint32_t active = w.warp.active;
      const std::string d = in_place ? "%r1" : "%r5";
      const Lanes32 before = w.r32(d);
      w.run("shfl.sync." + mode + ".b32 " + d + "|%p1, %r1, " + std::to_string(b) + ", " +
            std::to_string(c) + ", -1;");
      for (std::uint32_t l = 0; l < 32; ++l) {
        const bool on = (active & bit(l)) != 0;
        const Shuffled expected = shuffle(mode, static_cast<int>(l), b, c, active);
        ASSERT_EQ(w.r32(d).v[l], on ? a.v[expected.source] : before.v[l]) << mode << " lane " << l;
        const bool pred = (w.pred("%p1") & bit(l)) != 0;
        ASSERT_EQ(pred, on ? expected.valid : l % 2 == 1) << mode << " lane " << l;
      }
    }
  }
}

TEST(Shuffle, TakesImmediatesAndTheSameRegister) {
  FakeWarp w;
  w.fill32("%r1", [](auto l) { return 3 * l; });
  w.run("shfl.sync.bfly.b32 %r1|%p1, %r1, 1, 31, -1;");
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(w.r32("%r1").v[l], 3 * (l ^ 1));
  EXPECT_EQ(w.pred("%p1"), kFull);
  w.run("shfl.sync.up.b32 _|%p2, %r1, 3, 0, -1;");
  EXPECT_EQ(w.pred("%p2"), kFull << 3);
}

// Two tiles of a cooperative group at the same time: a source in the other tile is not a member.
TEST(Shuffle, GroupsSeeOnlyThemselves) {
  FakeWarp w;
  w.fill32("%r1", [](auto l) { return 100 + l; });
  w.fill32("%r2", [](auto l) { return l < 16 ? 0xffffu : 0xffff0000u; });
  w.run("shfl.sync.idx.b32 %r3, %r1, 20, 31, %r2;");
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(w.r32("%r3").v[l], l < 16 ? 100 + l : 120);
}

TEST(Vote, AllAnyUniBallot) {
  std::mt19937 random(2);
  for (int repeat = 0; repeat < 300; ++repeat) {
    FakeWarp w;
    const std::uint32_t active = repeat % 3 == 0 ? kFull : static_cast<std::uint32_t>(random()) | 1;
    std::uint32_t votes = static_cast<std::uint32_t>(random());
    if (repeat % 5 == 1) votes |= active;
    if (repeat % 5 == 2) votes &= ~active;
    w.activate(active);
    w.pred("%p1") = votes;
    w.fill32("%r1", [&](auto) { return active; });
    w.fill32("%r2", [](auto) { return 7; });
    for (const char* p : {"%p2", "%p3", "%p4", "%p5"}) w.pred(p) = 0x0f0f0f0fu;
    w.run("vote.sync.all.pred %p2, %p1, %r1;");
    w.run("vote.sync.any.pred %p3, %p1, %r1;");
    w.run("vote.sync.uni.pred %p4, %p1, %r1;");
    w.run("vote.sync.any.pred %p5, !%p1, %r1;");
    w.run("vote.sync.ballot.b32 %r2, %p1, %r1;");
    const int ayes = std::popcount(votes & active), lanes = std::popcount(active);
    const auto expect = [&](const char* p, bool value) {
      EXPECT_EQ(w.pred(p), (0x0f0f0f0fu & ~active) | (value ? active : 0)) << p;
    };
    expect("%p2", ayes == lanes);
    expect("%p3", ayes > 0);
    expect("%p4", ayes == 0 || ayes == lanes);
    expect("%p5", ayes < lanes);
    for (std::uint32_t l = 0; l < 32; ++l) {
      EXPECT_EQ(w.r32("%r2").v[l], (active & bit(l)) != 0 ? (votes & active) : 7);
    }
  }
}

TEST(Vote, GroupsVoteByThemselves) {
  FakeWarp w;
  w.fill32("%r1", [](auto l) { return 0xffu << (l / 8 * 8); });
  w.pred("%p1") = 0x00ff01ffu;
  w.run("vote.sync.all.pred %p2, %p1, %r1;");
  EXPECT_EQ(w.pred("%p2"), 0x00ff00ffu);
  w.run("vote.sync.ballot.b32 %r2, %p1, %r1;");
  EXPECT_EQ(w.r32("%r2").v[9], 0x100u);
  EXPECT_EQ(w.r32("%r2").v[20], 0xff0000u);
  w.run("vote.sync.ballot.b32 %r1, %p1, %r1;");  // the result overwrites its own mask
  EXPECT_EQ(w.r32("%r1").v[31], 0u);
  EXPECT_EQ(w.r32("%r1").v[8], 0x100u);
}

TEST(Match, AnyAndAll) {
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 200; ++repeat) {
    FakeWarp w;
    const std::uint32_t active = repeat % 3 == 0 ? kFull : static_cast<std::uint32_t>(random()) | 2;
    const unsigned kinds = repeat % 4 == 0 ? 1 : 5;
    w.activate(active);
    w.fill32("%r1", [&](auto l) { return (active & bit(l)) != 0 ? random() % kinds : 99; });
    for (int l = 0; l < 32; ++l) {
      // The lower halves are all equal.
      w.r64("%rd1").v[l] = std::uint64_t{w.r32("%r1").v[l]} << 32 | 5;
    }
    w.fill32("%r2", [&](auto) { return active; });
    for (const char* r : {"%r3", "%r4", "%r5", "%r6", "%r7"}) w.fill32(r, [](auto) { return 3; });
    w.run("match.any.sync.b32 %r3, %r1, %r2;");
    w.run("match.any.sync.b64 %r4, %rd1, %r2;");
    w.run("match.all.sync.b32 %r5|%p1, %r1, %r2;");
    w.run("match.all.sync.b64 %r6|%p2, %rd1, %r2;");
    w.run("match.all.sync.b32 %r7, %r1, %r2;");
    std::uint32_t all = active;
    for (std::uint32_t l = 0; l < 32; ++l) {
      std::uint32_t same = 0;
      for (std::uint32_t m = 0; m < 32; ++m) {
        if ((active & bit(m)) != 0 && w.r32("%r1").v[m] == w.r32("%r1").v[l]) same |= bit(m);
      }
      if ((active & bit(l)) != 0 && same != active) all = 0;
      const std::uint32_t expected = (active & bit(l)) != 0 ? same : 3;
      EXPECT_EQ(w.r32("%r3").v[l], expected);
      EXPECT_EQ(w.r32("%r4").v[l], expected);
    }
    for (std::uint32_t l = 0; l < 32; ++l) {
      const std::uint32_t expected = (active & bit(l)) != 0 ? all : 3;
      for (const char* r : {"%r5", "%r6", "%r7"}) EXPECT_EQ(w.r32(r).v[l], expected);
    }
    EXPECT_EQ(w.pred("%p1"), all);
    EXPECT_EQ(w.pred("%p2"), all);
  }
}

TEST(Redux, EveryOperation) {
  using Fold = std::function<std::uint32_t(std::uint32_t, std::uint32_t)>;
  const auto sign = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
  const std::pair<std::string, Fold> operations[] = {
      {"add.u32", [](auto x, auto y) { return x + y; }},
      {"add.s32", [](auto x, auto y) { return x + y; }},
      {"min.u32", [](auto x, auto y) { return x < y ? x : y; }},
      {"max.u32", [](auto x, auto y) { return x < y ? y : x; }},
      {"min.s32", [&](auto x, auto y) { return sign(x) < sign(y) ? x : y; }},
      {"max.s32", [&](auto x, auto y) { return sign(x) < sign(y) ? y : x; }},
      {"and.b32", [](auto x, auto y) { return x & y; }},
      {"or.b32", [](auto x, auto y) { return x | y; }},
      {"xor.b32", [](auto x, auto y) { return x ^ y; }},
  };
  std::mt19937 random(4);
  for (const auto& [name, fold] : operations) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      FakeWarp w;
      const std::uint32_t active =
          repeat % 2 == 0 ? kFull : static_cast<std::uint32_t>(random()) | 4;
      w.activate(active);
      // Sparse and dense bits, so that neither `and` nor `or` is constant.
      w.fill32("%r1", [&](auto) {
        return repeat % 4 < 2 ? random() | random() | random() : random() & random();
      });
      w.fill32("%r2", [&](auto l) {
        return active & (repeat % 3 == 0 ? kFull : l < 13 ? 0x1fffu : ~0x1fffu);
      });
      w.fill32("%r3", [](auto) { return 11; });
      w.run("redux.sync." + name + " %r3, %r1, %r2;");
      for (std::uint32_t l = 0; l < 32; ++l) {
        std::optional<std::uint32_t> expected;
        for (std::uint32_t m = 0; m < 32; ++m) {
          if ((active & bit(m)) == 0 || w.r32("%r2").v[m] != w.r32("%r2").v[l]) continue;
          expected = expected ? fold(*expected, w.r32("%r1").v[m]) : w.r32("%r1").v[m];
        }
        ASSERT_EQ(w.r32("%r3").v[l], (active & bit(l)) != 0 ? *expected : 11) << name;
      }
    }
  }
}

TEST(Activemask, IsWhatIsActive) {
  FakeWarp w;
  w.fill32("%r1", [](auto) { return 5; });
  w.activate(0x8001u);
  w.run("activemask.b32 %r1;");
  EXPECT_EQ(w.r32("%r1").v[0], 0x8001u);
  EXPECT_EQ(w.r32("%r1").v[15], 0x8001u);
  EXPECT_EQ(w.r32("%r1").v[1], 5u);
}

TEST(Elect, TheLowestMemberLeads) {
  FakeWarp w;
  w.activate(0xfff0fff0u);
  w.pred("%p1") = 0xf;
  w.run("elect.sync %r1|%p1, 0xfff0fff0;");
  EXPECT_EQ(w.r32("%r1").v[31], 4u);
  EXPECT_EQ(w.r32("%r1").v[4], 4u);
  EXPECT_EQ(w.pred("%p1"), 0x1fu);
  w.run("elect.sync _|%p2, 0xfff0fff0;");
  EXPECT_EQ(w.pred("%p2"), 0x10u);
}

TEST(WarpOps, WaitForTheirMembers) {
  const auto mask_of = [](const char* text) {
    const Selection s = select_for_test(instruction(text));
    EXPECT_TRUE(s.rendezvous) << text;
    EXPECT_EQ(s.cls, InstrClass::warp) << text;
    return int{s.mask_operand};
  };
  EXPECT_EQ(mask_of("shfl.sync.idx.b32 %r1|%p1, %r2, %r3, %r4, %r5;"), 5);
  EXPECT_EQ(mask_of("shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5;"), 4);
  EXPECT_EQ(mask_of("vote.sync.any.pred %p1, %p2, %r1;"), 2);
  EXPECT_EQ(mask_of("match.all.sync.b32 %r1|%p2, %r2, %r3;"), 3);
  EXPECT_EQ(mask_of("redux.sync.add.u32 %r1, %r2, %r3;"), 2);
  EXPECT_EQ(mask_of("elect.sync %r1|%p1, %r3;"), 2);
  EXPECT_FALSE(select_for_test(instruction("activemask.b32 %r1;")).rendezvous);
}

// ptxas accepts .sync anywhere among the qualifiers; CUB, and so thrust::sort, writes
// vote.ballot.sync.b32.
TEST(WarpOps, SyncMayStandAnywhere) {
  const std::pair<const char*, const char*> alike[] = {
      {"vote.ballot.sync.b32 %r1, %p1, %r2;", "vote.sync.ballot.b32 %r1, %p1, %r2;"},
      {"vote.all.sync.pred %p2, %p1, %r2;", "vote.sync.all.pred %p2, %p1, %r2;"},
      {"vote.any.sync.pred %p2, !%p1, %r2;", "vote.sync.any.pred %p2, !%p1, %r2;"},
      {"vote.uni.sync.pred %p2, %p1, %r2;", "vote.sync.uni.pred %p2, %p1, %r2;"},
      {"match.sync.any.b64 %r1, %rd1, %r2;", "match.any.sync.b64 %r1, %rd1, %r2;"},
      {"match.sync.all.b32 %r1|%p1, %r3, %r2;", "match.all.sync.b32 %r1|%p1, %r3, %r2;"},
      {"redux.min.sync.s32 %r1, %r3, %r2;", "redux.sync.min.s32 %r1, %r3, %r2;"},
      {"shfl.up.sync.b32 %r1|%p1, %r3, 1, 0, %r2;", "shfl.sync.up.b32 %r1|%p1, %r3, 1, 0, %r2;"},
  };
  for (const auto& [other, usual] : alike) {
    const auto a = select_warp_op(instruction(other)), b = select_warp_op(instruction(usual));
    ASSERT_TRUE(a && b) << other;
    EXPECT_EQ(a->run, b->run) << other;
    EXPECT_EQ(a->operands, b->operands) << other;
    EXPECT_EQ(a->mask_operand, b->mask_operand) << other;
    EXPECT_TRUE(a->rendezvous) << other;
  }
}

TEST(WarpOps, OthersAreRefusedByName) {
  for (const std::string text :
       {"shfl.idx.b32 %r1|%p1, %r2, %r3, %r4;", "shfl.bfly.b32 %r1, %r2, %r3, %r4;",
        "vote.ballot.b32 %r1, %p1;", "vote.all.pred %p1, %p2;", "redux.sync.min.f32 %r1, %r2, %r3;",
        "redux.sync.max.abs.NaN.f32 %r1, %r2, %r3;", "redux.sync.add.b32 %r1, %r2, %r3;",
        "vote.ballot.sync.sync.b32 %r1, %p1, %r2;", "match.any.b32 %r1, %r2, %r3;",
        "match.any.sync.b16 %r1, %r2, %r3;", "match.any.sync.b32 %r1|%p1, %r2, %r3;",
        "vote.sync.none.pred %p1, %p2, %r3;", "shfl.sync.idx.b64 %r1, %r2, %r3, %r4, %r5;"}) {
    try {
      select_warp_op(instruction(text));
      ADD_FAILURE() << text << " is selected";
    } catch (const Unsupported& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(text.substr(0, text.find(' '))));
    }
  }
  EXPECT_EQ(select_warp_op(instruction("add.u32 %r1, %r2, %r3;")), std::nullopt);
}

}  // namespace
}  // namespace assay::sim
