#include "processes/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/error.h"
#include "assay/poison.h"
#include "processes/arena.h"
#include "support/inout_copies.h"

namespace assay::processes {
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
        output_(layout_.output_bytes),
        first_(plan_, views(layout_, nullptr, output_.data())) {
    poison(plan_, layout_, output_.data(), 42);
  }
  std::byte* y() { return output_.data() + layout_.slots[1].offset; }

  CasePlan plan_;
  Layout layout_;
  std::vector<std::byte> output_;
  testing::InoutCopies first_;
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

// Rows of five floats, 2^31 + 8 elements apart, in a buffer with that role.
CasePlan sparse_plan(Role role) {
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 8;
  CasePlan plan;
  plan.buffers = {{.name = "few", .dtype = Dtype::f32, .shape = {3}, .role = role},
                  {.name = "far", .dtype = Dtype::f32, .shape = {2 * kStride + 5}, .role = role}};
  for (std::int64_t r = 0; r < 3; ++r) plan.buffers[1].pieces.push_back({r * kStride, 5});
  return plan;
}

// A sparse output in its own arena.
class SparseOutput : public ::testing::Test {
 protected:
  SparseOutput() { poison(plan_, layout_, arena_.data(), 42); }
  std::string overrun() { return find_overrun(plan_, layout_, arena_.data(), 42); }

