#include "sim/runtime/fat_binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/runtime/fat_binary_bytes.h"

namespace assay::sim {
namespace {

using testing::HasSubstr;

std::string message_of(std::span<const std::byte> bytes, std::uint32_t newest = 90) {
  try {
    find_ptx(bytes, newest);
  } catch (const FatBinaryError& e) {
    return e.what();
  }
  return "";
}

TEST(FatBinary, FindsThePtxWithoutItsPadding) {
  FatBinaryBytes fat;
  fat.add(1, 80, ".version 9.0");
  const PtxImage image = find_ptx(fat.bytes, 90);
  EXPECT_EQ(image.text, ".version 9.0");
  EXPECT_EQ(image.architecture, 80u);
}

TEST(FatBinary, TakesTheHighestArchitectureThatTheDeviceHas) {
  FatBinaryBytes fat;
  fat.add(1, 80, "eighty")
      .add(2, 90, "machine code")
      .add(1, 90, "ninety")
      .add(1, 100, "hundred")
      .add(1, 75, "t");
  EXPECT_EQ(find_ptx(fat.bytes, 90).text, "ninety");
  EXPECT_EQ(find_ptx(fat.bytes, 89).text, "eighty");
  EXPECT_EQ(find_ptx(fat.bytes, 120).text, "hundred");
}

TEST(FatBinary, SaysHowToCompileWhatItCannotUse) {
  FatBinaryBytes newer, machine_code, lz4, zstd;
  newer.add(1, 100, "x");
  machine_code.add(2, 90, "x");
  lz4.add(1, 80, "x", 0x2011);
  zstd.add(1, 80, "x", 0x8011);
  EXPECT_THAT(message_of(newer.bytes), HasSubstr("compute_100 and later only"));
  EXPECT_THAT(message_of(newer.bytes), HasSubstr("-arch=compute_80"));
  EXPECT_THAT(message_of(machine_code.bytes), HasSubstr("has no PTX"));
  EXPECT_THAT(message_of(lz4.bytes), HasSubstr("--no-compress"));
  EXPECT_THAT(message_of(zstd.bytes), HasSubstr("--no-compress"));
}

TEST(FatBinary, CompressedEntriesThatAreNotChosenDoNotMatter) {
  FatBinaryBytes fat;
  fat.add(1, 75, "x", 0x2011).add(1, 80, "eighty");
  EXPECT_EQ(find_ptx(fat.bytes, 90).text, "eighty");
}

TEST(FatBinary, EveryTruncationIsNamed) {
  FatBinaryBytes fat;
  fat.add(1, 80, ".version 9.0").add(1, 90, ".version 9.0");
  for (std::size_t size = 0; size < fat.bytes.size(); ++size) {
    const std::vector<std::byte> part(fat.bytes.begin(),
                                      fat.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(message_of(part), "") << size;
  }
}

// The container's size is consistent, but an entry claims more bytes than there are.
TEST(FatBinary, EntriesThatLieAboutTheirSize) {
  for (const std::uint64_t payload :
       {std::uint64_t{16}, ~std::uint64_t{0}, ~std::uint64_t{0} - 63}) {
    FatBinaryBytes fat;
    fat.add(1, 80, "text");
    fat.put(16 + 8, payload);
    EXPECT_THAT(message_of(fat.bytes), HasSubstr("longer")) << payload;
  }
  for (const std::uint32_t header : {0u, 1u, 47u, 5000u, ~0u}) {
    FatBinaryBytes fat;
    fat.add(1, 80, "text");
    fat.put(16 + 4, header);
    EXPECT_THAT(message_of(fat.bytes), HasSubstr("longer")) << header;
  }
}

TEST(FatBinary, ContainersThatLieAboutTheirSize) {
  for (const std::uint64_t payload :
       {std::uint64_t{4096}, ~std::uint64_t{0}, ~std::uint64_t{0} - 15}) {
    FatBinaryBytes fat;
    fat.add(1, 80, "text");
    fat.put(8, payload);
    EXPECT_THAT(message_of(fat.bytes), HasSubstr("cut off")) << payload;
  }
  FatBinaryBytes no_magic;
  no_magic.add(1, 80, "text");
  no_magic.put(0, std::uint32_t{0});
  EXPECT_THAT(message_of(no_magic.bytes), HasSubstr("magic"));
  FatBinaryBytes empty;
  EXPECT_THAT(message_of(empty.bytes), HasSubstr("has no PTX"));
}

// With any byte changed there is a result or an error, and no access outside the bytes.
TEST(FatBinary, SurvivesEveryChangedByte) {
  FatBinaryBytes fat;
  fat.add(1, 80, "text").add(1, 90, "other");
  for (std::size_t at = 0; at < fat.bytes.size(); ++at) {
    for (const int value : {0x00, 0x7f, 0xff}) {
      auto bytes = fat.bytes;
      bytes[at] = static_cast<std::byte>(value);
      try {
        const PtxImage image = find_ptx(bytes, 90);
        const auto* begin = reinterpret_cast<const char*>(bytes.data());
        EXPECT_GE(image.text.data(), begin);
        EXPECT_LE(image.text.data() + image.text.size(), begin + bytes.size());
      } catch (const FatBinaryError&) {
      }
    }
  }
}

TEST(FatBinary, TheContainerOfAWrapper) {
  FatBinaryBytes fat;
  fat.add(1, 80, "text");
  FatBinaryWrapper wrapper;
  wrapper.data = fat.bytes.data();
  EXPECT_EQ(container_of(&wrapper).size(), fat.bytes.size());
  wrapper.magic = 1;
  EXPECT_THROW(container_of(&wrapper), FatBinaryError);
  EXPECT_THROW(container_of(nullptr), FatBinaryError);
  wrapper = {};
  EXPECT_THROW(container_of(&wrapper), FatBinaryError);
}

}  // namespace
}  // namespace assay::sim
