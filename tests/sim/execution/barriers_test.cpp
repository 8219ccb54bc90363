// bar and barrier: named, counted, reducing, and their errors; mbarrier and cp.async.
#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class BarrierTest : public DeviceTest {};

TEST_F(BarrierTest, OrdersSharedMemoryOfAllWarps) {
  load_kernel(R"(
  .shared .align 4 .b8 s[400];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 4, %r1;
  st.shared.u32 [%r2], %t;
  bar.sync 0;
  sub.u32 %r3, 99, %t;
  mad.lo.u32 %r3, %r3, 4, %r1;
  ld.shared.u32 %r4, [%r3];
  barrier.sync.aligned 0;
  st.shared.u32 [%r2], %r4;
  barrier.cta.sync 0;
  ld.shared.u32 %r5, [%r3];
  st.global.u32 [%out], %r5;)");
  EXPECT_EQ(run(100), each_lane(100, [](std::uint32_t l) { return l; }));
  EXPECT_EQ(result.counters.barriers, 3u);
}

// Two pairs of warps each meet at their own barrier, chosen by a register.
TEST_F(BarrierTest, NamedWithCounts) {
  load_kernel(R"(
  .shared .align 4 .b8 s[512];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 4, %r1;
  shr.u32 %r3, %t, 6;
  add.u32 %r3, %r3, 1;
  st.shared.u32 [%r2], %t;
  bar.sync %r3, 64;
  xor.b32 %r4, %t, 32;
  mad.lo.u32 %r4, %r4, 4, %r1;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%out], %r5;)");
  EXPECT_EQ(run(128), each_lane(128, [](std::uint32_t l) { return l ^ 32; }));
  EXPECT_EQ(result.counters.barriers, 2u);
}

TEST_F(BarrierTest, ProducerArrivesConsumerWaits) {
  load_kernel(R"(
  .shared .align 4 .b8 s[128];
  mov.u32 %r1, s;
  and.b32 %r2, %t, 31;
  mad.lo.u32 %r2, %r2, 4, %r1;
  setp.ge.u32 %p1, %t, 32;
  @%p1 bra producer;
  barrier.sync 3, 64;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%out], %r3;
  bra end;
producer:
  st.shared.u32 [%r2], %t;
  barrier.arrive 3, 64;
end:)");
  EXPECT_EQ(run(64), each_lane(64, [](std::uint32_t l) { return l < 32 ? l + 32 : 0; }));
}

TEST_F(BarrierTest, Reductions) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 40;
  bar.red.popc.u32 %r1, 0, %p1;
  bar.red.and.pred %p2, 0, %p1;
  barrier.red.or.aligned.pred %p3, 1, 64, !%p1;
  selp.u32 %r2, 100, 0, %p2;
  selp.u32 %r3, 1000, 0, %p3;
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(64), std::vector<std::uint32_t>(64, 40 + 1000));
}

TEST_F(BarrierTest, SidesOfABranchHaveBarriersOfTheirOwn) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 16;
  @%p1 bra low;
  bar.sync 0;
  bra end;
low:
  bar.sync 0;
end:
  st.global.u32 [%out], %t;)");
  const LaunchResult r = run_faulty(64);
  EXPECT_EQ(r.status, LaunchStatus::ok);
  ASSERT_THAT(kinds(r), testing::ElementsAre(FindingKind::barrier_divergence));
  EXPECT_THAT(r.findings[0].other, testing::HasSubstr("waits at"));
}

// Whole warps and parts of one exit before the barrier and between two.
TEST_F(BarrierTest, ThreadsThatExitedDoNotCount) {
  load_kernel(R"(
  .shared .align 4 .b8 s[512];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 4, %r1;
  st.shared.u32 [%r2], %t;
  setp.gt.u32 %p1, %t, 60;
  @%p1 exit;
  bar.sync 0;
  sub.u32 %r3, 60, %t;
  mad.lo.u32 %r3, %r3, 4, %r1;
  ld.shared.u32 %r4, [%r3];
  setp.lt.u32 %p2, %t, 7;
  @%p2 exit;
  barrier.sync.aligned 0;
  st.shared.u32 [%r2], %r4;
  bar.sync 0;
  ld.shared.u32 %r5, [s+240];
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%out], %r4;)");
  EXPECT_EQ(run(128), each_lane(128, [](std::uint32_t l) { return l < 7 || l > 60 ? 0 : 60 - l; }));
  EXPECT_EQ(result.counters.barriers, 3u);
}

// A thread that has exited orders nothing: what is read without a barrier still races.
TEST_F(BarrierTest, ABarrierWithoutAWarpDoesNotOrderIt) {
  load_kernel(R"(
  .shared .align 4 .b8 s[512];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 4, %r1;
  setp.lt.u32 %p1, %t, 32;
  @%p1 bra last;
  st.shared.u32 [%r2], %t;
  exit;
last:
  ld.shared.u32 %r3, [%r2+128];
  bar.sync 0;
  st.global.u32 [%out], %r3;)");
  EXPECT_THAT(kinds(run_faulty(64)), testing::Contains(FindingKind::shared_race));
}