  static constexpr std::int64_t kRow = (std::int64_t{1} << 31) + 8;
  CasePlan plan_ = sparse_plan(Role::output);
  Layout layout_ = make_layout(plan_, false);
  Arena arena_{"output", layout_.output_bytes, Arena::Access::worker_writes};
  Windows windows_{layout_, nullptr, arena_.data()};
  float* far_ = views(layout_, nullptr, arena_.data(), nullptr, &windows_)[1].as<float>();
};

TEST_F(SparseOutput, TakesThePagesOfItsPiecesAlone) {
  EXPECT_EQ(layout_.slots[1].bytes, (2 * kRow + 5) * sizeof(float));
  EXPECT_LT(arena_.bytes(), std::size_t{64} << 10);
  EXPECT_GT(layout_.window_bytes(), std::uint64_t{16} << 30);
  for (std::int64_t r = 0; r < 3; ++r) far_[r * kRow] = static_cast<float>(r);
  EXPECT_EQ(far_[2 * kRow], 2);
}

TEST_F(SparseOutput, ItsPiecesMayBeWrittenAndWhatLiesAroundThemMayNot) {
  EXPECT_EQ(find_touched(plan_, layout_, {}, arena_.data(), 42), "");
  std::fill_n(far_ + kRow, 5, 1.0f);
  EXPECT_EQ(overrun(), "");
  EXPECT_EQ(find_touched(plan_, layout_, {}, arena_.data(), 42),
            "far was written at byte 8589934624 although the call had to fail");
  far_[kRow + 5] = 1;
  EXPECT_EQ(overrun(), "wrote around the rows of far, at byte 8589934644");
  poison(plan_, layout_, arena_.data(), 42);
  far_[-1] = 1;
  EXPECT_EQ(overrun(), "wrote around the rows of far, at byte -4");
  poison(plan_, layout_, arena_.data(), 42);
  far_[2 * kRow + 16] = 1;
  EXPECT_EQ(overrun(), "wrote around the rows of far, at byte 17179869312");
}

TEST_F(SparseOutput, WhatNobodyWroteOfItsPiecesBecomesANumber) {
  std::fill_n(far_ + kRow, 5, 1.0f);
  const std::vector<BufferView> all = views(layout_, nullptr, arena_.data(), nullptr, &windows_);
  EXPECT_TRUE(replace_unwritten(plan_, layout_, all, 42));
  EXPECT_TRUE(std::isfinite(far_[4]));
  EXPECT_EQ(far_[kRow + 4], 1);
  EXPECT_TRUE(std::isfinite(far_[2 * kRow]));
  EXPECT_EQ(overrun(), "");
}

TEST_F(SparseOutput, NothingElseCanBeAccessed) {
  volatile float* const between = far_ + kRow / 2;
  EXPECT_DEATH(*between = 1, "");
  volatile float* const behind = far_ + 2 * kRow + 1024;
  EXPECT_DEATH(static_cast<void>(*behind), "");
}

TEST(Layout, AroundThePiecesOfASparseInputStandsPoison) {
  const CasePlan plan = sparse_plan(Role::input);
  const Layout layout = make_layout(plan, false);
  Arena arena("input", layout.input_bytes, Arena::Access::worker_reads);
  poison_gaps(plan, layout, arena.data(), 7);
  const Windows windows(layout, arena.data(), nullptr);
  const auto seen = views(layout, arena.data(), nullptr, nullptr, &windows);
  const auto* far = seen[1].as<float>();
  EXPECT_TRUE(std::isnan(far[5]));
  EXPECT_TRUE(std::isnan(far[-1]));
  EXPECT_EQ(seen[0].as<float>()[0], 0) << "what is not sparse is left alone";
}

TEST(Layout, PiecesSideBySideShareTheirPages) {
  CasePlan plan;
  plan.buffers = {{.name = "x", .shape = {1 << 20}, .role = Role::output}};
  for (std::int64_t r = 0; r < 300; ++r) plan.buffers[0].pieces.push_back({r * 100, 7});
  const Layout layout = make_layout(plan, false);
  EXPECT_EQ(layout.parts.size(), 1u);
  Arena arena("output", layout.output_bytes, Arena::Access::worker_writes);
  const Windows windows(layout, nullptr, arena.data());
  auto* x = views(layout, nullptr, arena.data(), nullptr, &windows)[0].as<float>();
  poison(plan, layout, arena.data(), 1);
  x[150 * 100 + 6] = 0;
  EXPECT_EQ(find_overrun(plan, layout, arena.data(), 1), "");
  x[150 * 100 + 7] = 0;
  EXPECT_THAT(find_overrun(plan, layout, arena.data(), 1), HasSubstr("around the rows of x"));
}

TEST(Layout, ASparseBufferThatCannotBeIsTheChallengesMistake) {
  const auto made = [](auto change, Memory memory = Memory::host) {
    CasePlan plan = sparse_plan(Role::output);
    change(plan);
    return make_layout(plan, false, memory);
  };
  EXPECT_NO_THROW(made([](CasePlan&) {}));
  EXPECT_THROW(made([](CasePlan&) {}, Memory::device), ChallengeError);
  EXPECT_THROW(made([](CasePlan& p) { p.buffers[1].role = Role::inout; }), ChallengeError);
  EXPECT_THROW(made([](CasePlan& p) { p.buffers[1].pieces[1].first = 4; }), ChallengeError);
  EXPECT_THROW(made([](CasePlan& p) { p.buffers[1].pieces[2].count = 6; }), ChallengeError);
  EXPECT_THROW(made([](CasePlan& p) { p.phases = 2; }), ChallengeError);
}

TEST_F(LayoutTest, TellsTouchedFromUntouched) {
  EXPECT_EQ(find_touched(plan_, layout_, first_.views(), output_.data(), 42), "");
  EXPECT_NE(find_touched(plan_, layout_, first_.views(), output_.data(), 43), "");
  y()[19] = std::byte{0};
  EXPECT_THAT(find_touched(plan_, layout_, first_.views(), output_.data(), 42),
              HasSubstr("y was written at byte 19"));
}

TEST_F(LayoutTest, AnInoutThatNobodyKeptCountsAsTouched) {
  EXPECT_EQ(find_touched(plan_, layout_, {}, output_.data(), 42),
            "kv was written at byte 0 although the call had to fail");
}

TEST_F(LayoutTest, WhatNobodyWroteBecomesANumber) {
  const std::vector<BufferView> all = views(layout_, nullptr, output_.data());
  const float canonical = std::nanf("");
  std::memcpy(y() + 8, &canonical, 4);
  EXPECT_FALSE(replace_unwritten(plan_, layout_, all, 43));  // another run's poison
  EXPECT_TRUE(replace_unwritten(plan_, layout_, all, 42));
  const float* const values = all[1].as<float>();
  for (const int i : {0, 1, 3, 4}) {
    EXPECT_TRUE(std::isfinite(values[i]));
    EXPECT_TRUE(is_unwritten(values + i, 4));
  }
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_FALSE(replace_unwritten(plan_, layout_, all, 42));
  EXPECT_EQ(find_overrun(plan_, layout_, output_.data(), 42), "");
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
  const testing::InoutCopies first(plan, seen);
  poison(plan, layout, output.data(), 42, device.data());
  EXPECT_EQ(find_overrun(plan, layout, output.data(), 42, device.data()), "");
  EXPECT_EQ(find_touched(plan, layout, first.views(), output.data(), 42, device.data()), "");
  static_cast<std::byte*>(seen[1].data)[-1] ^= std::byte{1};
  EXPECT_THAT(find_overrun(plan, layout, output.data(), 42, device.data()),
              HasSubstr("before the start of y"));
  static_cast<std::byte*>(seen[1].data)[3] ^= std::byte{1};
  EXPECT_THAT(find_touched(plan, layout, first.views(), output.data(), 42, device.data()),
              HasSubstr("y was written at byte 3"));
}

TEST(Layout, AnInoutOnADeviceIsHeldToWhatItWas) {
  const CasePlan plan = sample_plan(false);
  const Layout layout = make_layout(plan, false, Memory::device);
  std::vector<std::byte> output(layout.output_bytes), device(layout.device_bytes);
  const std::vector<BufferView> seen = views(layout, nullptr, output.data(), device.data());
  const testing::InoutCopies first(plan, seen);
  poison(plan, layout, output.data(), 42, device.data());
  EXPECT_EQ(find_touched(plan, layout, first.views(), output.data(), 42, device.data()), "");
  static_cast<std::byte*>(seen[2].data)[8] ^= std::byte{1};
  EXPECT_EQ(find_touched(plan, layout, first.views(), output.data(), 42, device.data()),
            "kv was written at byte 8 although the call had to fail");
}

TEST(Layout, CallbacksGetRoomOfTheirOwn) {
  const Layout without = make_layout(sample_plan(true), false),
               with = make_layout(sample_plan(true), true);
  EXPECT_GE(with.input_bytes, without.input_bytes + kCallbackPayload);
  EXPECT_GE(with.output_bytes, without.output_bytes + kCallbackPayload);
  EXPECT_GT(with.callback_response_offset, with.slots[0].offset);
}

}  // namespace
}  // namespace assay::processes
