// Calls of functions, direct and through pointers; recursion; printf, assertions and traps.
#include <fmt/format.h>

#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class Call : public DeviceTest {};

constexpr const char* kTriple = R"(
.func (.param .b32 result) triple(.param .b32 x, .param .b64 y) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u32 %r1, [x];
  ld.param.u64 %rd1, [y];
  cvt.u32.u64 %r2, %rd1;
  mad.lo.u32 %r3, %r1, 3, %r2;
  st.param.b32 [result], %r3;
  ret;
}
)";

TEST_F(Call, ParametersAndResults) {
  load_kernel(R"(
  { .param .b32 a; .param .b64 b; .param .b32 r;
  st.param.b32 [a], %t;
  st.param.b64 [b+0], 1000;
  call.uni (r), triple, (a, b);
  ld.param.b32 %r1, [r]; }
  { .param .b32 a; .param .b64 b; .param .b32 r;
  st.param.b32 [a], %r1;
  st.param.b64 [b], 1;
  call (r), triple, (a, b);
  ld.param.b32 %r2, [r]; }
  st.global.u32 [%out], %r2;)",
              kTriple);
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return 3 * (3 * l + 1000) + 1; }));
}

TEST_F(Call, StructuresAndSubWords) {
  load_kernel(R"(
  { .param .align 8 .b8 s[16]; .param .align 4 .b8 r[8];
  cvt.u16.u32 %h1, %t;
  st.param.b8 [s+3], %h1;
  st.param.b16 [s+6], %h1;
  st.param.v2.b32 [s+8], {%t, 7};
  call (r), f, (s);
  ld.param.v2.b32 {%r1, %r2}, [r];
  add.u32 %r1, %r1, %r2; }
  st.global.u32 [%out], %r1;)",
              R"(
.func (.param .align 4 .b8 r[8]) f(.param .align 8 .b8 s[16]) {
  .reg .b32 %r<9>; .reg .b16 %h<3>; .reg .b64 %rd<3>;
  ld.param.s8 %r1, [s+3];
  ld.param.u16 %h1, [s+6];
  cvt.u32.u16 %r2, %h1;
  ld.param.u64 %rd1, [s+8];
  shr.u64 %rd2, %rd1, 32;
  cvt.u32.u64 %r3, %rd2;
  cvt.u32.u64 %r4, %rd1;
  mad.lo.u32 %r1, %r2, 10000, %r1;
  mad.lo.u32 %r4, %r4, 100, %r3;
  st.param.b32 [r], %r1;
  st.param.b32 [r+4], %r4;
  ret;
}
)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l + 10000 * l + 100 * l + 7; }));
}

TEST_F(Call, DivergenceInTheCallee) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 24;
  mov.u32 %r1, 9;
  { .param .b32 a; .param .b32 r;
  st.param.b32 [a], %t;
  @%p1 call (r), odd, (a);
  @%p1 ld.param.b32 %r1, [r]; }
  activemask.b32 %r2;
  setp.eq.u32 %p2, %r2, -1;
  @%p2 add.u32 %r1, %r1, 1000;
  st.global.u32 [%out], %r1;)",
              R"(
.func (.param .b32 r) odd(.param .b32 a) {
  .reg .b32 %r<4>; .reg .pred %p<3>;
  ld.param.u32 %r1, [a];
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra yes;
  st.param.b32 [r], 20;
  ret;
yes:
  setp.gt.u32 %p2, %r1, 10;
  st.param.b32 [r], 30;
  @%p2 ret;
  st.param.b32 [r], 40;
  ret;
}
)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) {
              const std::uint32_t value = l % 2 == 0 ? 20 : l > 10 ? 30 : 40;
              return (l < 24 ? value : 9) + 1000;
            }));
}

TEST_F(Call, LocalsOfACalleeAreAligned) {
  load_kernel(R"(
  .local .align 4 .b8 own[4];
  .reg .b64 %rd8;
  { .param .b64 r;
  call (r), where, ();
  ld.param.b64 %rd8, [r]; }
  cvt.u32.u64 %r1, %rd8;
  and.b32 %r1, %r1, 127;
  st.global.u32 [%out], %r1;)",
              R"(
.func (.param .b64 r) where() {
  .local .align 128 .b8 mine[4]; .reg .b64 %rd<3>;
  mov.u64 %rd1, mine;
  st.param.b64 [r], %rd1;
  ret;
}
)");
  EXPECT_EQ(run(), std::vector<std::uint32_t>(32, 0));
}

