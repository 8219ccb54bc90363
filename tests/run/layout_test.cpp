#include "run/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace assay::run {
namespace {

using ::testing::HasSubstr;

CasePlan sample_plan(bool aligned) {
  CasePlan plan;
  plan.aligned = aligned;
  plan.buffers = {{"x", Dtype::f32, {7}, Role::input},
                  {"y", Dtype::f32, {5}, Role::output},
                  {"kv", Dtype::u8, {9}, Role::inout},
                  {.name = "none", .shape = {3}, .role = Role::output, .null = true}};
  return plan;
}

class LayoutTest : public ::testing::Test {
 protected:
  LayoutTest()
      : plan_(sample_plan(false)),
        layout_(make_layout(plan_, false)),
        output_(layout_.output_bytes) {
    poison(plan_, layout_, output_.data(), 42);
  }
  std::byte* y() { return output_.data() + layout_.slots[1].offset; }

  CasePlan plan_;
  Layout layout_;
  std::vector<std::byte> output_;
};

TEST_F(LayoutTest, PoisonIsNanInEveryFormatAndNoIndex) {
  for (int i = 0; i < 5; ++i) {
    float f;
    std::int32_t n;
    std::memcpy(&f, y() + 4 * i, 4);
    std::memcpy(&n, y() + 4 * i, 4);
    EXPECT_TRUE(std::isnan(f));
    EXPECT_LT(n, -1);
    EXPECT_TRUE(std::isnan(bf16_to_float(static_cast<std::uint16_t>(n))));
  }
  double d;
  std::memcpy(&d, y() + (8 - layout_.slots[1].offset % 8), 8);
  EXPECT_TRUE(std::isnan(d));
}

TEST_F(LayoutTest, FindsOverrunsOnBothSides) {
  EXPECT_EQ(find_overrun(plan_, layout_, output_.data(), 42), "");
  y()[20] ^= std::byte{1};
  EXPECT_THAT(find_overrun(plan_, layout_, output_.data(), 42), HasSubstr("past the end of y"));
  y()[20] ^= std::byte{1};
  y()[-3] ^= std::byte{1};
  EXPECT_EQ(find_overrun(plan_, layout_, output_.data(), 42),
            "wrote 3 bytes before the start of y");
}

TEST(Layout, WhatWasNotAskedForIsNotToBeWritten) {
  CasePlan plan;
  plan.buffers = {
      {.name = "cache", .dtype = Dtype::u8, .shape = {64}, .role = Role::output, .sized_by = 1},
      {.name = "asked", .dtype = Dtype::i64, .shape = {1}, .role = Role::output}};
  const auto found = [&](std::int64_t asked, std::size_t written) {
    const Layout layout = make_layout(plan, false);
    std::vector<std::byte> output(layout.output_bytes);
    poison(plan, layout, output.data(), 42);
    std::memcpy(output.data() + layout.slots[1].offset, &asked, sizeof asked);
    std::memset(output.data() + layout.slots[0].offset, 0, written);
    return find_overrun(plan, layout, output.data(), 42);
  };
  EXPECT_EQ(found(16, 16), "");
  EXPECT_EQ(found(16, 20), "wrote byte 16 of cache, for which it had asked for 16");
  EXPECT_EQ(found(64, 64), "");
  EXPECT_EQ(found(64, 65), "wrote 1 bytes past the end of cache");
  EXPECT_EQ(found(1000, 64), "") << "more than there is";
  EXPECT_EQ(found(0, 1), "wrote byte 0 of cache, for which it had asked for 0");
  plan.buffers[1].null = true;
  const Layout layout = make_layout(plan, false);
  std::vector<std::byte> output(layout.output_bytes);
  poison(plan, layout, output.data(), 42);
  std::memset(output.data() + layout.slots[0].offset, 0, 64);
  EXPECT_EQ(find_overrun(plan, layout, output.data(), 42), "") << "no size was asked for";
}

TEST_F(LayoutTest, TellsTouchedFromUntouched) {
  EXPECT_EQ(find_touched(plan_, layout_, output_.data(), 42), "");
  EXPECT_NE(find_touched(plan_, layout_, output_.data(), 43), "");
  y()[19] = std::byte{0};
  EXPECT_THAT(find_touched(plan_, layout_, output_.data(), 42),
              HasSubstr("y was written at byte 19"));
}

TEST(Layout, BasesAreMisalignedUnlessAskedFor) {
  const Layout odd = make_layout(sample_plan(false), false),
               even = make_layout(sample_plan(true), false);
  EXPECT_EQ(odd.slots[0].offset % 256, 4u);
  EXPECT_EQ(odd.slots[2].offset % 256, 1u);
  EXPECT_EQ(even.slots[0].offset % 256, 0u);
  EXPECT_EQ(even.slots[3].null, 1u);
  EXPECT_EQ(views(even, nullptr, nullptr)[3].bytes, 0u);
}

TEST(Layout, ADevicesBuffersHaveAnArenaOfTheirOwn) {
  CasePlan plan = sample_plan(false);
  plan.keep_on_host({"kv", "unknown"});
  const Layout layout = make_layout(plan, false, Memory::device), host = make_layout(plan, false);
  EXPECT_EQ(layout.on_device, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(host.on_device, std::vector<bool>(4, false));
  EXPECT_EQ(host.device_bytes, 0u);
  EXPECT_LT(layout.input_bytes, host.input_bytes);
  std::vector<std::byte> output(layout.output_bytes), device(layout.device_bytes);
  const std::vector<BufferView> seen = views(layout, nullptr, output.data(), device.data());
  EXPECT_EQ(seen[0].data, device.data() + layout.slots[0].offset);
  EXPECT_EQ(seen[2].data, output.data() + layout.slots[2].offset);
  EXPECT_EQ(layout.slots[1].offset % 256, 4u);
  EXPECT_EQ(layout.slots[2].offset % 256, 1u);
  const Layout all = make_layout(sample_plan(false), false, Memory::device);
  EXPECT_EQ(all.slots[2].offset % 256, 0u) << "bytes on a device are storage";
  poison(plan, layout, output.data(), 42, device.data());
  EXPECT_EQ(find_overrun(plan, layout, output.data(), 42, device.data()), "");
  EXPECT_EQ(find_touched(plan, layout, output.data(), 42, device.data()), "");
  static_cast<std::byte*>(seen[1].data)[-1] ^= std::byte{1};
  EXPECT_THAT(find_overrun(plan, layout, output.data(), 42, device.data()),
              HasSubstr("before the start of y"));
  static_cast<std::byte*>(seen[1].data)[3] ^= std::byte{1};
  EXPECT_THAT(find_touched(plan, layout, output.data(), 42, device.data()),
              HasSubstr("y was written at byte 3"));
}

TEST(Layout, CallbacksGetRoomOfTheirOwn) {
  const Layout without = make_layout(sample_plan(true), false),
               with = make_layout(sample_plan(true), true);
  EXPECT_GE(with.input_bytes, without.input_bytes + kCallbackPayload);
  EXPECT_GE(with.output_bytes, without.output_bytes + kCallbackPayload);
  EXPECT_GT(with.callback_response_offset, with.slots[0].offset);
}

}  // namespace
}  // namespace assay::run