TEST_F(BarrierTest, WaitingAtDifferentBarriersForEver) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 32;
  @%p1 bra low;
  bar.sync 0;
  bra end;
low:
  bar.sync 1;
end:)");
  const LaunchResult r = run_faulty(64);
  EXPECT_EQ(r.status, LaunchStatus::timeout);
  ASSERT_FALSE(r.findings.empty());
  EXPECT_EQ(r.findings[0].kind, FindingKind::deadlock);
  EXPECT_THAT(r.findings[0].text, testing::HasSubstr("32 wait at bar.sync"));
  EXPECT_EQ(r.counters.instructions, 0u);
}

TEST_F(BarrierTest, CountsAreWholeWarps) {
  load_kernel("  bar.sync 0, 40;");
  EXPECT_EQ(run_faulty(64).status, LaunchStatus::illegal_instruction);
}

TEST_F(BarrierTest, MissingBarrierIsARace) {
  load_kernel(R"(
  .shared .align 4 .b8 s[256];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 4, %r1;
  st.shared.u32 [%r2], %t;
  xor.b32 %r3, %r2, 128;
  ld.shared.u32 %r4, [%r3];
  st.global.u32 [%out], %r4;)");
  const LaunchResult r = run_faulty(64);
  EXPECT_EQ(r.status, LaunchStatus::ok);
  EXPECT_THAT(kinds(r), testing::Contains(FindingKind::shared_race));
}

constexpr const char* kCopies = R"(
  .shared .align 16 .b8 s[1024];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 16, %r1;
  mad.wide.u32 %rd1, %t, 16, %in;
)";

TEST_F(BarrierTest, AsynchronousCopiesInGroups) {
  load_kernel(std::string(kCopies) + R"(
  cp.async.cg.shared.global [%r2], [%rd1], 16;
  cp.async.commit_group;
  cp.async.ca.shared.global.L2::128B [%r2+512], [%rd1+4], 4;
  cp.async.commit_group;
  cp.async.wait_group 1;
  ld.shared.u32 %r3, [%r2+8];
  cp.async.wait_group 0;
  ld.shared.u32 %r4, [%r2+512];
  add.u32 %r3, %r3, %r4;
  cp.async.ca.shared.global [%r2], [%rd1], 8, 5;
  setp.eq.u32 %p1, %t, 1;
  cp.async.ca.shared.global [%r2+8], [%rd1], 8, %p1;
  cp.async.wait_all;
  ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r2];
  mad.lo.u32 %r3, %r6, 1000, %r3;
  mad.lo.u32 %r3, %r8, 1000000, %r3;
  st.global.u32 [%out], %r3;)");
  std::vector<std::uint32_t> in(128);
  for (std::uint32_t i = 0; i < 128; ++i) in[i] = i;
  EXPECT_EQ(run(32, upload(in)), each_lane(32, [](std::uint32_t l) {
              const std::uint32_t zeroed = l == 1 ? 0 : 4 * l + 1;
              return (4 * l + 2) + (4 * l + 1) + 1000 * (4 * l + 1) + 1000000 * zeroed;
            }));
}

TEST_F(BarrierTest, ReadingBeforeTheCopyIsWaitedFor) {
  load_kernel(std::string(kCopies) + R"(
  cp.async.cg.shared.global [%r2], [%base], 16;
  cp.async.commit_group;
  ld.shared.u32 %r3, [%r2];
  cp.async.wait_all;
  st.global.u32 [%out], %r3;)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(128));
  EXPECT_EQ(launch(shape(1, 32), "k", out, std::uint64_t{0}).status, LaunchStatus::ok);
  download<std::uint32_t>(out, 32);
  ASSERT_FALSE(device.take_findings().empty());
}

// Two buffers in turn: a copy is started into the one that other warps may still read.
TEST_F(BarrierTest, ACopyIntoWhatOthersStillReadIsARace) {
  const auto findings = [&](const char* before, const char* after) {
    load_kernel(joined({kCopies, R"(
  mov.u32 %r4, %r2;
  cp.async.cg.shared.global [%r2], [%rd1], 16;
  cp.async.wait_all;
  bar.sync 0;
  sub.u32 %r4, %r2, 512;
  setp.lt.u32 %p1, %t, 32;
  @%p1 add.u32 %r4, %r2, 512;
  ld.shared.u32 %r5, [%r4];
)",
                        before, R"(
  cp.async.cg.shared.global [%r2], [%rd1], 16;
)",
                        after, R"(
  cp.async.wait_all;
  st.global.u32 [%out], %r5;)"}));
    const std::uint64_t out = upload(std::vector<std::uint32_t>(256));
    const LaunchResult r = launch(shape(1, 64), "k", out, upload(std::vector<std::uint32_t>(256)));
    return kinds(r);
  };
  EXPECT_THAT(findings("bar.sync 0;", ""), ::testing::IsEmpty());
  const std::vector<FindingKind> found = findings("", "bar.sync 0;");
  EXPECT_FALSE(found.empty());
  EXPECT_THAT(found, ::testing::Each(FindingKind::shared_race));
}

