// Values read from memory that was never written: where they may be passed on, and what may not
// depend on them.
#include <algorithm>

#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Definedness : public DeviceTest {
 protected:
  // Memory with the words 6, 7, 8, ... where a bit of `written` is set; the other words are never
  // written.
  std::uint64_t words(std::uint32_t written, std::size_t count = 16) {
    const std::uint64_t address = device.allocate(4 * count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t value = 6 + i;
      if (((written >> i) & 1u) != 0)
        device.write(address + 4 * i, std::as_bytes(std::span(&value, 1)));
    }
    return address;
  }
  // Findings of the kernel and of reading its output.
  std::vector<Finding> findings(std::string_view body, std::uint64_t in, std::uint32_t threads = 32,
                                std::string_view before = {}, bool strictly = true) {
    load_kernel(body, before);
    const std::size_t size = std::max<std::size_t>(4 * threads, 64);
    const std::uint64_t out = upload(std::vector<std::uint32_t>(size));
    result = launch(shape(1, threads), "k", out, in);
    EXPECT_EQ(result.status, LaunchStatus::ok);
    std::vector<Finding> all = result.findings;
    std::vector<std::byte> bytes(4 * size);
    EXPECT_TRUE(device.read(bytes, out, strictly));
    for (const Finding& f : device.take_findings()) all.push_back(f);
    return all;
  }
  // Whether a predicate %p1, computed from %r1 (undefined) and %r2 (7), is reported as deciding
  // something.
  bool decides(std::string_view compute) {
    const auto found = findings("ld.global.u32 %r1, [%in];\nld.global.u32 %r2, [%in+4];\n" +
                                    std::string(compute) + "\n@%p1 st.global.u32 [%out], %t;",
                                words(2));
    for (const Finding& f : found) {
      EXPECT_EQ(f.kind, FindingKind::uninitialised) << f.describe();
      EXPECT_THAT(f.text, HasSubstr("decides where to go on")) << compute;
    }
    EXPECT_LE(found.size(), 1u) << compute;
    return !found.empty();
  }
};

TEST_F(Definedness, WhatIsOnlyCopiedIsToldWhereTheHostReadsIt) {
  load_kernel(R"(
  ld.global.u32 %r1, [%in];
  st.shared.u32 [s], %r1;
  ld.shared.u32 %r2, [s];
  st.global.u32 [%base+8], %r2;)",
              ".shared .align 4 .b8 s[4];\n");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(4)), copy = device.allocate(16);
  const LaunchResult r = launch(shape(1, 1), "k", out, words(0));
  EXPECT_THAT(r.findings, IsEmpty());
  EXPECT_TRUE(device.copy(copy, out, 16));
  download<std::uint32_t>(out, 2);
  EXPECT_THAT(device.take_findings(), IsEmpty()) << "the words before it";
  download<std::uint32_t>(out, 4);
  EXPECT_THAT(device.take_findings(), IsEmpty()) << "may be padding";
  download<std::uint32_t>(out + 8, 1);
  const auto found = device.take_findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::uninitialised);
  EXPECT_THAT(found[0].describe(),
              testing::AllOf(HasSubstr("k: block (0,0,0)"), HasSubstr("nothing has written"),
                             HasSubstr("the host reads")));
  download<std::uint32_t>(out + 8, 1);
  EXPECT_THAT(device.take_findings(), IsEmpty()) << "told once";
  // The copy is undefined too, but not once it is overwritten.
  launch(shape(1, 1), "k", out, words(0));
  EXPECT_TRUE(device.copy(copy, out, 16));
  EXPECT_TRUE(device.fill(out, std::byte{0}, 16));
  download<std::uint32_t>(out + 8, 1);
  EXPECT_THAT(device.take_findings(), IsEmpty());
  download<std::uint32_t>(copy + 8, 1);
  EXPECT_EQ(device.take_findings().size(), 1u);
}

