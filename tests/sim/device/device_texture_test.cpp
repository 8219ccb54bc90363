// tex: what it reads, counts and refuses. Objects are written by hand, as the runtime writes them.
#include <fmt/format.h>

#include <array>
#include <bit>

#include "sim/device/device_fixture.h"
#include "sim/texture.h"

namespace assay::sim {
namespace {

using Element = TextureDescriptor::Element;
using Edge = TextureDescriptor::Edge;

class Texture : public DeviceTest {
 protected:
  // A texture of rows of texels, and a kernel whose thread t fetches with the coordinates that are
  // in %f1, %f2, %f3 or %r1, and stores the channels x to w, 32 threads apart.
  template <class T>
  std::uint64_t object(TextureDescriptor t, const std::vector<T>& texels) {
    texels_ = upload(texels);
    t.address = texels_;
    t.row_bytes = std::uint64_t{t.size[0]} * t.texel_bytes();
    t.slice_bytes = t.row_bytes * t.size[1];
    return upload(std::vector<TextureDescriptor>{t});
  }
  void load_fetch(const std::string& coordinates, const std::string& instruction,
                  const std::string& type) {
    const std::string v = type == "f32" ? "%f1" : "%r1";
    std::string stores;
    for (int c = 0; c < 4; ++c) {
      stores += fmt::format("  st.global.{} [%out + {}], {}{};\n", type, 128 * c, v, c);
    }
    load_kernel(fmt::format("{}  tex.{} {{{v}0, {v}1, {v}2, {v}3}}, [%in, {}];\n{}", coordinates,
                            instruction, place_, stores, fmt::arg("v", v)));
  }
  // By channel, then lane.
  template <class T>
  std::vector<T> fetch(std::uint64_t texture) {
    return run<T>(32, texture, 128);
  }

  std::string place_;
  std::uint64_t texels_ = 0;
};

// Thread t: t in %r1, and %f1 = t, %f2 = t / 8 rounded down.
const char* const kByThread = R"(
  mov.u32 %r1, %t;
  cvt.rn.f32.u32 %f1, %t;
  shr.u32 %r2, %t, 3;
  cvt.rn.f32.u32 %f2, %r2;
)";

TEST_F(Texture, FetchesByNumber) {
  std::vector<float> texels(20);
  for (std::size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<float>(i) + 0.5f;
  TextureDescriptor t;
  t.size = {20, 1, 1};
  t.edges.fill(Edge::border);
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.f32.s32", "f32");
  const auto out = fetch<float>(object(t, texels));
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane < 20 ? texels[lane] : 0.0f) << lane;
    EXPECT_EQ(out[32 + lane], 0.0f) << "the texture has one channel";
  }
  EXPECT_EQ(result.counters.global_load_bytes, 20u * 4);
  EXPECT_EQ(result.counters.global_load_sectors, 3u) << "80 bytes";
}

TEST_F(Texture, ChannelsAreExtendedByTheirType) {
  std::vector<std::int8_t> texels(32 * 4);
  for (std::size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<std::int8_t>(7 * i);
  TextureDescriptor t;
  t.size = {32, 1, 1};
  t.channels = 4;
  t.channel_bits = 8;
  place_ = "{%r1}";
  for (const Element element : {Element::is_signed, Element::is_unsigned}) {
    t.element = element;
    load_fetch(kByThread, element == Element::is_signed ? "1d.v4.s32.s32" : "1d.v4.u32.s32", "u32");
    const auto out = fetch<std::uint32_t>(object(t, texels));
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t c = 0; c < 4; ++c) {
        const std::int8_t texel = texels[4 * lane + c];
        const auto expected = element == Element::is_signed
                                  ? static_cast<std::uint32_t>(std::int32_t{texel})
                                  : std::uint32_t{static_cast<std::uint8_t>(texel)};
        ASSERT_EQ(out[32 * c + lane], expected) << lane << " " << c;
      }
    }
  }
}

