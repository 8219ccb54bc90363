// Launches: configurations, counters, the text of findings, host threads, order, cooperative grids.
#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class Launch : public DeviceTest {};

TEST_F(Launch, InvalidConfigurations) {
  load(R"(
.visible .entry k() .maxntid 64, 2, 1 { ret; }
.visible .entry r() .reqntid 32 { .shared .align 4 .b8 s[1024]; .reg .b32 %r<2>; mov.u32 %r1, s; ret; }
)");
  const auto status = [&](const char* name, Dim3 grid, Dim3 block, std::uint64_t dynamic = 0) {
    LaunchConfig c{grid, block, dynamic, false};
    return launch(c, name).status;
  };
  EXPECT_EQ(status("k", {1, 1, 1}, {128, 1, 1}), LaunchStatus::ok);
  EXPECT_EQ(status("k", {1, 1, 1}, {129, 1, 1}), LaunchStatus::invalid_configuration);
  EXPECT_EQ(status("k", {0, 1, 1}, {1, 1, 1}), LaunchStatus::invalid_configuration);
  EXPECT_EQ(status("k", {1, 70000, 1}, {1, 1, 1}), LaunchStatus::invalid_configuration);
  EXPECT_EQ(status("k", {1, 1, 1}, {1, 1, 65}), LaunchStatus::invalid_configuration);
  EXPECT_EQ(status("r", {1, 1, 1}, {32, 1, 1}, 226 << 10), LaunchStatus::ok);
  EXPECT_EQ(status("r", {1, 1, 1}, {32, 1, 1}, 227 << 10), LaunchStatus::invalid_configuration);
  EXPECT_EQ(status("r", {1, 1, 1}, {64, 1, 1}), LaunchStatus::invalid_configuration);
  EXPECT_EQ(device.info(device.kernel(module, "k")).max_threads, 128u);
  EXPECT_EQ(device.resident_blocks(device.kernel(module, "k"), 128, 0), 16u);
  EXPECT_EQ(device.resident_blocks(device.kernel(module, "r"), 32, 99 << 10), 2u);
  // With what the system takes, five such blocks would fit but for the rounding to 128 bytes.
  EXPECT_EQ(device.resident_blocks(device.kernel(module, "k"), 128, 45664), 4u);
}

// Counted by hand: two blocks of two warps, the second with 8 threads.
TEST_F(Launch, Counters) {
  load(R"(
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;
  .shared .align 4 .b8 s[160];
  ld.param.u64 %rd1, [out];           // other
  mov.u32 %r1, %tid.x;                // other
  mov.u32 %r2, 0;                     // other
loop:
  fma.rn.f32 %f1, %f1, %f1, %f1;      // fp32, 2 flops
  add.f32 %f1, %f1, %f1;              // fp32, 1 flop
  add.u32 %r2, %r2, 1;                // integer
  setp.lt.u32 %p1, %r2, 3;            // integer
  @%p1 bra loop;                      // control
  mov.u32 %r3, s;                     // other
  mad.lo.u32 %r3, %r1, 4, %r3;        // integer
  st.shared.u32 [%r3], %r1;           // memory
  bar.sync 0;                         // control
  mad.wide.u32 %rd2, %r1, 4, %rd1;    // integer
  setp.eq.u32 %p2, %r1, 100;          // integer
  @%p2 st.global.u32 [%rd2], %r1;     // memory, nobody
  st.global.u32 [%rd2], %r1;          // memory
  ret;                                // control
})");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(40));
  const LaunchResult r = launch(shape(2, 40), "k", out);
  ASSERT_EQ(r.status, LaunchStatus::ok);
  const Counters& c = r.counters;
  EXPECT_EQ(c.launches, 1u);
  EXPECT_EQ(c.blocks, 2u);
  EXPECT_EQ(c.warps, 4u);
  EXPECT_EQ(c.barriers, 2u);
  const std::uint64_t per_warp = 3 + 3 * 5 + 9;
  EXPECT_EQ(c.instructions, 4 * per_warp);
  EXPECT_EQ(c.other, 4u * 4);
  EXPECT_EQ(c.fp32, 4u * 6);
  EXPECT_EQ(c.integer, 4u * (6 + 3));
  EXPECT_EQ(c.control, 4u * (3 + 2));
  EXPECT_EQ(c.memory, 4u * 3);
  EXPECT_EQ(c.active_lanes, 2 * 40 * per_warp);
  EXPECT_EQ(c.fp32_flops, 2u * 40 * 3 * 3);
  EXPECT_EQ(c.shared_stores, 4u);
  EXPECT_EQ(c.global_store_bytes, 2u * 40 * 4);
  EXPECT_EQ(c.global_store_sectors, 2u * 5);
  EXPECT_NEAR(c.divergence_efficiency(), 40.0 / 64, 1e-12);
}