// {char, int, double, short}: copied as words of 16 bytes, compared member by member.
TEST_F(Definedness, StructuresWithPadding) {
  constexpr const char* kBody = R"(
  ld.global.v2.u64 {%rd1, %rd2}, [%in];
  ld.global.u64 %rd3, [%in+16];
  st.local.v2.u64 [depot], {%rd1, %rd2};
  st.local.u64 [depot+16], %rd3;
  ld.local.v2.u64 {%rd4, %rd5}, [depot];
  ld.local.v2.u32 {%r8, %r9}, [depot+16];
  st.global.v2.u64 [%base], {%rd4, %rd5};
  st.global.v2.u32 [%base+16], {%r8, %r9};
  cvt.u32.u64 %r1, %rd4;
  and.b32 %r1, %r1, 255;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 st.global.u32 [%base+32], 5;
  shr.u64 %rd6, %rd4, 32;
  cvt.u32.u64 %r2, %rd6;
  setp.eq.s32 %p2, %r2, 3;
  @%p2 st.global.u32 [%base+36], 5;
  cvt.u16.u32 %h1, %r8;
  setp.eq.s16 %p3, %h1, 4;
  @%p3 st.global.u32 [%base+40], 5;
  prmt.b32 %r3, %r1, 0, 0x4440;
  bfe.u32 %r4, %r8, 8, 8;
  add.u32 %r3, %r3, %r4;
  setp.ne.u32 %p4, %r3, 0;
  @%p4 st.global.u32 [%base+44], 5;)";
  const auto structure = [&] {
    const std::uint64_t a = device.allocate(24);
    const std::uint8_t c = 1;
    const std::uint32_t i = 3;
    const double d = 0.5;
    const std::uint16_t s = 4;
    device.write(a, std::as_bytes(std::span(&c, 1)));
    device.write(a + 4, std::as_bytes(std::span(&i, 1)));
    device.write(a + 8, std::as_bytes(std::span(&d, 1)));
    device.write(a + 16, std::as_bytes(std::span(&s, 1)));
    return a;
  };
  EXPECT_THAT(
      findings(".local .align 16 .b8 depot[32];" + std::string(kBody), structure(), 1, {}, false),
      IsEmpty());
  // Here the kernel uses the padding itself.
  const auto found = findings(".local .align 16 .b8 depot[32];" + std::string(kBody) + R"(
  bfe.u32 %r5, %r8, 16, 8;
  setp.ne.u32 %p5, %r5, 0;
  @%p5 st.global.u32 [%base+48], 5;)",
                              structure(), 1, {}, false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("decides"));
  EXPECT_THAT(found[0].other, HasSubstr("was read last at"));
}

TEST_F(Definedness, WhatReachesABranchBitByBit) {
  const char* const decided[] = {
      "setp.eq.u32 %p1, %r1, 7;",
      "add.u32 %r3, %r1, %r2; setp.lt.u32 %p1, %r3, 100;",
      "and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0;",
      "and.b32 %r3, %r1, -256; add.u32 %r3, %r3, 3; shr.u32 %r3, %r3, 8; setp.ne.u32 %p1, %r3, 0;",
      "shl.b32 %r3, %r2, %r1; setp.ne.u32 %p1, %r3, 0;",
      "cvt.rn.f32.u32 %f1, %r1; setp.gt.f32 %p1, %f1, 0f40000000;",
      "mov.b32 %f1, %r1; fma.rn.f32 %f1, %f1, %f1, %f1; setp.gt.f32 %p1, %f1, 0f40000000;",
      "setp.ne.u32 %p2, %r1, 5; setp.eq.u32 %p3, %r2, 7; and.pred %p1, %p2, %p3;",
      "setp.ne.u32 %p2, %r1, 5; setp.eq.and.u32 %p1, %r2, 7, %p2;",
      "setp.eq.u32 %p2, %r2, 7; selp.u32 %r3, %r1, %r2, %p2; setp.eq.u32 %p1, %r3, 7;",
      "setp.eq.u32 %p2, %r1, 7; selp.u32 %r3, 1, 2, %p2; setp.eq.u32 %p1, %r3, 1;",
      "xor.b32 %r3, %r1, %r2; not.b32 %r3, %r3; setp.eq.u32 %p1, %r3, 1;",
      "mov.b64 %rd1, {%r2, %r1}; shr.u64 %rd1, %rd1, 40; setp.ne.u64 %p1, %rd1, 0;",
      "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; setp.eq.u32 %p1, %r3, 1;",
      "setp.eq.u32 %p2, %r1, 7; vote.sync.any.pred %p1, %p2, -1;",
      "redux.sync.add.u32 %r3, %r1, -1; setp.eq.u32 %p1, %r3, 1;",
      "mul.wide.u32 %rd1, %r1, %r2; setp.ne.u64 %p1, %rd1, 0;",
      "lop3.b32 %r3, %r1, %r2, 15, 0xe8; setp.eq.u32 %p1, %r3, 15;",
  };
  for (const char* body : decided) EXPECT_TRUE(decides(body)) << body;
  const char* const harmless[] = {
      "setp.eq.u32 %p1, %r2, 7;",
      "and.b32 %r3, %r1, 0; setp.eq.u32 %p1, %r3, 0;",
      "or.b32 %r3, %r1, -1; setp.eq.u32 %p1, %r3, -1;",
      "shl.b32 %r3, %r1, 8; and.b32 %r3, %r3, 255; setp.eq.u32 %p1, %r3, 0;",
      "and.b32 %r3, %r1, -256; add.u32 %r3, %r3, 3; and.b32 %r3, %r3, 255; setp.eq.u32 %p1,%r3,3;",
      "and.b32 %r3, %r1, -256; or.b32 %r3, %r3, 3; setp.eq.u32 %p1, %r3, 4;",
      "setp.ne.u32 %p2, %r1, 5; setp.eq.u32 %p3, %r2, 8; and.pred %p1, %p2, %p3;",
      "setp.ne.u32 %p2, %r2, 7; setp.eq.and.u32 %p1, %r1, 7, %p2;",
      "setp.eq.u32 %p2, %r2, 7; setp.eq.or.u32 %p1, %r1, 7, %p2;",
      "setp.eq.u32 %p2, %r2, 8; selp.u32 %r3, %r1, %r2, %p2; setp.eq.u32 %p1, %r3, 7;",
      "mov.b64 %rd1, {%r2, %r1}; cvt.u32.u64 %r3, %rd1; setp.eq.u32 %p1, %r3, 7;",
      "mov.b32 {%h1, %h2}, %r2; setp.eq.u16 %p1, %h1, 7;",
      "mov.u32 %r1, 3; setp.eq.u32 %p1, %r1, 3;",
      "bfi.b32 %r3, %r2, %r1, 0, 32; setp.eq.u32 %p1, %r3, 7;",
      "lop3.b32 %r3, %r1, %r2, 0, 0xcc; setp.eq.u32 %p1, %r3, 7;",
  };
  for (const char* body : harmless) EXPECT_FALSE(decides(body)) << body;
}