// Half of the lanes come later, and the first wait for them in the callee.
constexpr const char* kMeeting = R"(
.func (.param .b32 r) meet(.param .b32 a) {
  .reg .b32 %r<4>;
  .local .align 4 .b8 mine[4];
  .reg .b64 %rd<2>;
  mov.u64 %rd1, mine;
  ld.param.u32 %r1, [a];
  st.local.u32 [%rd1], %r1;
  shfl.sync.bfly.b32 %r2, %r1, 31, 31, -1;
  ld.local.u32 %r1, [%rd1];
  add.u32 %r2, %r2, %r1;
  st.param.b32 [r], %r2;
  ret;
}
)";

TEST_F(Call, LanesThatComeOneAfterTheOtherMeetInTheCallee) {
  load_kernel(R"(
  setp.lt.u32 %p1, %t, 16;
  mov.u32 %r1, %t;
  @!%p1 bra later;
again:
  { .param .b32 a; .param .b32 r;
  st.param.b32 [a], %r1;
  call (r), meet, (a);
  ld.param.b32 %r2, [r]; }
  st.global.u32 [%out], %r2;
  bra end;
later:
  add.u32 %r1, %r1, 1000;
  bra again;
end:)",
              kMeeting);
  EXPECT_EQ(run(), std::vector<std::uint32_t>(32, 31 + 1000));
}

constexpr const char* kFactorial = R"(
.func (.param .b32 r) sum(.param .b32 n) {
  .reg .b32 %r<6>; .reg .pred %p<3>; .reg .b64 %rd<3>;
  .local .align 4 .b8 mine[4];
  mov.u64 %rd1, mine;
  ld.param.u32 %r1, [n];
  st.local.u32 [%rd1], %r1;
  mov.u32 %r3, 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra end;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b;
  st.param.b32 [a], %r2;
  call (b), sum, (a);
  ld.param.b32 %r3, [b]; }
  ld.local.u32 %r4, [%rd1];
  add.u32 %r3, %r3, %r4;
end:
  st.param.b32 [r], %r3;
  ret;
}
)";

TEST_F(Call, RecursionToDifferentDepths) {
  load_kernel(R"(
  { .param .b32 a; .param .b32 r;
  st.param.b32 [a], %t;
  call (r), sum, (a);
  ld.param.b32 %r1, [r]; }
  st.global.u32 [%out], %r1;)",
              kFactorial);
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l * (l + 1) / 2; }));
}

TEST_F(Call, EndlessRecursionOverflowsTheStack) {
  load_kernel(R"(
  { .param .b32 a; .param .b32 r;
  st.param.b32 [a], -1;
  call (r), sum, (a);
  ld.param.b32 %r1, [r]; })",
              kFactorial);
  const LaunchResult r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_THAT(r.findings[0].text, testing::HasSubstr("stack"));
}

TEST_F(Call, ThroughPointers) {
  load_kernel(R"(
  and.b32 %r1, %t, 1;
  mad.wide.u32 %rd1, %r1, 8, 0;
  mov.u64 %rd2, table;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u64 %rd3, [%rd1];
  { .param .b32 a; .param .b32 r;
  st.param.b32 [a], %t;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (r), %rd3, (a), proto;
  ld.param.b32 %r2, [r]; }
  st.global.u32 [%out], %r2;)",
              R"(
.func (.param .b32 r) twice(.param .b32 a) {
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [a];
  shl.b32 %r1, %r1, 1;
  st.param.b32 [r], %r1;
  ret;
}
.func (.param .b32 r) square(.param .b32 a) {
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [a];
  mul.lo.u32 %r1, %r1, %r1;
  st.param.b32 [r], %r1;
  ret;
}
.global .align 8 .u64 table[2] = {twice, square};
)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l % 2 == 0 ? 2 * l : l * l; }));
}

TEST_F(Call, UnknownFunctionsAreRefusedByName) {
  load_kernel(R"(
  { .param .b64 a; .param .b64 r;
  call (r), malloc, (a); })",
              ".extern .func (.param .b64 r) malloc(.param .b64 a);\n");
  try {
    run_faulty();
    FAIL();
  } catch (const Unsupported& u) {
    EXPECT_THAT(u.what(), testing::HasSubstr("malloc"));
  }
}

