// Tensor maps: what cuTensorMapEncodeTiled takes, and what TMA may read.
#include "sim/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <set>

namespace assay::sim {
namespace {

using Status = TensorMapReply::Status;
using testing::HasSubstr;

// Three dimensions of f32, rows of 100 bytes 112 bytes apart, boxes of 16 x 4 x 2.
TensorMapRequest request() {
  TensorMapRequest r;
  r.element = 7;
  r.rank = 3;
  r.address = 0x2000'0000'0100;
  r.size = {25, 9, 5};
  r.stride_bytes = {112, 1008};
  r.box = {16, 4, 2};
  r.step = {1, 1, 1};
  return r;
}

TensorMapReply after(const std::function<void(TensorMapRequest&)>& change) {
  TensorMapRequest r = request();
  change(r);
  return encode(r);
}
Status status_after(const std::function<void(TensorMapRequest&)>& change) {
  return after(change).status;
}

TEST(TensorMap, HoldsWhatWasAskedFor) {
  const TensorMapReply reply = after([](TensorMapRequest& r) {
    r.step = {3, 2, 1};
    r.box[1] = 5;
  });
  ASSERT_EQ(reply.status, Status::ok);
  const auto map = std::bit_cast<TensorMap>(reply.map);
  EXPECT_TRUE(map.sound());
  EXPECT_EQ(map.address, 0x2000'0000'0100u);
  EXPECT_EQ(map.last[0], 24u);
  EXPECT_EQ(map.row_bytes[1], 1008u);
  EXPECT_EQ(map.element_bytes(), 4u);
  EXPECT_EQ(map.extent(0), 16u) << "the step of dimension 0 is ignored";
  EXPECT_EQ(map.extent(1), 3u);
  EXPECT_EQ(map.box_bytes(), 64u * 3 * 2);
}

// As CUTLASS does after it has made a map.
TEST(TensorMap, AProgramMayChangeABitOfTheSecondWord) {
  TensorMapReply reply = after([](TensorMapRequest& r) { r.address = 0x2000'0023'fb00; });
  const auto before = std::bit_cast<TensorMap>(reply.map);
  auto words = std::bit_cast<std::array<std::uint64_t, 16>>(reply.map);
  for (const std::uint64_t change : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    words[1] = change;
    const auto map = std::bit_cast<TensorMap>(words);
    EXPECT_TRUE(map.sound());
    EXPECT_EQ(map.address, before.address);
    EXPECT_EQ(map.box_bytes(), before.box_bytes());
  }
}

TEST(TensorMap, TakesTheLimitsOfEachRange) {
  const auto takes = [](const std::function<void(TensorMapRequest&)>& change) {
    return status_after(change) == Status::ok;
  };
  EXPECT_TRUE(takes([](auto& r) { r.size[2] = std::uint64_t{1} << 32; }));
  EXPECT_TRUE(takes([](auto& r) { r.stride_bytes[1] = (std::uint64_t{1} << 40) - 16; }));
  EXPECT_TRUE(takes([](auto& r) { r.box = {256, 256, 256}; }));
  EXPECT_TRUE(takes([](auto& r) { r.step[2] = 8; }));
  EXPECT_TRUE(takes([](auto& r) { r.rank = 1; }));
  EXPECT_TRUE(takes([](auto& r) {
    r.rank = 5;
    r.size[3] = r.size[4] = r.box[3] = r.box[4] = r.step[3] = r.step[4] = 1;
    r.stride_bytes[2] = r.stride_bytes[3] = 4096;
  }));
  EXPECT_TRUE(takes([](auto& r) { r.l2_promotion = 3; }));
  EXPECT_TRUE(takes([](auto& r) { r.swizzle = 2; })) << "64 bytes, as wide as a row of the box";
}

TEST(TensorMap, RejectsWhatIsOutOfRange) {
  const auto rejects = [](const std::function<void(TensorMapRequest&)>& change) {
    return status_after(change) == Status::invalid;
  };
  EXPECT_TRUE(rejects([](auto& r) { r.element = 16; }));
  EXPECT_TRUE(rejects([](auto& r) { r.rank = 0; }));
  EXPECT_TRUE(rejects([](auto& r) { r.rank = 6; }));
  EXPECT_TRUE(rejects([](auto& r) { r.interleave = 3; }));
  EXPECT_TRUE(rejects([](auto& r) { r.swizzle = 7; }));
  EXPECT_TRUE(rejects([](auto& r) { r.l2_promotion = 4; }));
  EXPECT_TRUE(rejects([](auto& r) { r.fill = 2; }));
  EXPECT_TRUE(rejects([](auto& r) { r.address += 8; }));
  for (unsigned d = 0; d < 3; ++d) {
    EXPECT_TRUE(rejects([&](auto& r) { r.size[d] = 0; })) << d;
    EXPECT_TRUE(rejects([&](auto& r) { r.size[d] = (std::uint64_t{1} << 32) + 1; })) << d;
    EXPECT_TRUE(rejects([&](auto& r) { r.box[d] = 0; })) << d;
    EXPECT_TRUE(rejects([&](auto& r) { r.box[d] = 260; })) << d;
    if (d == 0) continue;
    EXPECT_TRUE(rejects([&](auto& r) { r.step[d] = 0; })) << d;
    EXPECT_TRUE(rejects([&](auto& r) { r.step[d] = 9; })) << d;
    EXPECT_TRUE(rejects([&](auto& r) { r.stride_bytes[d - 1] += 8; })) << d;
    EXPECT_TRUE(rejects([&](auto& r) { r.stride_bytes[d - 1] = std::uint64_t{1} << 40; })) << d;
  }
  EXPECT_TRUE(rejects([](auto& r) { r.box[0] = 6; })) << "24 bytes";
  EXPECT_TRUE(rejects([](auto& r) { r.swizzle = 1; })) << "64 bytes do not fit into 32";
}

TEST(TensorMap, NamesWhatIsNotSimulated) {
  const auto missing = [](const std::function<void(TensorMapRequest&)>& change) {
    const TensorMapReply reply = after(change);
    EXPECT_EQ(reply.status, Status::unsupported);
    return reply.message;
  };
  EXPECT_THAT(missing([](auto& r) { r.element = 11; }), HasSubstr("of type TFLOAT32"));
  EXPECT_THAT(missing([](auto& r) { r.interleave = 1; }), HasSubstr("interleaved"));
  EXPECT_THAT(missing([](auto& r) { r.swizzle = 4; }), HasSubstr("swizzles"));
  EXPECT_THAT(missing([](auto& r) { r.fill = 1; }), HasSubstr("NaN"));
  EXPECT_THAT(missing([](auto& r) { r.swizzle = 3; }), HasSubstr("narrower"));
}

// Whatever the bytes are, nothing that sound() lets through is out of range.
TEST(TensorMap, SoundMapsAreInRange) {
  const TensorMapBytes good = encode(request()).map;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (unsigned value = 0; value < 256; ++value) {
      TensorMapBytes bytes = good;
      bytes[i] = static_cast<std::byte>(value);
      const auto map = std::bit_cast<TensorMap>(bytes);
      if (!map.sound()) continue;
      ASSERT_LE(map.dimensions, kMostDimensions);
      ASSERT_GE(map.dimensions, 1u);
      ASSERT_GT(map.element_bytes(), 0u);
      ASSERT_GT(map.box_bytes(), 0u);
    }
  }
  EXPECT_FALSE(TensorMap{}.sound());
}

TEST(TensorMap, SwizzlingPermutes) {
  using enum TensorMap::Swizzle;
  for (const auto swizzle : {none, span32, span64, span128}) {
    const std::uint64_t span = 16u << static_cast<unsigned>(swizzle);
    std::set<std::uint64_t> seen;
    for (std::uint64_t at = 0; at < 2 * kSwizzlePeriod; ++at) {
      const std::uint64_t to = swizzled(swizzle, at);
      EXPECT_EQ(to / span, at / span);
      EXPECT_EQ(to % 16, at % 16);
      EXPECT_EQ(swizzled(swizzle, at + kSwizzlePeriod), to + kSwizzlePeriod);
      seen.insert(to);
    }
    EXPECT_EQ(seen.size(), 2 * kSwizzlePeriod);
  }
  // The Programming Guide's pictures: in line y of 128 bytes, the first piece.
  EXPECT_EQ(swizzled(span128, 128), 128u + 16);
  EXPECT_EQ(swizzled(span128, 7 * 128), 7 * 128u + 7 * 16);
  EXPECT_EQ(swizzled(span64, 3 * 128), 3 * 128u + 3 * 16);
  EXPECT_EQ(swizzled(span64, 4 * 128), 4 * 128u);
  EXPECT_EQ(swizzled(span32, 128), 128u + 16);
  EXPECT_EQ(swizzled(span32, 2 * 128), 2 * 128u);
}

}  // namespace
}  // namespace assay::sim