TEST_F(Definedness, AddressesAndIndices) {
  const auto found = findings(R"(
  ld.global.u32 %r1, [%in];
  and.b32 %r1, %r1, 3;
  mad.wide.u32 %rd1, %r1, 4, %base;
  ld.global.u32 %r2, [%rd1];
  st.global.u32 [%out], %t;)",
                              words(0));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("at an address made of a value that nothing has written"));
  EXPECT_EQ(found[0].count, 32u);
}

TEST_F(Definedness, AtomicOperations) {
  // An exchange that returns an undefined value is no fault as long as the value is not used.
  EXPECT_THAT(findings("atom.global.exch.b32 %r1, [%in], 1;", words(0)), IsEmpty());
  EXPECT_THAT(findings("mad.wide.u32 %rd1, %t, 4, %in; atom.global.exch.b32 %r1, [%rd1], %t;"
                       "st.global.u32 [%out], %r1;",
                       words(0xffffffff, 32)),
              IsEmpty());
  auto found = findings(
      "atom.global.exch.b32 %r1, [%in], 1;\n setp.eq.u32 %p1, %r1, 5; @%p1 st.global.u32 [%out], "
      "1;",
      words(0));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].count, 1u) << "the lanes after the first find what it left";
  // Exchanged memory is defined afterwards, in shared memory too.
  EXPECT_THAT(findings("atom.global.exch.b32 %r1, [%in], 9; ld.global.u32 %r2, [%in]; setp.eq.u32 "
                       "%p1, %r2, 9; @%p1 st.global.u32 [%out], 1;",
                       words(0), 1),
              IsEmpty());
  found = findings("atom.shared.exch.b32 %r1, [s], %t;\n st.global.u32 [%out], %r1;", 0, 32,
                   ".shared .align 4 .b8 s[4];\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("the host reads"));
  found = findings("red.global.add.u32 [%in], 1;", words(0), 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("updates 4 bytes"));
  found = findings("ld.global.u32 %r1, [%in];\n red.global.add.u32 [%base], %r1;", words(0), 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("updates memory by a value"));
  found = findings("atom.global.cas.b32 %r1, [%in], 0, 1;", words(0), 1);
  EXPECT_EQ(found.size(), 1u);
}

