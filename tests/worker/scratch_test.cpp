#include "worker/scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace assay::worker {
namespace {

constexpr std::size_t kCapacity = 1 << 20;

class ScratchTest : public ::testing::Test {
 protected:
  ScratchTest() { scratch_.guard(true); }
  std::byte* block(std::size_t bytes, std::size_t align = 64) {
    return static_cast<std::byte*>(scratch_.allocate(bytes, align));
  }

  Scratch scratch_{kCapacity};
};

TEST_F(ScratchTest, AlignmentIsAPowerOfTwo) {
  for (const std::size_t align : {0, 3, 63, 65, 96}) EXPECT_EQ(block(100, align), nullptr);
  for (const std::size_t align : {1, 2, 64, 128}) EXPECT_NE(block(100, align), nullptr);
}

TEST_F(ScratchTest, BlocksAreAlignedApartAndWritable) {
  std::byte* a = block(100);
  std::byte* b = block(5000, 4096);
  std::byte* c = block(0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 4096, 0u);
  EXPECT_GE(b - a, static_cast<std::ptrdiff_t>(100 + 2 * kRedZone));
  EXPECT_NE(c, nullptr);
  std::memset(a, 0, 100);
  std::memset(b, 0, 5000);
  EXPECT_FALSE(scratch_.take_overrun());
  EXPECT_EQ(scratch_.live(), 5100u);
}

// Whatever was released before, a block takes the first place that fits, found by a scan of all
// live blocks.
TEST(Scratch, EachBlockTakesTheFirstPlaceThatFits) {
  Scratch scratch(kCapacity);
  auto* base = static_cast<std::byte*>(scratch.allocate(1, 64));
  scratch.release(base);
  std::map<std::size_t, std::size_t> live;  // begin -> end
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    if (random() % 5 < 2 && !live.empty()) {
      const auto gone =
          std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      scratch.release(base + gone->first);
      live.erase(gone);
      continue;
    }
    const std::size_t bytes = 1 + random() % 400, align = std::size_t{64} << random() % 3;
    const auto place_after = [&](std::size_t end) { return (end + align - 1) / align * align; };
    std::size_t expected = 0;
    for (const auto& [begin, end] : live) {
      if (expected + bytes <= begin) break;
      expected = place_after(end);
    }
    auto* got = static_cast<std::byte*>(scratch.allocate(bytes, align));
    if (expected + bytes > kCapacity) {
      ASSERT_EQ(got, nullptr);
      continue;
    }
    ASSERT_EQ(got - base, static_cast<std::ptrdiff_t>(expected)) << "at step " << i;
    live[expected] = expected + bytes;
  }
  EXPECT_GT(live.size(), 500u);
}

bool is_accessible(const std::byte* at) {
  std::byte copy{};
  const iovec to{&copy, 1}, from{const_cast<std::byte*>(at), 1};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1;
}