TEST_F(BarrierTest, CopiesOutOfBounds) {
  load_kernel(std::string(kCopies) + R"(
  cp.async.cg.shared.global [%r2], [%base+4096], 16;
  cp.async.wait_all;)");
  EXPECT_EQ(run_faulty().status, LaunchStatus::illegal_address);
}

// The last step of a reduction that relies on lanes running in step.
TEST_F(BarrierTest, VolatileDoesNotKeepLanesInStep) {
  constexpr const char* kBody = R"(
  .shared .align 4 .b8 data[256];
  mov.u32 %r1, data;
  mad.lo.u32 %r2, %t, 4, %r1;
  st.volatile.shared.u32 [%r2], %t;
  st.volatile.shared.u32 [%r2+128], %t;
  WAIT
  ld.volatile.shared.u32 %r3, [%r2+16];
  st.global.u32 [%out], %r3;)";
  const auto with = [&](const std::string& wait) {
    std::string body = kBody;
    return body.replace(body.find("WAIT"), 4, wait);
  };
  load_kernel(with(""));
  const LaunchResult r = run_faulty();
  ASSERT_EQ(r.findings.size(), 2u);  // the load conflicts with both stores
  for (const Finding& f : r.findings) {
    EXPECT_EQ(f.kind, FindingKind::shared_race);
    EXPECT_THAT(f.other, testing::HasSubstr("__syncwarp()"));
  }
  load_kernel(with("bar.warp.sync 0xffffffff;"));
  EXPECT_THAT(run_faulty().findings, testing::IsEmpty());
}

// Warp 1 waits for warp 0 by a volatile flag.
TEST_F(BarrierTest, AVolatileFlagBetweenWarps) {
  constexpr const char* kBody = R"(
  .shared .align 4 .b8 data[128];
  .shared .align 4 .b8 flag[4];
  mov.u32 %r1, data;
  and.b32 %r2, %t, 31;
  mad.lo.u32 %r2, %r2, 4, %r1;
  mov.u32 %r5, 1;
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.ge.u32 %p2, %t, 32;
  @%p2 bra wait;
  st.shared.u32 [%r2], %t;
  bar.warp.sync -1;
  FENCE
  @%p1 st.volatile.shared.u32 [flag], %r5;
  bra end;
wait:
  ld.volatile.shared.u32 %r3, [flag];
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra wait;
  FENCE
  ld.shared.u32 %r4, [%r2];
  st.global.u32 [%out], %r4;
end:)";
  const auto with = [&](const std::string& fence) {
    std::string body = kBody;
    for (int i = 0; i < 2; ++i) body.replace(body.find("FENCE"), 5, fence);
    return body;
  };
  load_kernel(with("membar.cta;"));
  EXPECT_THAT(run_faulty(64).findings, testing::IsEmpty());
  load_kernel(with(""));
  EXPECT_THAT(kinds(run_faulty(64)), testing::ElementsAre(FindingKind::shared_race));
}

// Warp 0 writes more after its arrival, and warp 1 may not read that.
TEST_F(BarrierTest, WhatFollowsAnArrivalIsNotPublished) {
  constexpr const char* kBody = R"(
  .shared .align 8 .b8 full[8];
  .shared .align 4 .b8 data[256];
  mov.u32 %r1, data;
  and.b32 %r2, %t, 31;
  mad.lo.u32 %r2, %r2, 4, %r1;
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared::cta.b64 [full], 32;
  bar.sync 0;
  setp.ge.u32 %p2, %t, 32;
  @%p2 bra wait;
  st.shared.u32 [%r2], %t;
  mbarrier.arrive.shared::cta.b64 _, [full];
  st.shared.u32 [%r2+128], %t;
  bra end;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
  @!%p3 bra wait;
  ld.shared.u32 %r4, [%r2+OFFSET];
  st.global.u32 [%out], %r4;
end:)";
  for (const std::string offset : {"0", "128"}) {
    std::string body = kBody;
    load_kernel(body.replace(body.find("OFFSET"), 6, offset));
    EXPECT_EQ(run_faulty(64).findings.size(), offset == "0" ? 0u : 1u) << offset;
  }
}