TEST_F(Definedness, ThroughCallsAndTheirResults) {
  constexpr const char* kFunctions = R"(
.func (.param .align 8 .b8 r[8]) swapped(.param .align 8 .b8 a[8]) {
  .reg .b32 %r<3>; ld.param.v2.b32 {%r1, %r2}, [a]; st.param.v2.b32 [r], {%r2, %r1}; ret; }
)";
  const std::string call = R"(
  ld.global.u32 %r1, [%in]; ld.global.u32 %r2, [%in+4];
  { .param .align 8 .b8 a[8]; .param .align 8 .b8 r[8];
  st.param.b32 [a], %r1; st.param.b32 [a+4], %r2;
  call.uni (r), swapped, (a);
  ld.param.b32 %r3, [r]; ld.param.b32 %r4, [r+4]; }
)";
  EXPECT_THAT(findings(call + "setp.eq.u32 %p1, %r3, 7; @%p1 st.global.u32 [%out], 1;", words(2),
                       32, kFunctions),
              IsEmpty());
  EXPECT_EQ(findings(call + "setp.eq.u32 %p1, %r4, 7; @%p1 st.global.u32 [%out], 1;", words(2), 32,
                     kFunctions)
                .size(),
            1u);
}

TEST_F(Definedness, BarriersAndVotes) {
  EXPECT_EQ(findings("ld.global.u32 %r1, [%in]; setp.eq.u32 %p1, %r1, 1;\n"
                     "bar.red.popc.u32 %r2, 0, %p1;",
                     words(0), 64)
                .size(),
            1u);
  // A ballot has a bit for each lane: lane 3 alone is undefined.
  const std::string ballot =
      "mad.wide.u32 %rd1, %t, 4, %in; ld.global.u32 %r1, [%rd1]; setp.gt.u32 %p1, %r1, 1;\n"
      "vote.sync.ballot.b32 %r2, %p1, -1;";
  const std::uint64_t in = words(~8u, 32);
  EXPECT_THAT(findings(ballot + "and.b32 %r3, %r2, 0xf0; setp.eq.u32 %p2, %r3, 0xf0;"
                                "@%p2 st.global.u32 [%out], 1;",
                       in),
              IsEmpty());
  EXPECT_EQ(findings(ballot + "and.b32 %r3, %r2, 0xff; setp.eq.u32 %p2, %r3, 0xff;"
                              "@%p2 st.global.u32 [%out], 1;",
                     in)
                .size(),
            1u);
}

TEST_F(Definedness, AsynchronousCopies) {
  const std::string copy = R"(
  mov.u32 %r1, s; mad.lo.u32 %r1, %t, 16, %r1; mad.wide.u32 %rd1, %t, 16, %in;
  cp.async.cg.shared.global [%r1], [%rd1], 16;
  cp.async.wait_all;
  ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
)";
  const auto branch = [&](const std::string& on) {
    return findings(copy + "setp.gt.u32 %p1, " + on + ", 3; @%p1 st.global.u32 [%out], 1;",
                    words(0xbbbbbbbb, 32), 8, ".shared .align 16 .b8 s[128];\n");
  };
  EXPECT_THAT(branch("%r2"), IsEmpty());
  EXPECT_EQ(branch("%r4").size(), 1u);
}

// Lanes 4 to 7 have gone; lanes 0 to 3 get what they held, which is not known.
TEST_F(Definedness, ShufflesFromLanesThatTakeNoPart) {
  const auto shuffle = [&](const std::string& offset, const std::string& use) {
    return findings(
        "setp.ge.u32 %p1, %t, 4; @%p1 exit; mov.u32 %r1, %t;"
        "shfl.sync.down.b32 %r2|%p2, %r1, " +
            offset + ", 31, 0xff;" + use,
        words(0xffffffff, 32), 8);
  };
  const std::string decide = "setp.gt.u32 %p3, %r2, 3; @%p3 st.global.u32 [%out], 1;";
  const auto found = shuffle("4", decide);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(shuffle("4", ""), IsEmpty()) << "it decides nothing";
  EXPECT_THAT(shuffle("4", "@%p2 st.global.u32 [%out], 1;"), IsEmpty()) << "it is in range";
  EXPECT_EQ(shuffle("1", decide).size(), 1u) << "lane 3 reads lane 4";
  EXPECT_THAT(shuffle("0", decide), IsEmpty());
  // The warp has undefined values already.
  EXPECT_EQ(shuffle("4",
                    "shfl.sync.down.b32 %r3, %r1, 4, 31, 0xff;"
                    "setp.gt.u32 %p3, %r3, 3; @%p3 st.global.u32 [%out], 1;")
                .size(),
            1u);
}