class Located : public DeviceTest {
 protected:
  Located() : DeviceTest(options()) {}
  static DeviceOptions options() {
    DeviceOptions o = small();
    o.locate_replays = true;
    o.threads = 2;
    return o;
  }
};

// Counted by hand: two blocks of one warp.
TEST_F(Located, ReplaysBySourceLine) {
  load_kernel(R"(
  .shared .align 16 .b8 s[8192];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 128, %r1;
  mad.lo.u32 %r3, %t, 8, %r1;
  mad.lo.u32 %r4, %t, 16, %r1;
  .loc 1 7 3
  st.shared.u32 [%r2], %t;              // one bank: 31 replays
  .loc 1 8 3
  st.shared.u32 [%r3+4096], %t;         // half of the banks: 1
  .loc 1 9 3
  st.shared.v4.u32 [%r4+4608], {%t, %t, %t, %t};  // as wide as it is: none
  st.shared.u32 [%r1+8188], 0;          // one word: none
  bar.sync 0;
  .loc 1 10 3
  atom.shared.add.u32 %r5, [%r1+8188], 1;  // a lane at a time: 31
  .loc 1 8 9
  st.shared.u32 [%r3+6144], %t;         // 1 more of that line
)",
              ".file 1 \"/home/somebody/tile.cu\"\n");
  const LaunchResult r = run_faulty(32, 2);
  ASSERT_EQ(r.status, LaunchStatus::ok);
  const std::vector<LineReplays> expected{{"tile.cu:10", 62}, {"tile.cu:7", 62}, {"tile.cu:8", 4}};
  EXPECT_EQ(r.replays, expected);
  EXPECT_EQ(r.counters.shared_replays, 128u);
}

class Counted : public DeviceTest {
 protected:
  Counted() : DeviceTest(options()) {}
  static DeviceOptions options() {
    DeviceOptions o = small();
    o.count_lines = true;
    o.threads = 2;
    return o;
  }
};

// Counted by hand: two blocks of a warp and a half. What stands before the first .loc is one
// instruction, and the end of the kernel belongs to the last line.
TEST_F(Counted, WhatEachSourceLineExecutes) {
  load_kernel(R"(
  .shared .align 4 .b8 s[8192];
  .loc 1 7 3
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 128, %r1;
  .loc 1 8 3
  st.shared.u32 [%r2], %t;              // one bank: 31 and 15 replays
  .loc 1 9 3
  setp.lt.u32 %p1, %t, 8;
  @!%p1 bra DONE;
  .loc 1 10 3
  add.u32 %r3, %r1, %r2;
DONE:
  .loc 1 11 1
)",
              ".file 1 \"/home/somebody/tile.cu\"\n");
  const LaunchResult r = run_faulty(48, 2);
  ASSERT_EQ(r.status, LaunchStatus::ok);
  const auto at = [&](std::uint32_t line) {
    LineCounts sum;
    for (const LineCounts& counts : r.lines) {
      if (counts.places.front() != SourceLine{"/home/somebody/tile.cu", line}) continue;
      sum = counts;
    }
    return sum;
  };
  EXPECT_EQ(at(7).instructions, 2u * 4);
  EXPECT_EQ(at(7).active_lanes, 2u * 96);
  EXPECT_EQ(at(8).instructions, 2u * 2);
  EXPECT_EQ(at(8).shared_replays, 2u * (31 + 15));
  EXPECT_EQ(at(9).instructions, 2u * 4);
  EXPECT_EQ(at(10).instructions, 2u * 1) << "only the first warp gets there";
  EXPECT_EQ(at(10).active_lanes, 2u * 8);
  std::uint64_t instructions = 0, lanes = 0, replays = 0;
  for (const LineCounts& counts : r.lines) {
    instructions += counts.instructions;
    lanes += counts.active_lanes;
    replays += counts.shared_replays;
  }
  EXPECT_EQ(instructions, r.counters.instructions);
  EXPECT_EQ(lanes, r.counters.active_lanes);
  EXPECT_EQ(replays, r.counters.shared_replays);
  EXPECT_THAT(r.replays, testing::IsEmpty()) << "another option";
}