TEST_F(Texture, IntegersReadAsFractions) {
  const std::vector<std::uint8_t> bytes{0, 51, 255, 128};
  const std::vector<std::int16_t> words{0, 32767, -32767, -32768};
  TextureDescriptor t;
  t.size = {4, 1, 1};
  t.as_float = true;
  t.element = Element::is_unsigned;
  t.channel_bits = 8;
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.f32.s32", "f32");
  auto out = fetch<float>(object(t, bytes));
  EXPECT_THAT(std::vector(out.begin(), out.begin() + 4),
              testing::ElementsAre(0.0f, 0.2f, 1.0f, 128.0f / 255));
  t.element = Element::is_signed;
  t.channel_bits = 16;
  out = fetch<float>(object(t, words));
  EXPECT_THAT(std::vector(out.begin(), out.begin() + 4),
              testing::ElementsAre(0.0f, 1.0f, -1.0f, -1.0f));
}

TEST_F(Texture, HalvesReadAsFloats) {
  const std::vector<std::uint16_t> texels{0x3c00, 0xc000, 0x0001, 0x7c00};  // 1, -2, 2^-24, inf
  TextureDescriptor t;
  t.size = {4, 1, 1};
  t.channel_bits = 16;
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.f32.s32", "f32");
  const auto out = fetch<float>(object(t, texels));
  EXPECT_THAT(std::vector(out.begin(), out.begin() + 4),
              testing::ElementsAre(1.0f, -2.0f, 0x1p-24f, std::numeric_limits<float>::infinity()));
}

TEST_F(Texture, RowsAndSlices) {
  std::vector<float> texels(8 * 4 * 2);
  for (std::size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<float>(i);
  TextureDescriptor t;
  t.size = {8, 4, 2};
  t.dimensions = 3;
  t.edges.fill(Edge::clamp);
  place_ = "{%f3, %f2, %f4, %f4}";
  // Thread t: texel (t % 8, t / 8, 1).
  load_fetch(std::string(kByThread) + R"(
  and.b32 %r3, %t, 7;
  cvt.rn.f32.u32 %f3, %r3;
  mov.f32 %f4, 0f3F800000;
)",
             "3d.v4.f32.f32", "f32");
  const auto out = fetch<float>(object(t, texels));
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], 32.0f + lane);
}

// Bilinear filtering of a plane gives the plane.
TEST_F(Texture, LinearFiltering) {
  std::vector<float> texels(8 * 4);
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < 8; ++x)
      texels[8 * y + x] = 16 * static_cast<float>(x) + 256 * static_cast<float>(y);
  }
  TextureDescriptor t;
  t.size = {8, 4, 1};
  t.dimensions = 2;
  t.linear = true;
  t.edges.fill(Edge::clamp);
  place_ = "{%f3, %f4}";
  // Thread t: x = 0.5 + t / 16 * 3, y = 0.5 + t / 16.
  load_fetch(std::string(kByThread) + R"(
  fma.rn.f32 %f3, %f1, 0f3E400000, 0f3F000000;
  fma.rn.f32 %f4, %f1, 0f3D800000, 0f3F000000;
)",
             "2d.v4.f32.f32", "f32");
  const auto out = fetch<float>(object(t, texels));
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const float at = static_cast<float>(lane) / 16;
    EXPECT_EQ(out[lane], 16 * 3 * at + 256 * at) << lane;
  }
}

TEST_F(Texture, ThreadsOfAWarpMayHaveTexturesOfTheirOwn) {
  const std::vector<float> texels(32, 5.0f), others(32, 6.0f);
  TextureDescriptor t;
  t.size = {32, 1, 1};
  const std::uint64_t first = object(t, texels), second = object(t, others);
  place_ = "{%r1}";
  load_fetch(std::string(kByThread) + R"(
  and.b32 %r3, %t, 1;
  setp.eq.u32 %p1, %r3, 1;
  @%p1 mov.u64 %in, )" +
                 std::to_string(second) + ";\n",
             "1d.v4.f32.s32", "f32");
  const auto out = fetch<float>(first);
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane % 2 == 0 ? 5.0f : 6.0f);
}

class Faulty : public Texture {
 protected:
  Finding fault(std::uint64_t texture) {
    const std::uint64_t out = upload(std::vector<float>(128));
    const LaunchResult r = launch(shape(1, 32), "k", out, texture);
    EXPECT_NE(r.status, LaunchStatus::ok);
    EXPECT_EQ(r.findings.size(), 1u);
    return r.findings.empty() ? Finding{} : r.findings.front();
  }
};