TEST_F(ScratchTest, WhatLiesFarBeyondTheLastBlockCannotBeAccessed) {
  constexpr std::size_t kFar = 8192;
  std::byte* a = block(100);
  EXPECT_TRUE(is_accessible(a + 100 + kRedZone - 1));
  EXPECT_FALSE(is_accessible(a + kFar));
  std::byte* b = block(20'000);
  EXPECT_TRUE(is_accessible(b + 20'000 + kRedZone - 1));
  EXPECT_FALSE(is_accessible(b + 20'000 + kFar));
  scratch_.release(b);
  scratch_.guard(true);
  EXPECT_FALSE(is_accessible(b + kFar)) << "the next call gets none of what was freed";
  scratch_.poison();
  EXPECT_EQ(b[kFar], std::byte{0xff});
  EXPECT_EQ(block(20'000), b);
  scratch_.guard(false);
  EXPECT_TRUE(is_accessible(b + kCapacity / 2));
}

TEST_F(ScratchTest, AWriteBesideALiveBlockIsFoundAndToldOnce) {
  std::byte* a = block(100);
  a[100] = std::byte{0x77};
  auto overrun = scratch_.take_overrun();
  ASSERT_TRUE(overrun);
  EXPECT_EQ(overrun->bytes, 100u);
  EXPECT_TRUE(overrun->beyond_end);
  EXPECT_FALSE(scratch_.take_overrun());
  a[-1] = std::byte{0x77};
  overrun = scratch_.take_overrun();
  ASSERT_TRUE(overrun);
  EXPECT_FALSE(overrun->beyond_end);
}

TEST_F(ScratchTest, AWriteIsFoundWhenItsBlockIsReleased) {
  std::byte* a = block(48);
  std::byte* other = block(64);
  std::memset(a, 0, 48 + kRedZone);
  scratch_.release(a);
  scratch_.poison();  // free space is refilled, but no overrun is hidden
  const auto overrun = scratch_.take_overrun();
  ASSERT_TRUE(overrun);
  EXPECT_EQ(overrun->bytes, 48u);
  scratch_.release(other);
  EXPECT_FALSE(scratch_.take_overrun());
}

TEST_F(ScratchTest, AnyFillOfOneByteShows) {
  for (int value = 0; value < 256; ++value) {
    std::byte* a = block(64);
    std::memset(a, value, 64 + 16);
    EXPECT_TRUE(scratch_.take_overrun()) << value;
    scratch_.release(a);
  }
}

TEST_F(ScratchTest, PoisonLeavesRedZonesAlone) {
  std::byte* a = block(64);
  scratch_.release(block(64));
  scratch_.poison();
  EXPECT_FALSE(scratch_.take_overrun());
  scratch_.release(a);
  EXPECT_FALSE(scratch_.take_overrun());
}

TEST_F(ScratchTest, UnguardedBlocksHaveNone) {
  scratch_.guard(false);
  std::byte* a = block(64);
  std::byte* b = block(64);
  EXPECT_EQ(b - a, 64);
  a[64] = std::byte{1};
  scratch_.guard(true);
  scratch_.release(block(64));
  EXPECT_FALSE(scratch_.take_overrun());
}

TEST_F(ScratchTest, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(block(kCapacity), nullptr);
  EXPECT_NE(block(kCapacity - 2 * kRedZone), nullptr);
  EXPECT_EQ(block(1), nullptr);
}

// Whether each page of a block is resident.
std::vector<bool> resident(void* data, std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(::mincore(data, bytes, pages.data()), 0);
  return {pages.begin(), pages.end()};
}

TEST(GivingScratch, WhatIsReleasedGoesBackToTheKernelAndNothingElseDoes) {
  Scratch scratch(kCapacity);
  scratch.give_back(true);
  std::byte* blocks[3];
  for (std::byte*& b : blocks) {
    b = static_cast<std::byte*>(scratch.allocate(3 * 4096, 4096));
    std::memset(b, 0x55, 3 * 4096);
  }
  scratch.release(blocks[1]);
  EXPECT_THAT(resident(blocks[0], 9 * 4096),
              ::testing::ElementsAre(true, true, true, false, false, false, true, true, true));
  scratch.release(blocks[2]);
  EXPECT_THAT(resident(blocks[0], 9 * 4096),
              ::testing::ElementsAre(true, true, true, false, false, false, false, false, false));
  EXPECT_EQ(blocks[0][3 * 4096 - 1], std::byte{0x55});
}

TEST(GivingScratch, PagesThatABlockSharesStay) {
  Scratch scratch(kCapacity);
  scratch.give_back(true);
  auto* const first = static_cast<std::byte*>(scratch.allocate(6000, 64));
  auto* const gone = static_cast<std::byte*>(scratch.allocate(8192, 64));
  auto* const last = static_cast<std::byte*>(scratch.allocate(6000, 64));
  std::memset(first, 0x55, static_cast<std::size_t>(last + 6000 - first));
  scratch.release(gone);
  EXPECT_EQ(first[5999], std::byte{0x55});
  EXPECT_EQ(last[0], std::byte{0x55});
}

TEST(GivingScratch, PagesStayWhereNothingIsMeasured) {
  Scratch scratch(kCapacity);
  auto* const block = static_cast<std::byte*>(scratch.allocate(4096, 4096));
  std::memset(block, 0x55, 4096);
  scratch.release(block);
  EXPECT_THAT(resident(block, 4096), ::testing::ElementsAre(true));
}

}  // namespace
}  // namespace assay::worker