// What is not read becomes zero.
TEST_F(Definedness, AsynchronousCopiesOfFewerBytes) {
  const auto branch = [&](const std::string& bytes, const std::string& on) {
    const std::string copy = R"(
  mov.u32 %r1, s; mad.lo.u32 %r1, %t, 16, %r1; mad.wide.u32 %rd1, %t, 16, %in;
  mov.u32 %r6, )" + bytes + R"(;
  cp.async.cg.shared.global [%r1], [%rd1], 16, %r6;
  cp.async.wait_all;
  ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
)";
    return findings(copy + "setp.gt.u32 %p1, " + on + ", 3; @%p1 st.global.u32 [%out], 1;",
                    words(0xbbbbbbbb, 32), 8, ".shared .align 16 .b8 s[128];\n");
  };
  EXPECT_THAT(branch("12", "%r2"), IsEmpty());
  EXPECT_EQ(branch("12", "%r4").size(), 1u);
  EXPECT_THAT(branch("12", "%r5"), IsEmpty());
  EXPECT_THAT(branch("8", "%r4"), IsEmpty());
}

// A tile of 16 rows of which 8 were filled: the others do not affect the first 8 rows of the
// product.
TEST_F(Definedness, RowsOfAMatrixProduct) {
  const std::string multiply = R"(
  mov.u32 %r1, s; shl.b32 %r2, %t, 4; add.u32 %r1, %r1, %r2;
  setp.lt.u32 %p1, %t, 8;
  @%p1 st.shared.v4.u32 [%r1], {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
  @%p1 st.shared.v4.u32 [%r1+256], {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
  bar.warp.sync -1;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];
  mov.u32 %r8, 0x3c003c00;
  mov.f32 %f1, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r4, %r5, %r6, %r7},
    {%r8, %r8}, {%f1, %f1, %f1, %f1};
)";
  const auto branch = [&](const std::string& on) {
    return findings(multiply + "setp.eq.f32 %p2, " + on +
                        ", 0f41800000; @%p2 st.global.f32 [%out], " + on + ";",
                    0, 32, ".shared .align 16 .b8 s[512];\n");
  };
  EXPECT_THAT(branch("%f2"), IsEmpty());
  EXPECT_EQ(branch("%f4").size(), 1u);
}

// Undefined values that a store puts into an output are found even where they may be padding.
TEST_F(Definedness, OutputsAreReadStrictly) {
  load_kernel("ld.global.u32 %r1, [%in]; st.global.v2.u32 [%base], {%t, %r1};");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(2));
  EXPECT_THAT(launch(shape(1, 1), "k", out, words(0)).findings, IsEmpty());
  std::vector<std::byte> bytes(8);
  EXPECT_TRUE(device.read(bytes, out));
  EXPECT_THAT(device.take_findings(), IsEmpty());
  EXPECT_TRUE(device.read(bytes, out, true));
  EXPECT_EQ(device.take_findings().size(), 1u);
}

// Divergent lanes and loops: a warp that has met undefined bytes computes the same results as any
// other.
TEST_F(Definedness, ValuesAreTheSameInTheSlowWay) {
  const std::string compute = R"(
  mov.u32 %r2, 0; mov.u32 %r3, %t; mov.f32 %f1, 0f3F800000;
loop:
  and.b32 %r4, %r3, 1;
  setp.eq.u32 %p1, %r4, 0;
  @%p1 bra even;
  mad.lo.u32 %r3, %r3, 3, 1;
  fma.rn.f32 %f1, %f1, 0f3F900000, 0f3F000000;
  bra next;
even:
  shr.u32 %r3, %r3, 1;
  add.f32 %f1, %f1, 0f40000000;
next:
  add.u32 %r2, %r2, 1;
  shfl.sync.bfly.b32 %r5, %r2, 0, 31, %r6;
  setp.gt.u32 %p2, %r3, 1;
  setp.lt.and.u32 %p2, %r2, 60, %p2;
  @%p2 bra loop;
  cvt.rni.u32.f32 %r7, %f1;
  xor.b32 %r2, %r2, %r7;
  st.global.u32 [%out], %r2;)";
  const std::string lane = "mov.u32 %r5, 1; shl.b32 %r6, %r5, %t;\n";
  const std::uint64_t in = words(0);
  load_kernel(lane + compute);
  const auto expected = run();
  const Counters counters = result.counters;
  load_kernel(lane + "ld.global.u32 %r9, [%in];\n" + compute);
  EXPECT_EQ(run(32, in), expected);
  EXPECT_EQ(result.counters.instructions, counters.instructions + 1);
}

}  // namespace
}  // namespace assay::sim