TEST_F(Counted, NothingOfALaunchThatFails) {
  load_kernel("  trap;");
  EXPECT_NE(run_faulty().status, LaunchStatus::ok);
  EXPECT_THAT(result.lines, testing::IsEmpty());
}

TEST_F(Located, NoneOfALaunchThatFails) {
  load_kernel(R"(
  .shared .align 4 .b8 s[4096];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 128, %r1;
  st.shared.u32 [%r2], %t;
  trap;)");
  const LaunchResult r = run_faulty();
  EXPECT_NE(r.status, LaunchStatus::ok);
  EXPECT_THAT(r.replays, testing::IsEmpty());
}

TEST_F(Launch, ReplaysAreLocatedOnlyIfWanted) {
  load_kernel(R"(
  .shared .align 4 .b8 s[4096];
  mov.u32 %r1, s;
  mad.lo.u32 %r2, %t, 128, %r1;
  st.shared.u32 [%r2], %t;)");
  run();
  EXPECT_EQ(result.counters.shared_replays, 31u);
  EXPECT_THAT(result.replays, testing::IsEmpty());
}

// Half of the lanes do half of the work each time.
TEST_F(Launch, CountersOfDivergentCode) {
  load_kernel(R"(
  and.b32 %r1, %t, 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra even;
  add.f32 %f1, %f1, %f1;
  bra end;
even:
  add.f32 %f1, %f1, %f1;
  add.f32 %f1, %f1, %f1;
end:
  add.f32 %f1, %f1, %f1;)");
  run();
  EXPECT_EQ(result.counters.fp32, 4u);
  EXPECT_EQ(result.counters.fp32_flops, 16u + 32 + 32);
  EXPECT_EQ(result.counters.instructions, 4u + 3 + 4 + 1 + 1);
}

TEST_F(Launch, OutOfBoundsInWords) {
  load(R"(
.visible .entry _Z6kernelPfi(.param .u64 p, .param .u32 offset) {
  .reg .b64 %rd<5>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  ld.param.s32 %r2, [offset];
  cvt.s64.s32 %rd2, %r2;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [%rd1];
  ret;
})");
  const std::uint64_t p = upload(std::vector<float>(1024));
  const auto launched = [&](std::int32_t offset, std::uint64_t base) {
    return launch(shape(1, 32), "_Z6kernelPfi", base, offset);
  };
  EXPECT_EQ(launched(4096 - 128, p).status, LaunchStatus::ok);
  LaunchResult r = launched(4096 - 120, p);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kernel, "kernel(float*, int)");
  EXPECT_EQ(r.findings[0].thread.thread[0], 30u);
  EXPECT_EQ(r.findings[0].where, "PTX line 13");
  EXPECT_THAT(r.findings[0].text,
              testing::MatchesRegex("reads 4 bytes at 0x[0-9a-f]+, 0 bytes past the end of the "
                                    "4096-byte allocation at 0x[0-9a-f]+"));
  EXPECT_THAT(launched(-4, p).findings.at(0).text, testing::HasSubstr("4 bytes before"));
  EXPECT_THAT(launched(0, 0).findings.at(0).text, testing::HasSubstr("null pointer"));
  r = launched(2, p);
  EXPECT_EQ(r.status, LaunchStatus::misaligned_address);
  EXPECT_THAT(r.findings.at(0).text, testing::HasSubstr("not a multiple of 4"));
  device.free(p);
  EXPECT_THAT(launched(0, p).findings.at(0).text, testing::HasSubstr("was freed"));
}

