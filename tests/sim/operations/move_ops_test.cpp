// mov in all its forms, special registers, addresses of variables, constants.
#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class Move : public DeviceTest {};

TEST_F(Move, SpecialRegistersOfTheThread) {
  load_kernel(R"(
  mov.u32 %r1, %laneid;
  mov.u32 %r2, %warpid;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %ntid.x;
  shl.b32 %r2, %r2, 8;
  shl.b32 %r3, %r3, 16;
  shl.b32 %r4, %r4, 24;
  or.b32 %r1, %r1, %r2;
  or.b32 %r1, %r1, %r3;
  or.b32 %r1, %r1, %r4;
  mad.lo.s32 %r5, %tid.y, 16, %t;
  mad.wide.u32 %out, %r5, 4, %base;
  st.global.u32 [%out], %r1;)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(64));
  LaunchConfig c;
  c.block = {16, 4, 1};
  ASSERT_EQ(launch(c, "k", out, std::uint64_t{0}).status, LaunchStatus::ok);
  EXPECT_EQ(download<std::uint32_t>(out, 64), each_lane(64, [](std::uint32_t t) {
              return (t % 32) | ((t / 32) << 8) | ((t / 16) << 16) | (16u << 24);
            }));
}

TEST_F(Move, BlockAndGrid) {
  load_kernel(R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r2, %r3, %r1;
  mad.wide.u32 %out, %r4, 4, %base;
  setp.eq.u32 %p1, %t, 0;
  shl.b32 %r1, %r1, 8;
  or.b32 %r1, %r1, %r2;
  @%p1 st.global.u32 [%out], %r1;)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(6));
  LaunchConfig c;
  c.grid = {3, 2, 1};
  c.block = {33, 1, 1};
  ASSERT_EQ(launch(c, "k", out, std::uint64_t{0}).status, LaunchStatus::ok);
  EXPECT_EQ(download<std::uint32_t>(out, 6),
            each_lane(6, [](std::uint32_t b) { return (b % 3) << 8 | b / 3; }));
}

TEST_F(Move, LaneMasks) {
  load_kernel(R"(
  mov.u32 %r1, %lanemask_lt;
  mov.u32 %r2, %lanemask_ge;
  mov.u32 %r3, %lanemask_eq;
  mov.u32 %r4, %lanemask_le;
  mov.u32 %r5, %lanemask_gt;
  xor.b32 %r1, %r1, %r2;
  xor.b32 %r4, %r4, %r5;
  and.b32 %r1, %r1, %r4;
  and.b32 %r1, %r1, %r3;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return 1u << l; }));
}

TEST_F(Move, PackAndUnpack) {
  load_kernel(R"(
  add.u32 %r1, %t, 0x12340000;
  mov.b32 {%h1, %h2}, %r1;
  mov.b32 %r2, {%h2, %h1};
  mov.b64 %rd1, {%r2, %r1};
  mov.b64 {%h3, %h4, %h5, %h6}, %rd1;
  mov.b64 %rd2, {%h6, %h5, %h4, %h3};
  mov.b64 {%r3, %r4}, %rd2;
  mov.b64 {_, %r5}, %rd2;
  sub.u32 %r5, %r5, %r4;
  add.u32 %r3, %r3, %r5;
  st.global.u32 [%out], %r3;)");
  // %r1 = 1234:t, %r2 = t:1234; the halves of {r2, r1} reversed begin with r1's reversed: t:1234.
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l << 16 | 0x1234; }));
}

TEST_F(Move, Wide) {
  load_kernel(R"(
  cvt.u64.u32 %rd1, %t;
  mov.b64 %rd2, 0x100000000;
  mov.b128 %q1, {%rd1, %rd2};
  mov.b128 %q2, %q1;
  mov.b128 {%rd3, %rd4}, %q2;
  shr.u64 %rd4, %rd4, 32;
  add.u64 %rd3, %rd3, %rd4;
  cvt.u32.u64 %r1, %rd3;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l + 1; }));
}

