// ld and st in every space and width, parameters, generic addresses.
#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class LoadStore : public DeviceTest {};

TEST_F(LoadStore, SubWordsExtendToTheRegister) {
  load_kernel(R"(
  cvt.u64.u32 %rd1, %t;
  add.u64 %rd1, %in, %rd1;
  ld.global.s8 %r1, [%rd1];
  ld.global.u8 %r2, [%rd1];
  ld.global.s8 %h1, [%rd1];
  cvt.u32.u16 %r3, %h1;
  ld.global.s8 %rd2, [%rd1];
  shr.u64 %rd2, %rd2, 40;
  cvt.u32.u64 %r4, %rd2;
  xor.b32 %r1, %r1, %r2;
  xor.b32 %r1, %r1, %r3;
  xor.b32 %r1, %r1, %r4;
  st.global.u32 [%out], %r1;)");
  std::vector<std::uint8_t> in(32);
  for (unsigned i = 0; i < 32; ++i) in[i] = static_cast<std::uint8_t>(i * 37);
  EXPECT_EQ(run(32, upload(in)), each_lane(32, [&](std::uint32_t l) {
              const auto s = static_cast<std::int8_t>(in[l]);
              return static_cast<std::uint32_t>(s) ^ in[l] ^ static_cast<std::uint16_t>(s) ^
                     static_cast<std::uint32_t>(static_cast<std::uint64_t>(std::int64_t{s}) >> 40);
            }));
}

TEST_F(LoadStore, Vectors) {
  load_kernel(R"(
  mad.wide.u32 %rd1, %t, 16, %in;
  mad.wide.u32 %rd2, %t, 16, %base;
  ld.global.nc.L1::no_allocate.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];
  st.global.v2.u32 [%rd2], {%r4, %r3};
  mov.b64 %rd3, {%r2, %r1};
  ld.global.v2.u64 {%rd4, %rd5}, [%rd1];
  st.global.cs.v2.b32 [%rd2+8], {%r2, 5};)");
  std::vector<std::uint32_t> in(128);
  for (std::uint32_t i = 0; i < 128; ++i) in[i] = i * i;
  const auto out = run<std::uint32_t>(32, upload(in), 128);
  for (std::uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(out[4 * l], in[4 * l + 3]);
    EXPECT_EQ(out[4 * l + 1], in[4 * l + 2]);
    EXPECT_EQ(out[4 * l + 2], in[4 * l + 1]);
    EXPECT_EQ(out[4 * l + 3], 5u);
  }
}

TEST_F(LoadStore, VectorsOfSubWordsAndQuads) {
  load_kernel(R"(
  mad.wide.u32 %rd1, %t, 16, %in;
  mad.wide.u32 %rd2, %t, 16, %base;
  ld.global.v4.s8 {%r1, %r2, %r3, %r4}, [%rd1];
  ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%rd1+8];
  st.global.v4.u8 [%rd2], {%r4, %r3, %r2, %r1};
  st.global.v2.u16 [%rd2+4], {%h4, %h1};
  ld.global.b128 %q1, [%rd1];
  mov.b128 {%rd3, %rd4}, %q1;
  mov.b128 %q2, {%rd4, %rd3};
  st.global.u64 [%rd2+8], %rd4;)");
  std::vector<std::uint8_t> in(512);
  for (unsigned i = 0; i < 512; ++i) in[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  const auto out = run<std::uint8_t>(32, upload(in), 512);
  for (unsigned l = 0; l < 32; ++l) {
    const auto* i = in.data() + 16 * l;
    const std::vector<std::uint8_t> want{i[3], i[2], i[1],  i[0],  i[14], i[15], i[8],  i[9],
                                         i[8], i[9], i[10], i[11], i[12], i[13], i[14], i[15]};
    EXPECT_EQ(std::vector<std::uint8_t>(out.begin() + 16 * l, out.begin() + 16 * l + 16), want)
        << l;
  }
}

TEST_F(LoadStore, GuardedLoadsKeepOtherLanes) {
  load_kernel(R"(
  mov.u32 %r1, 77;
  mov.u32 %r2, 78;
  and.b32 %r3, %t, 1;
  setp.eq.u32 %p1, %r3, 1;
  mad.wide.u32 %rd1, %t, 8, %in;
  @%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1];
  add.u32 %r1, %r1, %r2;
  @!%p1 st.global.u32 [%out], %r1;
  @%p1 st.global.u32 [%out], %r2;)");
  std::vector<std::uint32_t> in(64);
  for (std::uint32_t i = 0; i < 64; ++i) in[i] = i;
  EXPECT_EQ(run(32, upload(in)),
            each_lane(32, [](std::uint32_t l) { return l % 2 == 1 ? 2 * l + 1 : 155; }));
}