// Warp 1 fills, warp 0 reads, four times, with a full and an empty mbarrier.
TEST_F(BarrierTest, MbarrierPipeline) {
  load_kernel(R"(
  .shared .align 8 .b8 full[8];
  .shared .align 8 .b8 empty[8];
  .shared .align 4 .b8 data[128];
  mov.u32 %r1, data;
  and.b32 %r2, %t, 31;
  mad.lo.u32 %r3, %r2, 4, %r1;
  mov.u32 %r4, 0;
  mov.u32 %r5, 0;
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared::cta.b64 [full], 32;
  @%p1 mbarrier.init.shared::cta.b64 [empty], 32;
  bar.sync 0;
  setp.lt.u32 %p2, %t, 32;
  @%p2 bra consumer;
produce:
  and.b32 %r6, %r4, 1;
  xor.b32 %r6, %r6, 1;
wait_empty:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], %r6;
  @!%p3 bra wait_empty;
  mad.lo.u32 %r7, %r4, 100, %r2;
  st.shared.u32 [%r3], %r7;
  mbarrier.arrive.shared::cta.b64 _, [full];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p4, %r4, 4;
  @%p4 bra produce;
  bra end;
consumer:
  and.b32 %r6, %r4, 1;
wait_full:
  mbarrier.test_wait.parity.shared::cta.b64 %p3, [full], %r6;
  @!%p3 bra wait_full;
  sub.u32 %r8, 31, %r2;
  mad.lo.u32 %r8, %r8, 4, %r1;
  ld.shared.u32 %r7, [%r8];
  add.u32 %r5, %r5, %r7;
  mbarrier.arrive.shared::cta.b64 %rd1, [empty];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p4, %r4, 4;
  @%p4 bra consumer;
end:
  st.global.u32 [%out], %r5;)");
  EXPECT_EQ(run(64),
            each_lane(64, [](std::uint32_t l) { return l < 32 ? 600 + 4 * (31 - l) : 0; }));
}

TEST_F(BarrierTest, MbarrierStatesBytesAndDrops) {
  load_kernel(R"(
  .shared .align 8 .b8 m[8];
  mbarrier.init.shared.b64 [m], 3;
  mbarrier.arrive.expect_tx.shared.b64 %rd1, [m], 64;
  mbarrier.pending_count.b64 %r1, %rd1;
  mbarrier.arrive.shared.b64 %rd2, [m], 2;
  mbarrier.test_wait.shared.b64 %p1, [m], %rd2;
  mbarrier.complete_tx.shared.b64 [m], 64;
  mbarrier.test_wait.shared.b64 %p2, [m], %rd2;
  mbarrier.arrive_drop.shared.b64 %rd3, [m];
  mbarrier.arrive.shared.b64 %rd3, [m], 2;
  mbarrier.arrive.shared.b64 %rd4, [m], 2;
  mbarrier.test_wait.shared.b64 %p3, [m], %rd4;
  selp.u32 %r2, 10, 0, %p1;
  selp.u32 %r3, 100, 0, %p2;
  selp.u32 %r4, 1000, 0, %p3;
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  add.u32 %r1, %r1, %r4;
  st.global.u32 [%out], %r1;
  mbarrier.inval.shared.b64 [m];)");
  EXPECT_EQ(run(1), std::vector<std::uint32_t>{3 + 100 + 1000});
}

TEST_F(BarrierTest, AnMbarrierExpectsAtLeastOneArrivalAndNotTooMany) {
  for (const std::string count : {"0", "1048576"}) {
    load_kernel(".shared .align 8 .b8 m[8]; mbarrier.init.shared.b64 [m], " + count + ";");
    const LaunchResult r = run_faulty(1);
    ASSERT_FALSE(r.findings.empty()) << count;
    EXPECT_THAT(r.findings[0].text, testing::HasSubstr("it takes 1 to 1048575"));
  }
}

TEST_F(BarrierTest, CopiesThatArriveAtAnMbarrier) {
  load_kernel(std::string(kCopies) + R"(
  .shared .align 8 .b8 m[8];
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [m], 32;
  bar.sync 0;
  cp.async.cg.shared.global [%r2], [%rd1], 16;
  cp.async.mbarrier.arrive.noinc.shared.b64 [m];
wait:
  mbarrier.test_wait.parity.shared.b64 %p2, [m], 0;
  @!%p2 bra wait;
  xor.b32 %r2, %r2, 496;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%out], %r3;)");
  std::vector<std::uint32_t> in(128);
  for (std::uint32_t i = 0; i < 128; ++i) in[i] = i;
  EXPECT_EQ(run(32, upload(in)), each_lane(32, [](std::uint32_t l) { return 4 * (31 - l); }));
}

TEST_F(BarrierTest, RefusesWhatThereIsNot) {
  load_kernel("barrier.cluster.meet;");
  EXPECT_THROW(run_faulty(), Unsupported);
}

}  // namespace
}  // namespace assay::sim