TEST_F(Move, PredicatesAndTheirComplements) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 10;
  mov.pred %p2, %p1;
  mov.pred %p3, 1;
  and.pred %p4, %p3, !%p2;
  selp.u32 %r1, 7, 5, %p4;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l < 10 ? 5 : 7; }));
}

TEST_F(Move, LiteralsHaveTheWidthOfTheInstruction) {
  load_kernel(R"(
  cvt.u16.u32 %h1, %t;
  add.s16 %h1, %h1, -1;
  setp.eq.s16 %p1, %h1, -1;
  mov.f32 %f1, 1.5;
  mov.f32 %f2, 0f40000000;
  add.f32 %f1, %f1, %f2;
  mov.f64 %fd1, 0d3FF0000000000000;
  add.f64 %fd1, %fd1, 0.25;
  cvt.rn.f32.f64 %f3, %fd1;
  add.f32 %f1, %f1, %f3;
  selp.f32 %f1, %f1, 0f00000000, %p1;
  st.global.f32 [%out], %f1;)");
  const auto out = run<float>();
  EXPECT_EQ(out[0], 4.75f);
  EXPECT_EQ(out[1], 0.f);
}

TEST_F(Move, AddressesOfVariables) {
  load_kernel(R"(
  .shared .align 8 .b8 own[128];
  .local .align 8 .b8 mine[32];
  mov.u64 %rd1, table;
  ld.global.u32 %r1, [%rd1+4];
  mov.u64 %rd2, pointer;
  ld.global.u64 %rd3, [%rd2];
  ld.u32 %r2, [%rd3];
  ld.const.u32 %r3, [factor];
  mov.u32 %r4, own;
  mov.u64 %rd4, mine;
  cvta.local.u64 %rd5, %rd4;
  isspacep.local %p1, %rd5;
  isspacep.shared %p2, %rd5;
  cvta.to.local.u64 %rd6, %rd5;
  st.local.u32 [%rd6+8], %r1;
  ld.u32 %r5, [%rd5+8];
  add.u32 %r1, %r2, %r3;
  mad.lo.u32 %r1, %r4, 1000, %r1;
  @%p1 add.u32 %r1, %r1, %r5;
  @%p2 add.u32 %r1, %r1, 1000000;
  st.global.u32 [%out], %r1;)",
              R"(
.global .align 4 .u32 table[3] = {10, 20, 30};
.global .align 8 .u64 pointer = generic(table)+8;
.const .align 4 .u32 factor = 400;
)");
  EXPECT_EQ(run(4), each_lane(4, [](std::uint32_t) { return 30 + 400 + 20; }));
}

TEST_F(Move, ConvertsOperandsOfAnotherWidth) {
  load_kernel(R"(
  cvt.u64.u32 %rd1, %t;
  add.u64 %rd1, %rd1, 0xfe;
  cvt.s64.s8 %rd2, %rd1;
  cvt.u32.u64 %r1, %rd2;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(4), (std::vector<std::uint32_t>{0xfffffffe, 0xffffffff, 0, 1}));
}

TEST_F(Move, ClocksCountInstructions) {
  load_kernel(R"(
  mov.u32 %r1, %clock;
  add.u32 %r9, %r9, 1;
  add.u32 %r9, %r9, 1;
  mov.u64 %rd1, %clock64;
  cvt.u32.u64 %r2, %rd1;
  sub.u32 %r1, %r2, %r1;
  st.global.u32 [%out], %r1;)");
  const auto out = run(1);
  EXPECT_GE(out[0], 3u);
  EXPECT_LE(out[0], 6u);
}

TEST_F(Move, RegistersReadBeforeTheyAreWrittenAreZero) {
  load_kernel(R"(
  setp.gt.u32 %p1, %t, 40;
  @%p1 mov.u32 %r1, 9;
  @%p2 mov.u32 %r1, 8;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(), std::vector<std::uint32_t>(32));
  EXPECT_EQ(run(), std::vector<std::uint32_t>(32));
}