TEST_F(LoadStore, SharedStaticAndDynamic) {
  load(R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<3>;
  .shared .align 4 .b8 fixed[130];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, fixed;
  mov.u32 %r3, dynamic;
  shl.b32 %r4, %r1, 2;
  add.u32 %r5, %r2, %r4;
  add.u32 %r6, %r3, %r4;
  st.shared.u32 [%r5], %r1;
  st.shared.u32 [%r6], %r3;
  bar.sync 0;
  xor.b32 %r4, %r4, 124;
  add.u32 %r5, %r2, %r4;
  ld.shared.u32 %r7, [%r5];
  add.u32 %r6, %r3, %r4;
  ld.volatile.shared.u32 %r8, [%r6];
  add.u32 %r7, %r7, %r8;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  st.global.u32 [%rd1], %r7;
  ret;
})");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(32));
  const LaunchResult r = launch(shape(1, 32, 128), "k", out);
  ASSERT_EQ(r.status, LaunchStatus::ok);
  EXPECT_TRUE(r.findings.empty());
  // The dynamic array begins after the static 130 bytes, aligned to 16.
  EXPECT_EQ(download<std::uint32_t>(out, 32),
            each_lane(32, [](std::uint32_t l) { return (31 - l) + 144; }));
  EXPECT_EQ(device.info(device.kernel(module, "k")).static_shared_bytes, 130u);
  EXPECT_EQ(launch(shape(1, 32, 124), "k", out).status, LaunchStatus::illegal_address);
}

TEST_F(LoadStore, LocalArraysUniformAndNot) {
  load_kernel(R"(
  .local .align 16 .b8 array[64];
  mov.u64 %rd1, array;
  mov.u32 %r1, 0;
fill:
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  mad.lo.u32 %r2, %t, 100, %r1;
  st.local.u32 [%rd2], %r2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra fill;
  and.b32 %r3, %t, 15;
  mad.wide.u32 %rd3, %r3, 4, %rd1;
  ld.local.u32 %r4, [%rd3];
  ld.local.v4.u32 {%r5, %r6, %r7, %r8}, [%rd1+16];
  add.u32 %r5, %r5, %r8;
  ld.local.u64 %rd4, [%rd1+8];
  shr.u64 %rd4, %rd4, 32;
  cvt.u32.u64 %r6, %rd4;
  st.local.u8 [%rd1+1], 0;
  ld.local.u16 %h1, [%rd1];
  cvt.u32.u16 %r7, %h1;
  add.u32 %r4, %r4, %r5;
  add.u32 %r4, %r4, %r6;
  add.u32 %r4, %r4, %r7;
  st.global.u32 [%out], %r4;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) {
              const std::uint32_t a = 100 * l;
              return (a + l % 16) + (a + 4) + (a + 7) + (a + 3) + (a & 0xff);
            }));
}

TEST_F(LoadStore, GenericAddressesOfSeveralSpacesAtOnce) {
  load_kernel(R"(
  .shared .align 4 .b8 s[128];
  .local .align 4 .b8 l[4];
  mov.u64 %rd1, s;
  cvta.shared.u64 %rd1, %rd1;
  mad.wide.u32 %rd1, %t, 4, %rd1;
  mov.u64 %rd2, l;
  cvta.local.u64 %rd2, %rd2;
  and.b32 %r1, %t, 3;
  setp.eq.u32 %p1, %r1, 1;
  setp.eq.u32 %p2, %r1, 2;
  mov.u64 %rd3, %out;
  @%p1 mov.u64 %rd3, %rd1;
  @%p2 mov.u64 %rd3, %rd2;
  st.u32 [%rd3], %t;
  ld.u32 %r2, [%rd3];
  add.u32 %r2, %r2, %r1;
  st.global.u32 [%out], %r2;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l + l % 4; }));
}

TEST_F(LoadStore, KernelParametersOfEveryKind) {
  load(R"(
.visible .entry k(.param .u64 out, .param .u8 a, .param .f32 b, .param .align 8 .b8 c[24]) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<3>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out];
  ld.param.s8 %h1, [a];
  cvt.s32.s16 %r1, %h1;
  ld.param.f32 %f1, [b];
  cvt.rzi.s32.f32 %r2, %f1;
  ld.param.v2.u32 {%r3, %r4}, [c+8];
  mov.b64 %rd2, c;
  ld.param.u32 %r5, [%rd2+20];
  add.s32 %r1, %r1, %r2;
  add.s32 %r1, %r1, %r3;
  add.s32 %r1, %r1, %r4;
  add.s32 %r1, %r1, %r5;
  st.global.u32 [%rd1], %r1;
  ret;
})");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(1));
  struct Struct {
    std::uint32_t v[6];
  };
  ASSERT_EQ(launch(shape(1, 1), "k", out, std::int8_t{-3}, 8.5f, Struct{{0, 0, 100, 200, 0, 1000}})
                .status,
            LaunchStatus::ok);
  EXPECT_EQ(download<std::int32_t>(out, 1)[0], -3 + 8 + 100 + 200 + 1000);
  const KernelInfo& info = device.info(device.kernel(module, "k"));
  EXPECT_EQ(info.param_offset, (std::vector<std::uint32_t>{0, 8, 12, 16}));
  EXPECT_EQ(info.param_bytes, (std::vector<std::uint32_t>{8, 1, 4, 24}));
  EXPECT_EQ(info.params_bytes, 40u);
}

TEST_F(LoadStore, HintsDoNothing) {
  load_kernel(R"(
  prefetch.global.L2 [%out];
  createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;
  st.global.L2::cache_hint.u32 [%out], %t, %rd1;
  ld.global.L1::evict_last.L2::128B.u32 %r1, [%out];
  fence.acq_rel.gpu;
  membar.cta;
  fence.proxy.async;
  nanosleep.u32 100;
  griddepcontrol.wait;
  discard.global.L2 [%base], 128;
  add.u32 %r1, %r1, 1;
  st.global.u32 [%out], %r1;)");
  EXPECT_EQ(run(), each_lane(32, [](std::uint32_t l) { return l + 1; }));
}

}  // namespace
}  // namespace assay::sim