TEST_F(Launch, UninitialisedAndConstant) {
  load_kernel(R"(
  ld.global.u32 %r1, [%in];
  st.global.u32 [%out], %r1;)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(32));
  const std::uint64_t in = device.allocate(64);
  LaunchResult r = launch(shape(1, 32), "k", out, in);
  EXPECT_EQ(r.status, LaunchStatus::ok);
  EXPECT_THAT(r.findings, testing::IsEmpty());
  download<std::uint32_t>(out, 32);
  const std::vector<Finding> read = device.take_findings();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_THAT(read[0].describe(),
              testing::AllOf(testing::StartsWith("k: block (0,0,0), thread (0,0,0), PTX line "),
                             testing::HasSubstr("that nothing has written")));
  load_kernel("mov.u64 %rd1, c;\n st.global.u32 [%rd1], %t;", ".const .align 4 .u32 c = 3;\n");
  r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  EXPECT_THAT(r.findings.at(0).text, testing::HasSubstr("the variable c (4 bytes), a constant"));
}

TEST_F(Launch, RacesNameBothSides) {
  load_kernel("mov.u32 %r1, %ctaid.x;\n st.global.u32 [%base], %r1;");
  const LaunchResult r = run_faulty(1, 3);
  ASSERT_THAT(kinds(r), testing::Contains(FindingKind::global_race));
  for (const Finding& f : r.findings) {
    EXPECT_THAT(f.text, testing::HasSubstr("writes 4 bytes"));
    EXPECT_THAT(f.other, testing::AllOf(testing::HasSubstr("block ("),
                                        testing::HasSubstr("nothing orders")));
  }
}

constexpr const char* kWork = R"(
  .shared .align 4 .b8 s[256];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.u32 %r3, %r1, %r2, %t;
  mad.wide.u32 %out, %r3, 4, %base;
  mov.u32 %r4, s;
  mad.lo.u32 %r5, %t, 4, %r4;
  mov.u32 %r6, 0;
loop:
  add.u32 %r6, %r6, %r3;
  and.b32 %r7, %r6, 7;
  setp.ne.u32 %p1, %r7, %r1;
  setp.lt.u32 %p2, %r6, 5000;
  and.pred %p1, %p1, %p2;
  setp.ne.u32 %p2, %r3, 0;
  and.pred %p1, %p1, %p2;
  @%p1 bra loop;
  st.shared.u32 [%r5], %r6;
  bar.sync 0;
  xor.b32 %r5, %r5, 4;
  ld.shared.u32 %r7, [%r5];
  st.global.u32 [%out], %r7;
  red.global.add.u32 [total], %r7;
)";

TEST_F(Launch, HostThreadsAndOrderChangeNothing) {
  std::vector<std::uint32_t> values;
  Counters counters;
  for (const unsigned threads : {1u, 2u, 3u}) {
    for (const std::uint64_t seed : {0u, 7u}) {
      DeviceOptions options = small();
      options.threads = threads;
      options.shuffle_seed = seed;
      Device d(options);
      std::swap(d, device);
      load_kernel(kWork, ".global .u32 total;\n");
      const std::uint64_t out = upload(std::vector<std::uint32_t>(64 * 50));
      const LaunchResult r = launch(shape(50, 64), "k", out, std::uint64_t{0});
      ASSERT_EQ(r.status, LaunchStatus::ok);
      EXPECT_TRUE(r.findings.empty());
      auto got = download<std::uint32_t>(out, 64 * 50);
      got.push_back(download<std::uint32_t>(device.variable(module, "total").address, 1)[0]);
      if (values.empty()) {
        values = got;
        counters = r.counters;
      }
      EXPECT_EQ(got, values) << threads << " threads, seed " << seed;
      EXPECT_TRUE(r.counters == counters) << threads << " threads, seed " << seed;
    }
  }
}

