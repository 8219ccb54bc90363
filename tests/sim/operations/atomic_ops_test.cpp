// atom and red.
#include <bit>

#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class Atomic : public DeviceTest {
 protected:
  // The value of a u32 word at `in` after 32 lanes have executed `body`, which has its address in
  // %in.
  std::uint32_t word_after(std::uint32_t before, const std::string& body) {
    load_kernel(body);
    const std::uint64_t in = upload(std::vector<std::uint32_t>{before, 0, 0, 0});
    old = run(32, in);
    return download<std::uint32_t>(in, 1)[0];
  }
  std::vector<std::uint32_t> old;
};

TEST_F(Atomic, LanesGoInOrder) {
  EXPECT_EQ(word_after(5, "atom.global.add.u32 %r1, [%in], %t;\n st.global.u32 [%out], %r1;"),
            5u + 496);
  EXPECT_EQ(old, each_lane(32, [](std::uint32_t l) { return 5 + l * (l - 1) / 2; }));
  EXPECT_EQ(word_after(0, "atom.exch.b32 %r1, [%in], %t;\n st.global.u32 [%out], %r1;"), 31u);
  EXPECT_EQ(old, each_lane(32, [](std::uint32_t l) { return l == 0 ? 0 : l - 1; }));
}

TEST_F(Atomic, Integers) {
  EXPECT_EQ(word_after(9, "red.global.min.u32 [%in], %t;"), 0u);
  EXPECT_EQ(word_after(9, "red.global.max.u32 [%in], %t;"), 31u);
  EXPECT_EQ(word_after(9, "sub.s32 %r1, 3, %t;\n red.global.min.s32 [%in], %r1;"),
            std::uint32_t(-28));
  EXPECT_EQ(word_after(std::uint32_t(-9), "sub.s32 %r1, 3, %t;\n red.max.s32 [%in], %r1;"), 3u);
  EXPECT_EQ(word_after(0xff, "red.global.and.b32 [%in], 0x3c;"), 0x3cu);
  EXPECT_EQ(word_after(0, "shl.b32 %r1, 1, %t;\n red.relaxed.gpu.global.or.b32 [%in], %r1;"),
            0xffffffffu);
  EXPECT_EQ(word_after(1, "red.global.xor.b32 [%in], %t;"), 1u);
  EXPECT_EQ(word_after(0, "atom.global.inc.u32 %r1, [%in], 4;"), 32u % 5);
  EXPECT_EQ(word_after(2, "atom.global.dec.u32 _, [%in], 4;"), 0u + (2 + 5 * 7 - 32) % 5);
}

TEST_F(Atomic, CompareAndSwap) {
  // A lane stores only if it finds what it expects: each expects its own index.
  EXPECT_EQ(word_after(0, R"(
  add.u32 %r2, %t, 1;
  atom.acq_rel.gpu.global.cas.b32 %r1, [%in], %t, %r2;
  st.global.u32 [%out], %r1;)"),
            32u);
  EXPECT_EQ(word_after(7, "cvt.u16.u32 %h1, %t;\n atom.global.cas.b16 %h2, [%in], %h1, 0x1234;"),
            0x1234u);
}

TEST_F(Atomic, Quads) {
  load_kernel(R"(
  cvt.u64.u32 %rd1, %t;
  mov.b128 %q1, {%rd1, %rd1};
  add.u64 %rd2, %rd1, 1;
  mov.b128 %q2, {%rd2, %rd2};
  atom.global.cas.b128 %q3, [%in], %q1, %q2;
  mov.b128 {%rd3, %rd4}, %q3;
  cvt.u32.u64 %r1, %rd4;
  st.global.u32 [%out], %r1;)");
  const std::uint64_t in = upload(std::vector<std::uint64_t>(2));
  EXPECT_EQ(run(32, in), each_lane(32, [](std::uint32_t l) { return l; }));
  EXPECT_EQ(download<std::uint64_t>(in, 2), (std::vector<std::uint64_t>{32, 32}));
}

