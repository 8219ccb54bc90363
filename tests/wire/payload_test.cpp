#include "wire/payload.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace assay::wire {
namespace {

using Window = std::array<std::byte, 16>;

TEST(Payload, WhatIsWrittenIsRead) {
  Window window{};
  PayloadWriter out(window);
  out.value(std::uint32_t{7});
  out.text("abc");
  out.value(std::uint64_t{1} << 40);
  ASSERT_EQ(out.size(), 15u);
  PayloadReader in(window, out.size());
  EXPECT_EQ(in.value<std::uint32_t>(), 7u);
  EXPECT_EQ(in.text(3), "abc");
  EXPECT_EQ(in.value<std::uint64_t>(), std::uint64_t{1} << 40);
}

TEST(Payload, AWriterStopsWhereTheWindowEnds) {
  std::array<std::byte, 17> memory{};
  const std::span<std::byte> all(memory);
  PayloadWriter out(all.first(16));
  out.text("0123456789");
  out.text("abcdefghij");
  out.text("more");
  EXPECT_EQ(out.size(), 16u);
  EXPECT_EQ(memory[15], std::byte{'f'});
  EXPECT_EQ(memory[16], std::byte{0});
}

TEST(Payload, AReaderSeesNothingBehindWhatWasSent) {
  Window window;
  window.fill(std::byte{'x'});
  PayloadReader in(window, 6);
  EXPECT_EQ(in.text(4), "xxxx");
  EXPECT_EQ(in.value<std::uint64_t>(), 0u) << "two bytes are no value";
  EXPECT_EQ(in.text(100), "") << "and they are gone";
}

TEST(Payload, LengthsAreNotBelieved) {
  Window window;
  window.fill(std::byte{'x'});
  EXPECT_EQ(PayloadReader(window, SIZE_MAX).text(SIZE_MAX), std::string(16, 'x'));
}

}  // namespace
}  // namespace assay::wire