TEST_F(Launch, TheFirstFailureInOrderIsReported) {
  for (const unsigned threads : {1u, 3u}) {
    DeviceOptions options = small();
    options.threads = threads;
    Device d(options);
    std::swap(d, device);
    load_kernel(R"(
  mov.u32 %r1, %ctaid.x;
  setp.lt.u32 %p1, %r1, 13;
  @%p1 bra end;
  st.global.u32 [%base+1048576], %r1;
end:)");
    const LaunchResult r = run_faulty(32, 40);
    EXPECT_EQ(r.status, LaunchStatus::illegal_address);
    ASSERT_EQ(r.findings.size(), 1u);
    EXPECT_EQ(r.findings[0].thread.block[0], 13u);
    EXPECT_EQ(r.findings[0].count, 1u);
  }
}

// Block b runs 1000 (b + 1) loop iterations.
constexpr const char* kLongerAndLonger = R"(
  mov.u32 %r1, %ctaid.x;
  mad.lo.u32 %r1, %r1, 1000, 1000;
loop:
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra loop;)";

TEST_F(Launch, TheInstructionLimitStrikesTheSameBlockOnAnyNumberOfHostThreads) {
  // Block b executes 3000 (b + 1) instructions and a few more; the first eleven blocks take 198000.
  for (const unsigned threads : {1u, 2u, 5u}) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      DeviceOptions options = small();
      options.threads = threads;
      options.instruction_limit = 190'000;
      Device d(options);
      std::swap(d, device);
      load_kernel(kLongerAndLonger);
      const LaunchResult r = run_faulty(32, 40);
      EXPECT_EQ(r.status, LaunchStatus::timeout);
      ASSERT_EQ(r.findings.size(), 1u) << threads << " threads";
      EXPECT_EQ(r.findings[0].kind, FindingKind::instruction_limit);
      EXPECT_EQ(r.findings[0].thread.block[0], 10u) << threads << " threads";
    }
  }
  // First just enough instructions, then an endless loop.
  for (const unsigned threads : {1u, 3u}) {
    DeviceOptions options = small();
    options.threads = threads;
    options.instruction_limit = 2'600'000;
    Device d(options);
    std::swap(d, device);
    load_kernel(kLongerAndLonger);
    EXPECT_EQ(run_faulty(32, 40).status, LaunchStatus::ok);
    load_kernel(R"(
  mov.u32 %r1, %ctaid.x;
  setp.ne.u32 %p1, %r1, 7;
  @%p1 bra end;
loop: add.u32 %r2, %r2, 1;
  bra loop;
end:)");
    const LaunchResult r = run_faulty(32, 40);
    ASSERT_EQ(r.findings.size(), 1u);
    EXPECT_EQ(r.findings[0].kind, FindingKind::instruction_limit);
    EXPECT_EQ(r.findings[0].thread.block[0], 7u);
  }
}

TEST_F(Launch, ShufflingChangesTheOrderOfBlocks) {
  const auto order = [&](std::uint64_t seed) {
    DeviceOptions options = small();
    options.shuffle_seed = seed;
    Device d(options);
    std::swap(d, device);
    load_kernel(R"(
  atom.global.add.u32 %r1, [ticket], 1;
  mov.u32 %r2, %ctaid.x;
  mad.wide.u32 %rd1, %r1, 4, %base;
  st.global.u32 [%rd1], %r2;)",
                ".global .u32 ticket;\n");
    const std::uint64_t out = upload(std::vector<std::uint32_t>(16));
    launch(shape(16, 1), "k", out, std::uint64_t{0});
    return download<std::uint32_t>(out, 16);
  };
  EXPECT_EQ(order(0), each_lane(16, [](std::uint32_t b) { return b; }));
  const auto shuffled = order(3);
  EXPECT_NE(shuffled, order(0));
  EXPECT_NE(shuffled, order(4));
  EXPECT_EQ(shuffled, order(3));
  EXPECT_THAT(shuffled, testing::UnorderedElementsAreArray(order(0)));
}