TEST_F(Atomic, SharedThroughEveryKindOfAddress) {
  load_kernel(R"(
  .shared .align 8 .b8 s[16];
  mov.u32 %r1, s;
  mov.u64 %rd1, s;
  cvta.shared.u64 %rd2, %rd1;
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.v2.u32 [s], {0, 0};
  bar.sync 0;
  atom.shared.add.u32 %r2, [%r1+4], 1;
  red.shared.add.u32 [%rd1+4], 1;
  atom.add.u32 %r3, [%rd2+4], 1;
  bar.sync 0;
  ld.shared.u32 %r4, [s+4];
  st.global.u32 [%out], %r4;)");
  EXPECT_EQ(run(64), std::vector<std::uint32_t>(64, 192));
}

TEST_F(Atomic, FloatsFlushInGlobalMemoryOnly) {
  const std::uint32_t tiny = 1;  // the smallest subnormal
  EXPECT_EQ(word_after(std::bit_cast<std::uint32_t>(1.f), "red.global.add.f32 [%in], 0f3F000000;"),
            std::bit_cast<std::uint32_t>(17.f));
  EXPECT_EQ(word_after(tiny, "mov.b32 %f1, 0x00000001;\n red.global.add.f32 [%in], %f1;"), 0u);
  load_kernel(R"(
  .shared .align 4 .b8 s[4];
  mov.u32 %r1, 1;
  st.shared.u32 [s], %r1;
  bar.sync 0;
  mov.b32 %f1, %r1;
  red.shared.add.f32 [s], %f1;
  mov.u64 %rd1, s;
  cvta.shared.u64 %rd1, %rd1;
  red.add.f32 [%rd1], %f1;
  bar.sync 0;
  ld.shared.u32 %r2, [s];
  st.global.u32 [%out], %r2;)");
  EXPECT_EQ(run(4), std::vector<std::uint32_t>(4, 9));
}

TEST_F(Atomic, DoublesHalvesAndPairs) {
  load_kernel(R"(
  cvt.rn.f64.u32 %fd1, %t;
  atom.global.add.f64 %fd2, [%in], %fd1;
  add.u64 %rd1, %in, 8;
  mov.b32 %r1, 0x3c004000;
  atom.global.add.noftz.f16x2 %r2, [%rd1], %r1;
  mov.b32 {%h1, %h2}, 0x00003f80;
  red.global.add.noftz.bf16 [%rd1+4], %h1;)");
  const std::uint64_t in = upload(std::vector<std::uint32_t>{0, 0, 0x3c003c00, 0x3f80});
  run(4, in);
  EXPECT_EQ(download<double>(in, 1)[0], 6.0);
  // 1 + 4 * 1 above, 1 + 4 * 2 below.
  EXPECT_EQ(download<std::uint32_t>(in + 8, 1)[0], 0x45004880u);
  EXPECT_EQ(download<std::uint32_t>(in + 12, 1)[0], 0x40a0u);
}

TEST_F(Atomic, Vectors) {
  load_kernel(R"(
  red.global.add.v2.f32 [%in], {0f3F800000, 0f40000000};
  atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%in], {%f9, %f9, 0f3F800000, 0f3F800000};
  st.global.f32 [%out], %f3;)");
  const std::uint64_t in = upload(std::vector<float>{1, 2, 3, 4});
  const auto out = run<float>(4, in);
  EXPECT_EQ(download<float>(in, 4), (std::vector<float>{5, 10, 7, 8}));
  EXPECT_EQ(out, (std::vector<float>{3, 4, 5, 6}));
}

TEST_F(Atomic, FloatsWithoutSuchAnOperationAreRefused) {
  load_kernel("red.global.min.f32 [%in], %f1;");
  EXPECT_THROW(run_faulty(), Unsupported);
}

}  // namespace
}  // namespace assay::sim