// d = majority of three, p = (d != 0) and q, or (d != 0) or q.
TEST_F(Move, LogicOfThreeWithAPredicate) {
  for (const bool with_and : {true, false}) {
    load_kernel(std::string("and.b32 %r1, %t, 4;\n setp.gt.u32 %p1, %t, 15;\n lop3.") +
                (with_and ? "and" : "or") +
                ".b32 %r2|%p2, %t, %r1, 6, 0xe8, %p1;\n selp.u32 %r3, 100, 0, %p2;\n"
                "add.u32 %r3, %r3, %r2;\n st.global.u32 [%out], %r3;");
    EXPECT_EQ(run(), each_lane(32, [&](std::uint32_t l) {
                const std::uint32_t b = l & 4, d = (l & b) | (l & 6) | (b & 6);
                const bool q = l > 15, p = with_and ? d != 0 && q : d != 0 || q;
                return d + (p ? 100 : 0);
              }));
  }
}

TEST_F(Move, RefusesByName) {
  load_kernel("  mapa.u32 %r1, %r2, 1;");
  try {
    run_faulty();
    FAIL();
  } catch (const Unsupported& u) {
    EXPECT_THAT(u.what(),
                testing::AllOf(testing::HasSubstr("kernel k"), testing::HasSubstr("mapa.u32"),
                               testing::HasSubstr("not supported")));
  }
  EXPECT_THROW(device.kernel(module, "absent"), std::out_of_range);
}

// Many values in sequence, few at a time: the frame stays small.
TEST_F(Move, SlotsAreReused) {
  std::string body = "  mov.u32 %r0, %t;\n";
  std::string registers = "  .reg .b32 %x<1001>;\n  mov.u32 %x0, %t;\n";
  for (int i = 1; i <= 1000; ++i) {
    body += "  add.u32 %x" + std::to_string(i) + ", %x" + std::to_string(i - 1) + ", 1;\n";
  }
  load_kernel(registers + body + "  st.global.u32 [%out], %x1000;");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l + 1000; }));
  EXPECT_LT(device.info(device.kernel(module, "k")).registers, 20u);
}

// A value needed in every iteration of a loop keeps its slot, although others come and go in the
// loop.
TEST_F(Move, SlotsOutliveLoops) {
  load_kernel(R"(
  add.u32 %r1, %t, 100;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
loop:
  add.u32 %r4, %r3, 1;
  mov.u32 %r3, %r4;
  add.u32 %r5, %r1, %r3;
  add.u32 %r2, %r2, %r5;
  setp.lt.u32 %p1, %r3, 4;
  @%p1 bra loop;
  st.global.u32 [%out], %r2;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return 4 * (l + 100) + 10; }));
}

// The value is read in the middle of the loop; later values in the loop must not take its slot.
TEST_F(Move, SlotsOutliveLoopsOfSeveralBlocks) {
  load_kernel(R"(
  add.u32 %r1, %t, 100;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
head:
  setp.ge.u32 %p1, %r3, 4;
  @%p1 bra done;
  setp.eq.u32 %p2, %r3, 77;
  @%p2 bra latch;
  add.u32 %r2, %r2, %r1;
latch:
  mul.lo.u32 %r10, %r3, 5;
  mul.lo.u32 %r11, %r3, 7;
  mul.lo.u32 %r12, %r3, 9;
  add.u32 %r10, %r10, %r11;
  add.u32 %r10, %r10, %r12;
  add.u32 %r2, %r2, %r10;
  add.u32 %r3, %r3, 1;
  bra head;
done:
  st.global.u32 [%out], %r2;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return 4 * (l + 100) + 21 * 6; }));
}

}  // namespace
}  // namespace assay::sim