// A grid barrier as in cooperative groups: arrive, then wait for the count.
constexpr const char* kGridBarrier = R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  mad.wide.u32 %rd1, %r1, 4, %base;
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.global.u32 [%rd1], %r1;
  bar.sync 0;
  @!%p1 bra join;
  fence.acq_rel.gpu;
  atom.add.release.gpu.global.u32 %r3, [arrived], 1;
wait:
  ld.acquire.gpu.global.u32 %r4, [arrived];
  setp.lt.u32 %p2, %r4, %r2;
  @%p2 bra wait;
join:
  bar.sync 0;
  sub.u32 %r5, %r2, %r1;
  sub.u32 %r5, %r5, 1;
  mad.wide.u32 %rd2, %r5, 4, %base;
  ld.global.u32 %r6, [%rd2];
  mad.lo.u32 %r7, %r1, 32, %t;
  add.u32 %r7, %r7, %r2;
  mad.wide.u32 %rd3, %r7, 4, %base;
  st.global.u32 [%rd3], %r6;)";

TEST_F(Launch, GridsThatSynchronise) {
  for (const bool cooperative : {true, false}) {
    load_kernel(kGridBarrier, ".global .u32 arrived;\n");
    const std::uint64_t out = upload(std::vector<std::uint32_t>(20 * 33));
    LaunchConfig c = shape(20, 32);
    c.cooperative = cooperative;
    const LaunchResult r = launch(c, "k", out, std::uint64_t{0});
    ASSERT_EQ(r.status, LaunchStatus::ok) << cooperative;
    for (const Finding& f : r.findings) ADD_FAILURE() << f.describe();
    const auto got = download<std::uint32_t>(out + 80, 640);
    EXPECT_EQ(got, each_lane(640, [](std::uint32_t i) { return 19 - i / 32; }));
  }
  LaunchConfig c = shape(132 * 2 + 1, 1024);
  c.cooperative = true;
  EXPECT_EQ(launch(c, "k", std::uint64_t{0}, std::uint64_t{0}).status,
            LaunchStatus::too_large_cooperative);
}

TEST_F(Launch, ACopyOfUninitialisedMemoryIsUninitialised) {
  load_kernel(R"(
  mad.wide.u32 %rd1, %t, 4, %in;
  ld.global.u32 %r1, [%rd1];
  st.global.u32 [%out], %r1;)");
  const std::uint64_t a = device.allocate(128), b = device.allocate(128),
                      out = device.allocate(128);
  EXPECT_TRUE(device.fill(a, std::byte{1}, 64));
  EXPECT_TRUE(device.fill(b, std::byte{2}, 128));
  EXPECT_TRUE(device.copy(b, a, 128));
  EXPECT_THAT(launch(shape(1, 32), "k", out, b).findings, testing::IsEmpty());
  download<std::uint32_t>(out, 16);
  EXPECT_THAT(device.take_findings(), testing::IsEmpty());
  download<std::uint32_t>(out + 64, 16);
  const std::vector<Finding> found = device.take_findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::uninitialised);
  EXPECT_EQ(found[0].thread.thread[0], 16u);
  EXPECT_EQ(found[0].count, 16u);
}

TEST_F(Launch, MemoryOfTheHost) {
  const std::uint64_t a = device.allocate(100), b = device.allocate(100);
  EXPECT_TRUE(device.fill(a, std::byte{7}, 100));
  EXPECT_TRUE(device.copy(b, a, 100));
  EXPECT_EQ(download<std::uint8_t>(b, 100), std::vector<std::uint8_t>(100, 7));
  EXPECT_FALSE(device.fill(a, std::byte{7}, 101));
  EXPECT_FALSE(device.copy(b, a + 1, 100));
  EXPECT_EQ(device.allocation(a + 50).address, a);
  EXPECT_EQ(device.allocation(a + 50).bytes, 100u);
  EXPECT_TRUE(device.free(a));
  EXPECT_FALSE(device.free(a));
  EXPECT_EQ(device.allocation(a + 50).bytes, 0u);
  EXPECT_EQ(device.live_bytes(), 100u);
  EXPECT_EQ(device.high_water(), 200u);
}