constexpr const char* kPrintf = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[32] = {
  37, 100, 58, 37, 53, 46, 50, 102, 124, 37, 115, 124, 37, 99, 124, 37, 108, 108, 120, 37, 37, 10, 0};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};
)";
// "%d:%5.2f|%s|%c|%llx%%\n"

TEST_F(Call, PrintfFormats) {
  load_kernel(R"(
  .local .align 8 .b8 args[40];
  mov.u64 %rd1, args;
  cvta.local.u64 %rd2, %rd1;
  setp.eq.u32 %p1, %t, 1;
  @!%p1 bra end;
  st.local.u32 [%rd1], -7;
  st.local.f64 [%rd1+8], 0d3FF8000000000000;
  mov.u64 %rd3, word;
  st.local.u64 [%rd1+16], %rd3;
  st.local.u32 [%rd1+24], 90;
  st.local.u64 [%rd1+32], 0x123456789ab;
  { .param .b64 f; .param .b64 a; .param .b32 r;
  mov.u64 %rd4, format;
  st.param.b64 [f], %rd4;
  st.param.b64 [a], %rd2;
  call.uni (r), vprintf, (f, a);
  ld.param.b32 %r1, [r]; }
  st.global.u32 [%out], %r1;
end:)",
              kPrintf);
  EXPECT_EQ(run(3), (std::vector<std::uint32_t>{0, 5, 0}));
  EXPECT_EQ(result.output, "-7: 1.50|abc|Z|123456789ab%\n");
}

TEST_F(Call, PrintfInOrderOfBlocksAndLimited) {
  const std::string body = R"(
  .local .align 8 .b8 args[8];
  mov.u64 %rd1, args;
  cvta.local.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  st.local.u32 [%rd1], %r1;
  { .param .b64 f; .param .b64 a; .param .b32 r;
  mov.u64 %rd4, number;
  st.param.b64 [f], %rd4;
  st.param.b64 [a], %rd2;
  call.uni (r), vprintf, (f, a); })";
  const std::string before = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 number[4] = {37, 100, 32, 0};
)";
  load_kernel(body, before);
  EXPECT_EQ(run_faulty(1, 12).output, "0 1 2 3 4 5 6 7 8 9 10 11 ");
  for (const unsigned threads : {1u, 3u}) {
    DeviceOptions options = small();
    options.threads = threads;
    options.max_output_bytes = 11;
    options.shuffle_seed = 5;
    Device other(options);
    const ModuleId m = other.load_module(
        fmt::format(".version 9.0\n.target sm_90\n.address_size 64\n{}"
                    ".visible .entry k() {{\n .reg .b64 %rd<9>; .reg .b32 %r<9>;\n{}\n ret;\n}}\n",
                    before, body));
    EXPECT_EQ(other.launch(other.kernel(m, "k"), shape(12, 1), {}).output, "0 1 2 3 4 5");
  }
}

TEST_F(Call, Assertions) {
  load_kernel(R"(
  setp.eq.u32 %p1, %t, 5;
  @!%p1 bra end;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
  mov.u64 %rd1, text;
  st.param.b64 [a], %rd1;
  st.param.b64 [b], %rd1;
  st.param.b32 [c], 12;
  st.param.b64 [d], %rd1;
  st.param.b64 [e], 1;
  call.uni __assertfail, (a, b, c, d, e); }
end:)",
              R"(
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[2] = {120, 0};
)");
  const LaunchResult r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::assertion);
  ASSERT_THAT(kinds(r), testing::ElementsAre(FindingKind::assertion));
  EXPECT_EQ(r.findings[0].text, "assertion `x` failed in x (x:12)");
  EXPECT_EQ(r.findings[0].thread.thread[0], 5u);
}

TEST_F(Call, Traps) {
  load_kernel("  setp.eq.u32 %p1, %t, 9;\n  @%p1 trap;");
  const LaunchResult r = run_faulty();
  EXPECT_EQ(r.status, LaunchStatus::illegal_instruction);
  ASSERT_THAT(kinds(r), testing::ElementsAre(FindingKind::trap));
  EXPECT_EQ(r.findings[0].thread.thread[0], 9u);
}

}  // namespace
}  // namespace assay::sim
