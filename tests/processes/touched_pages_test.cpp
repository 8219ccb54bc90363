#include "processes/touched_pages.h"

#include <gtest/gtest.h>

namespace assay::processes {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

TEST(BytesOfPages, CountsEachPageOnce) {
  EXPECT_EQ(bytes_of_pages({}), 0);
  EXPECT_EQ(bytes_of_pages({{5, 5}}), 0) << "an empty range touches nothing";
  EXPECT_EQ(bytes_of_pages({{4095, 4096}}), kPageBytes);
  EXPECT_EQ(bytes_of_pages({{4095, 4097}}), 2 * kPageBytes);
  EXPECT_EQ(bytes_of_pages({{8000, 9000}, {0, 10}, {20, 30}}), 3 * kPageBytes);
  EXPECT_EQ(bytes_of_pages({{0, 20000}, {5000, 6000}}), 5 * kPageBytes);
}

class BytesOfCase : public ::testing::Test {
 protected:
  BytesOfCase() {
    plan_.params.resize(64);
    layout_.params_offset = 1000;
  }
  void add(wire::BufferSlot slot, bool on_device = false) {
    layout_.slots.push_back(slot);
    layout_.on_device.push_back(on_device);
  }

  CasePlan plan_;
  Layout layout_;
};

TEST_F(BytesOfCase, HeaderAndParametersAreInTheInputArena) {
  EXPECT_EQ(bytes_of_case(plan_, layout_), kPageBytes);
}

TEST_F(BytesOfCase, InputsAndOutputsAreInArenasOfTheirOwn) {
  add({.offset = 2048, .bytes = 100});
  EXPECT_EQ(bytes_of_case(plan_, layout_), kPageBytes) << "on the header's page";
  add({.offset = 2048, .bytes = 100, .in_output = 1});
  EXPECT_EQ(bytes_of_case(plan_, layout_), 2 * kPageBytes);
}

TEST_F(BytesOfCase, WhatIsNullOrOnTheDeviceIsNotTouched) {
  add({.offset = 1 << 20, .bytes = 1 << 20, .null = 1});
  add({.offset = 1 << 20, .bytes = 1 << 20}, true);
  EXPECT_EQ(bytes_of_case(plan_, layout_), kPageBytes);
}

TEST_F(BytesOfCase, OfASparseBufferThePartsCount) {
  layout_.windows = {{.bytes = 1 << 20, .first_part = 0, .parts = 1},
                     {.bytes = 1 << 30, .first_part = 1, .parts = 2}};
  layout_.parts = {{.at = 0, .offset = 1 << 20, .bytes = 4 * kPageBytes},
                   {.at = 0, .offset = 2 << 20, .bytes = kPageBytes},
                   {.at = 1 << 29, .offset = 3 << 20, .bytes = kPageBytes}};
  add({.bytes = 1 << 30, .window = 2});
  EXPECT_EQ(bytes_of_case(plan_, layout_), 3 * kPageBytes);
}

TEST(BytesOfCallback, RequestAndResponseAreInArenasOfTheirOwn) {
  EXPECT_EQ(bytes_of_callback({0, 10}, {0, 10}), 2 * kPageBytes);
  EXPECT_EQ(bytes_of_callback({0, 0}, {4000, 5000}), 2 * kPageBytes);
}

}  // namespace
}  // namespace assay::processes
