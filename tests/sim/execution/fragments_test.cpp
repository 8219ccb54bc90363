// Lanes that diverge: branches, loops, exits, calls, spin locks, .sync operations.
#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class Divergence : public DeviceTest {};

TEST_F(Divergence, NestedBranchesReconverge) {
  load_kernel(R"(
  mov.u32 %r1, 0;
  and.b32 %r2, %t, 1;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra even;
  and.b32 %r3, %t, 2;
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra one;
  mov.u32 %r1, 3;
  bra.uni odd_end;
one:
  mov.u32 %r1, 1;
odd_end:
  add.u32 %r1, %r1, 100;
  bra end;
even:
  mov.u32 %r1, 50;
end:
  activemask.b32 %r4;
  shl.b32 %r1, %r1, 8;
  popc.b32 %r4, %r4;
  or.b32 %r1, %r1, %r4;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) {
              return (l % 2 == 0 ? 50 : 100 + l % 4) << 8 | 32;
            }));
}

TEST_F(Divergence, LoopsWithTripCountsOfTheirOwn) {
  load_kernel(R"(
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
outer:
  setp.ge.u32 %p1, %r1, %t;
  @%p1 bra done;
  mov.u32 %r3, 0;
inner:
  add.u32 %r2, %r2, 1;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, %r1;
  @%p2 bra inner;
  add.u32 %r1, %r1, 1;
  bra outer;
done:
  activemask.b32 %r4;
  setp.eq.u32 %p3, %r4, -1;
  selp.u32 %r2, %r2, 0, %p3;
  st.global.u32 [%out], %r2;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l == 0 ? 0 : 1 + (l - 1) * l / 2; }));
}

TEST_F(Divergence, EarlyExits) {
  load_kernel(R"(
  setp.gt.u32 %p1, %t, 20;
  @%p1 exit;
  and.b32 %r1, %t, 3;
  setp.eq.u32 %p2, %r1, 1;
  @%p2 ret;
  activemask.b32 %r2;
  st.global.u32 [%out], %r2;)");
  std::uint32_t mask = 0;
  for (std::uint32_t l = 0; l <= 20; ++l) mask |= l % 4 == 1 ? 0 : 1u << l;
  EXPECT_EQ(run(), each_lane(32, [&](std::uint32_t l) { return l > 20 || l % 4 == 1 ? 0 : mask; }));
}

TEST_F(Divergence, IndexedBranches) {
  load_kernel(R"(
  and.b32 %r1, %t, 3;
  mov.u32 %r2, 9;
  setp.lt.u32 %p1, %t, 30;
targets: .branchtargets a, b, c, b;
  @%p1 brx.idx %r1, targets;
  bra end;
a:
  mov.u32 %r2, 10;
  bra end;
b:
  mov.u32 %r2, 20;
  bra end;
c:
  mov.u32 %r2, 30;
end:
  activemask.b32 %r3;
  setp.eq.u32 %p2, %r3, -1;
  @%p2 add.u32 %r2, %r2, 1;
  st.global.u32 [%out], %r2;)");
  constexpr std::uint32_t kValues[] = {11, 21, 31, 21};
  EXPECT_EQ(run(), each_lane(32, [&](std::uint32_t l) { return l < 30 ? kValues[l % 4] : 10; }));
}

TEST_F(Divergence, IndexBehindTheTable) {
  load_kernel(R"(
targets: .branchtargets a, b;
  brx.idx %t, targets;
a:
b:)");
  const LaunchResult r = run_faulty(3);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].thread.thread[0], 2u);
}

// The lanes of one warp compete for a lock: the holder's code comes after the code in which the
// others wait.
TEST_F(Divergence, SpinLockWithinAWarp) {
  load_kernel(R"(
spin:
  atom.global.cas.b32 %r1, [lock], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra spin;
  ld.volatile.global.u32 %r2, [count];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [count], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [lock], 0;
  st.global.u32 [%out], %r2;)",
              ".global .u32 lock;\n.global .u32 count;\n");
  auto out = run(64);
  std::sort(out.begin(), out.end());
  EXPECT_EQ(out, each_lane(64, [](std::uint32_t l) { return l + 1; }));
  EXPECT_LT(result.counters.instructions, 100'000u);  // waiting lanes do not wait long
}