TEST_F(Faulty, WhatIsNoObjectEndsTheLaunch) {
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.f32.s32", "f32");
  EXPECT_THAT(fault(0).text, testing::HasSubstr("no texture object"));
  EXPECT_THAT(fault(upload(std::vector<float>(32, 1.0f))).text,
              testing::HasSubstr("no texture object"));
}

// A program can write whatever it likes where its handle points.
TEST_F(Faulty, AForgedObjectEndsTheLaunch) {
  const std::vector<float> texels(32);
  TextureDescriptor good;
  good.size = {32, 1, 1};
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.f32.s32", "f32");
  const auto forged = [&](auto&& change) {
    TextureDescriptor t = good;
    change(t);
    return t;
  };
  const std::vector<TextureDescriptor> all{
      forged([](auto& t) { t.channels = 0; }),
      forged([](auto& t) { t.channels = 200; }),
      forged([](auto& t) { t.channel_bits = 255; }),
      forged([](auto& t) { t.channel_bits = 8; }),
      forged([](auto& t) { t.element = static_cast<Element>(3); }),
      forged([](auto& t) { t.size[0] = 0; }),
      forged([](auto& t) { t.size[2] = 0; }),
      forged([](auto& t) { t.edges[0] = static_cast<Edge>(4); }),
      forged([](auto& t) { t.linear = 2; }),
      forged([](auto& t) { t.normalized = 2; }),
      forged([](auto& t) { t.as_float = 2; }),
      forged([](auto& t) { t.element = Element::is_signed, t.linear = 1; }),
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_THAT(fault(object(all[i], texels)).text, testing::HasSubstr("no texture object")) << i;
}

TEST_F(Faulty, AnotherTypeOrDimension) {
  const std::vector<float> texels(32);
  TextureDescriptor t;
  t.size = {32, 1, 1};
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.u32.s32", "u32");
  EXPECT_THAT(fault(object(t, texels)).text, testing::HasSubstr("another type"));
  place_ = "{%f1, %f2}";
  load_fetch(kByThread, "2d.v4.f32.f32", "f32");
  EXPECT_THAT(fault(object(t, texels)).text, testing::HasSubstr("another dimension"));
}

// As for any load: an object may outlive its memory.
TEST_F(Faulty, TexelsThatAreFreed) {
  const std::vector<float> texels(32);
  TextureDescriptor t;
  t.size = {32, 1, 1};
  const std::uint64_t handle = object(t, texels);
  EXPECT_TRUE(device.free(texels_));
  place_ = "{%r1}";
  load_fetch(kByThread, "1d.v4.f32.s32", "f32");
  EXPECT_EQ(fault(handle).kind, FindingKind::use_after_free);
}

TEST_F(Texture, AnUndefinedCoordinateIsAFinding) {
  const std::vector<float> texels(32);
  TextureDescriptor t;
  t.size = {32, 1, 1};
  const std::uint64_t handle = object(t, texels), nothing = device.allocate(128);
  place_ = "{%r3}";
  load_fetch("  ld.global.u32 %r3, [" + std::to_string(nothing) + "];\n", "1d.v4.f32.s32", "f32");
  const std::uint64_t out = upload(std::vector<float>(128));
  const LaunchResult r = launch(shape(1, 32), "k", out, handle);
  EXPECT_THAT(kinds(r), testing::Contains(FindingKind::uninitialised));
}

TEST_F(Texture, TexelsThatNothingWroteAreUndefined) {
  TextureDescriptor t;
  t.size = {32, 1, 1};
  t.address = device.allocate(128);
  const std::uint64_t handle = upload(std::vector<TextureDescriptor>{t});
  place_ = "{%r1}";
  load_fetch(std::string(kByThread), "1d.v4.f32.s32", "f32");
  const std::uint64_t out = upload(std::vector<float>(128));
  const LaunchResult r = launch(shape(1, 32), "k", out, handle);
  EXPECT_EQ(r.status, LaunchStatus::ok);
  std::vector<float> values(32);
  device.read(std::as_writable_bytes(std::span(values)), out);
  EXPECT_THAT(device.take_findings(), testing::Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace assay::sim
