#include "util/reserved_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace assay {
namespace {

// More than any machine has, of which only two pages are used.
TEST(ReservedMemory, IsAsWideAsAsked) {
  constexpr std::size_t kWide = std::size_t{1} << 42;
  ReservedMemory memory(kWide);
  ASSERT_EQ(memory.bytes(), kWide);
  EXPECT_EQ(memory.data()[kWide - 1], std::byte{0});
  memory.data()[0] = memory.data()[kWide - 1] = std::byte{7};
  const ReservedMemory moved = std::move(memory);
  EXPECT_EQ(moved.data()[0], std::byte{7});
  EXPECT_EQ(moved.data()[kWide - 1], std::byte{7});
}

TEST(ReservedMemory, NothingNeedsNothing) {
  EXPECT_EQ(ReservedMemory(0).data(), nullptr);
  EXPECT_EQ(ReservedMemory().bytes(), 0u);
}

TEST(ReservedMemory, WhatCannotBeHadIsNoMemory) {
  EXPECT_THROW(ReservedMemory(SIZE_MAX / 2), std::bad_alloc);
}

}  // namespace
}  // namespace assay