TEST_F(Launch, AGridThatCountsClustersIsRefusedByName) {
  load(".visible .entry k() .reqntid 32 .reqnctapercluster 2 .blocksareclusters {\n  ret;\n}\n");
  try {
    launch(shape(2, 32), "k");
    ADD_FAILURE() << "ran";
  } catch (const Unsupported& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr(".blocksareclusters"));
  }
}

// Queries about this kernel work as usual. The other kernel runs, and the message begins with the
// unsupported instruction.
TEST_F(Launch, AKernelThatIsNotSupportedIsRefusedAtItsLaunch) {
  const std::string name(400, 'x');
  load(".visible .entry " + name + R"((.param .u64 out, .param .u32 n) .maxntid 128
{ .shared .align 4 .b8 s[512]; .reg .b32 %r<2>; mov.u32 %r1, s;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; ret; }
.visible .entry plain() { ret; }
)");
  const KernelInfo& info = device.info(device.kernel(module, name));
  EXPECT_EQ(info.params_bytes, 12u);
  EXPECT_EQ(info.max_threads, 128u);
  EXPECT_EQ(info.static_shared_bytes, 512u);
  EXPECT_EQ(device.resident_blocks(device.kernel(module, name), 128, 0), 16u);
  for (int i = 0; i < 2; ++i) {
    try {
      launch(shape(1, 32), name, std::uint64_t{0}, 0u);
      ADD_FAILURE() << "ran";
    } catch (const Unsupported& e) {
      EXPECT_THAT(e.what(), testing::StartsWith(
                                "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned: "));
      EXPECT_THAT(e.what(), testing::HasSubstr(", in kernel xxx"));
      EXPECT_THAT(e.what(), testing::EndsWith("... (PTX line 6)"));
    }
    EXPECT_EQ(launch(shape(1, 32), "plain").status, LaunchStatus::ok);
  }
}

TEST_F(Launch, AFunctionThatOnlyAPointerReachesIsRefusedWhenItIsCalled) {
  load(R"(
.func (.param .b32 r) good(.param .b32 a) {
  .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) bad(.param .b32 a) { tcgen05.wait::ld.sync.aligned; ret; }
.global .align 8 .u64 table[2] = {good, bad};
.visible .entry k(.param .u64 out, .param .u32 which) {
  .reg .b32 %r<5>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [which];
  mov.u64 %rd2, table; mad.wide.u32 %rd3, %r1, 8, %rd2; ld.global.u64 %rd4, [%rd3];
  { .param .b32 a; .param .b32 r; st.param.b32 [a], 41;
  call (r), %rd4, (a), type; ld.param.b32 %r2, [r]; }
  type: .callprototype (.param .b32 _) _ (.param .b32 _);
  st.global.u32 [%rd1], %r2; ret; }
)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(1));
  EXPECT_EQ(launch(shape(1, 1), "k", out, 0u).status, LaunchStatus::ok);
  EXPECT_EQ(download<std::uint32_t>(out, 1)[0], 42u);
  try {
    launch(shape(1, 1), "k", out, 1u);
    ADD_FAILURE() << "ran";
  } catch (const Unsupported& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr(", in function bad (PTX line 7)"));
  }
}

TEST_F(Launch, InitialValuesThatAreBytesOfAddresses) {
  load_kernel(
      "mov.u64 %rd1, table; ld.global.u8 %r1, [%rd1]; st.global.u32 [%out], %r1; mov.u64 %rd2, "
      "datum;"
      "shr.u64 %rd2, %rd2, 8; cvt.u32.u64 %r2, %rd2; and.b32 %r2, %r2, 255; st.global.u32 "
      "[%out+4], %r2;",
      ".global .align 8 .b8 datum[300];\n.global .align 1 .b8 table[1] = {0xff00(datum)};\n");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(2));
  ASSERT_EQ(launch(shape(1, 1), "k", out, std::uint64_t{0}).status, LaunchStatus::ok);
  const auto got = download<std::uint32_t>(out, 2);
  EXPECT_EQ(got[0], got[1]);
}