// One warp waits for another with volatile loads.
TEST_F(Divergence, SpinsOnAFlagOfAnotherWarp) {
  load_kernel(R"(
  .shared .align 4 .b8 flag[4];
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.ge.u32 %p2, %t, 32;
  @%p2 bra set;
wait:
  ld.relaxed.cta.shared.u32 %r1, [flag];
  setp.eq.u32 %p3, %r1, 0;
  @%p3 bra wait;
  bra end;
set:
  mov.u32 %r1, 5;
  st.relaxed.cta.shared.u32 [flag], %r1;
end:
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(64), std::vector<std::uint32_t>(64, 5));
}

TEST_F(Divergence, ShuffleWaitsForAllLanesOfItsMask) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 16;
  mov.u32 %r1, %t;
  @%p1 bra low;
  add.u32 %r1, %r1, 1000;
  bra join;
low:
  add.u32 %r1, %r1, 100;
join:
  shfl.sync.bfly.b32 %r2, %r1, 31, 31, -1;
  st.global.u32 [%out], %r2;)");
  EXPECT_EQ(run(),
            each_lane(32, [](std::uint32_t l) { return 31 - l + (31 - l < 16 ? 100 : 1000); }));
}

// Tiles of 8 lanes in divergent code, each with its own mask.
TEST_F(Divergence, TilesSynchroniseByThemselves) {
  load_kernel(R"(
  shr.u32 %r1, %t, 3;
  shl.b32 %r2, %r1, 3;
  shl.b32 %r3, 0xff, %r2;
  mov.u32 %r4, %t;
  mov.u32 %r5, 0;
loop:
  shfl.sync.bfly.b32 %r6, %r4, 1, 0x181f, %r3;
  add.u32 %r4, %r4, %r6;
  bar.warp.sync %r3;
  add.u32 %r5, %r5, 1;
  setp.le.u32 %p1, %r5, %r1;
  @%p1 bra loop;
  st.global.u32 [%out], %r4;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) {
              std::uint32_t pair = (l | 1) + (l & ~1u);
              return pair << (l / 8);
            }));
}

TEST_F(Divergence, WarpBarrierJoinsDifferentPlaces) {
  load_kernel(R"(
  .shared .align 4 .b8 s[128];
  mov.u32 %r9, s;
  mad.lo.u32 %r1, %t, 4, %r9;
  setp.lt.u32 %p1, %t, 16;
  @%p1 bra low;
  st.shared.u32 [%r1], %t;
  bar.warp.sync -1;
  bra end;
low:
  bar.warp.sync -1;
  ld.shared.u32 %r2, [%r1+64];
  st.global.u32 [%out], %r2;
end:)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l < 16 ? l + 16 : 0; }));
}

TEST_F(Divergence, ShuffleWhoseLanesNeverCome) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 16;
  @%p1 bra low;
  shfl.sync.idx.b32 %r2, %t, 0, 31, -1;
  bra end;
low:
  bar.sync 1;
end:)");
  const LaunchResult r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::timeout);
  EXPECT_THAT(kinds(r), testing::ElementsAre(FindingKind::deadlock, FindingKind::warp_sync));
  EXPECT_THAT(r.findings[0].text, testing::AllOf(testing::HasSubstr("16 wait at shfl.sync.idx.b32"),
                                                 testing::HasSubstr("16 wait at bar.sync")));
  EXPECT_THAT(r.findings[1].text, testing::HasSubstr("for lanes 0, 1, 2"));
}

TEST_F(Divergence, ExecutingOutsideTheMask) {
  load_kernel(R"(
  shfl.sync.idx.b32 %r2, %t, 0, 31, 0xffff;
  st.global.u32 [%out], %r2;)");
  const LaunchResult r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::ok);
  ASSERT_THAT(kinds(r), testing::ElementsAre(FindingKind::warp_sync));
  EXPECT_EQ(r.findings[0].thread.thread[0], 16u);
}

TEST_F(Divergence, InstructionLimitEndsLoops) {
  load_kernel("loop: add.u32 %r1, %r1, 1;\n bra loop;");
  LaunchResult r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::timeout);
  EXPECT_THAT(kinds(r), testing::ElementsAre(FindingKind::instruction_limit));
  // Two fragments that never meet again.
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 16;
  @%p1 bra b;
a: add.u32 %r1, %r1, 1;
  bra a;
b: add.u32 %r1, %r1, 2;
  bra b;)");
  EXPECT_EQ(run_faulty().status, LaunchStatus::timeout);
}

}  // namespace
}  // namespace assay::sim