// Launches that the instruction limit alone would allow to run for long: the deadline ends them.
// Its clock is this process's processor time, so a busy machine changes nothing.
class Deadline : public DeviceTest {
 protected:
  static DeviceOptions unlimited() {
    DeviceOptions o = small();
    o.instruction_limit = std::uint64_t{1} << 60;
    return o;
  }
  Deadline() : DeviceTest(unlimited()) {}

  void expect_ended(const LaunchConfig& config, std::uint64_t in = 0) {
    const std::uint64_t out = upload(std::vector<std::uint32_t>(1 << 12));
    device.set_processor_deadline(processor_ns() + 100'000'000);
    const LaunchResult r = launch(config, "k", out, in == 0 ? out : in);
    EXPECT_EQ(r.status, LaunchStatus::timeout);
    EXPECT_THAT(kinds(r), testing::Contains(FindingKind::instruction_limit));
    // The device still works.
    device.set_processor_deadline(0);
    load_kernel("st.global.u32 [%out], %t;");
    EXPECT_EQ(run()[7], 7u);
  }
};

TEST_F(Deadline, EndsHugeGridsOfNothing) {
  load(".visible .entry k(.param .u64 a, .param .u64 b) { ret; }");
  expect_ended(shape(1 << 25, 32));
}

TEST_F(Deadline, EndsLoopsWithoutMemory) {
  load_kernel("loop: bra loop;");
  expect_ended(shape(1, 32));
}

TEST_F(Deadline, EndsLoopsOfScatteredAccesses) {
  load_kernel(R"(
  mad.wide.u32 %rd1, %t, 64, %base;
loop:
  red.global.add.u32 [%rd1], 1;
  ld.global.u32 %r1, [%rd1];
  bra loop;)");
  expect_ended(shape(4, 32));
}

TEST_F(Deadline, EndsThoseWhoWaitForWhatNeverComes) {
  load_kernel(R"(
loop:
  nanosleep.u32 1000000;
  ld.acquire.gpu.global.u32 %r1, [%in];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra loop;)");
  expect_ended(shape(8, 64));
  load_kernel(R"(
  .shared .align 8 .b8 b[8];
  mov.u32 %r1, b;
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [%r1], 64;
  bar.sync 0;
loop:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra loop;)");
  expect_ended(shape(1, 32));
}

// There is no deadline: the checks find these.
TEST_F(Deadline, BarriersThatSomeNeverReachAreFoundAtOnce) {
  load_kernel("setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;");
  EXPECT_THAT(kinds(run_faulty(64)), testing::Contains(FindingKind::deadlock));
}

TEST_F(Deadline, DeepRecursionRunsOutOfStack) {
  load(R"(
.func down() {
  .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x;
  call.uni down, ();
  add.u32 %r2, %r1, 1;
  ret;
}
.visible .entry k(.param .u64 a, .param .u64 b) { call.uni down, (); ret; }
)");
  const LaunchResult r = launch(shape(64, 1024), "k", std::uint64_t{0}, std::uint64_t{0});
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  EXPECT_THAT(r.findings.at(0).text, testing::HasSubstr("call stack"));
}

TEST_F(Deadline, AllocationsHaveANumberToo) {
  std::size_t count = 0;
  while (device.allocate(1) != 0) ++count;
  EXPECT_GT(count, 10'000u);
  EXPECT_LT(count, 1'000'000u);
}

TEST_F(Deadline, WhatIsPrintedIsBounded) {
  load_kernel(R"(
  { .param .b64 a; .param .b64 b; .param .b32 c; mov.u64 %rd1, text; cvta.global.u64 %rd2, %rd1;
  st.param.b64 [a], %rd2; st.param.b64 [b], 0; call.uni (c), vprintf, (a, b); })",
              ".global .align 1 .b8 text[5] = {97, 98, 99, 100, 0};\n"
              ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n");
  const LaunchResult r = launch(shape(20'000, 32), "k", std::uint64_t{0}, std::uint64_t{0});
  EXPECT_EQ(r.output.size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace assay::sim
