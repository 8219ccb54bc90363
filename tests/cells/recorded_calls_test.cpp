#include "cells/recorded_calls.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "assay/witness.h"

namespace assay::cells {
namespace {

// Memory laid out as in a worker, and what witness.cpp does with it.
class RecordedCallsTest : public ::testing::Test {
 protected:
  explicit RecordedCallsTest(std::size_t bytes = 4096) : memory_(bytes / 8) { open(bytes); }
  ~RecordedCallsTest() override { witness::Page::of_process().data = nullptr; }

  void open(std::size_t bytes) {
    auto& page = witness::Page::of_process();
    page.data = reinterpret_cast<unsigned char*>(memory_.data());
    page.room = bytes - sizeof(witness::Account);
    page.account() = {};
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(memory_)); }
  Recording read() const { return read_recording(bytes()); }
  // The 64-bit word at that byte offset, which a forger may overwrite.
  std::uint64_t& word(std::size_t byte) { return memory_.at(byte / 8); }
  static void record(std::int32_t entry, const std::string& text) {
    witness::Record call(entry);
    call.params(entry);
    call.array(2, text.data(), static_cast<std::int64_t>(text.size()));
  }
  static std::string text_of(const RecordedCall& call) {
    const RecordedCall::Array* const array = call.find(2);
    return array == nullptr ? "none"
                            : std::string(reinterpret_cast<const char*>(array->bytes.data()),
                                          array->bytes.size());
  }

  std::vector<std::uint64_t> memory_;
};

TEST_F(RecordedCallsTest, ComeBackWholeTheLatestFirst) {
  record(1, "first");
  record(2, "second call");
  const Recording recording = read();
  ASSERT_EQ(recording.calls.size(), 2u);
  EXPECT_EQ(recording.calls[0].entry, 2);
  EXPECT_EQ(text_of(recording.calls[0]), "second call");
  EXPECT_EQ(text_of(recording.calls[1]), "first");
  EXPECT_EQ(recording.calls[1].params_as<std::int32_t>(), 1);
  EXPECT_FALSE(recording.calls[1].params_as<std::int64_t>());
  EXPECT_EQ(recording.calls[1].find(3), nullptr);
}

TEST_F(RecordedCallsTest, OfTheSameInputsAreOne) {
  for (int i = 0; i < 3; ++i) record(1, "same");
  record(1, "other");
  EXPECT_EQ(read().calls.size(), 2u);
}

TEST_F(RecordedCallsTest, NullIsNoArray) {
  {
    witness::Record call(1);
    call.array(2, nullptr, 40);
  }
  const Recording recording = read();
  ASSERT_EQ(recording.calls.size(), 1u);
  ASSERT_NE(recording.calls[0].find(2), nullptr);
  EXPECT_TRUE(recording.calls[0].find(2)->null);
  EXPECT_TRUE(recording.calls[0].find(2)->bytes.empty());
}

TEST_F(RecordedCallsTest, WhatLiesBetweenRowsIsNotRead) {
  const std::string rows = "ab--cd--ef";  // nothing follows the last row
  {
    witness::Record call(1);
    call.rows(2, rows.data(), 3, 2, 4);
  }
  EXPECT_EQ(text_of(read().calls.at(0)),
            "ab\xff\xff"
            "cd\xff\xff"
            "ef");
}

TEST_F(RecordedCallsTest, WithoutRoomAreCountedAndLeaveRoomForSmallerOnes) {
  record(1, std::string(5000, 'x'));
  record(2, "small");
  const Recording recording = read();
  EXPECT_EQ(recording.dropped, 1u);
  ASSERT_EQ(recording.calls.size(), 1u);
  EXPECT_EQ(text_of(recording.calls[0]), "small");
}

TEST_F(RecordedCallsTest, BeyondAMostAreCountedAndNotKept) {
  constexpr std::size_t kBytes = 1 << 20;
  memory_.assign(kBytes / 8, 0);
  open(kBytes);
  for (std::size_t i = 0; i < kMostCalls + 5; ++i) witness::Record(static_cast<std::int32_t>(i));
  EXPECT_EQ(read().calls.size(), kMostCalls);
  EXPECT_EQ(read().dropped, 5u);
}

TEST_F(RecordedCallsTest, OfAJournalAreThereAsFarAsTheyWent) {
  witness::Journal journal(7);
  EXPECT_TRUE(read().calls.empty());
  journal.params(7);
  journal.add(2, "one", 3);
  journal.add(2, nullptr, 9);
  const Recording recording = read();
  ASSERT_EQ(recording.calls.size(), 1u);
  EXPECT_EQ(recording.calls[0].entry, 7);
  EXPECT_EQ(recording.calls[0].params_as<int>(), 7);
  ASSERT_EQ(recording.calls[0].arrays.size(), 2u);
  EXPECT_EQ(text_of(recording.calls[0]), "one");
  EXPECT_TRUE(recording.calls[0].arrays[1].null);
}

TEST_F(RecordedCallsTest, OfJournalsThatTakeTurnsStayApart) {
  const auto texts = [](const RecordedCall& call) {
    std::string all;
    for (const RecordedCall::Array& array : call.arrays)
      all.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    return all;
  };
  {
    witness::Journal a(1), b(2), c(3);
    for (const std::string word : {"first, ", "second, ", "the third and longest"}) {
      for (witness::Journal* journal : {&a, &b, &c})
        journal->add(2, word.data(), static_cast<std::int64_t>(word.size()));
      if (word == "second, ") record(4, "between");
    }
    a.add(2, ".", 1);
  }
  record(5, "last");
  const Recording recording = read();
  ASSERT_EQ(recording.calls.size(), 5u);
  std::vector<std::int32_t> entries;
  for (const RecordedCall& call : recording.calls) entries.push_back(call.entry);
  EXPECT_EQ(entries, (std::vector<std::int32_t>{5, 1, 3, 2, 4}));
  const std::string all = "first, second, the third and longest";
  EXPECT_EQ(texts(recording.calls[1]), all + ".");
  EXPECT_EQ(texts(recording.calls[2]), all);
  EXPECT_EQ(texts(recording.calls[3]), all);
  EXPECT_EQ(text_of(recording.calls[4]), "between");
}

TEST_F(RecordedCallsTest, OfAJournalEndWithTheFirstFieldWithoutRoom) {
  witness::Journal journal(1);
  journal.add(2, "before", 6);
  const std::string large(5000, 'x');
  journal.add(3, large.data(), 5000);
  journal.add(4, "behind", 6);
  const Recording recording = read();
  EXPECT_EQ(recording.dropped, 1u);
  ASSERT_EQ(recording.calls.size(), 1u);
  ASSERT_EQ(recording.calls[0].arrays.size(), 1u);
  EXPECT_EQ(text_of(recording.calls[0]), "before");
}

TEST_F(RecordedCallsTest, SizesThatAreNoneReadNothing) {
  // Volatile, so that the compiler does not warn about a copy that is never made.
  const volatile std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t rows : {std::int64_t{-1}, std::int64_t{huge}}) {
    witness::Record call(1);
    call.rows(2, "x", rows, 1, huge);
  }
  witness::Record(1).strange();
  EXPECT_EQ(read().strange, 3u);
  EXPECT_TRUE(read().calls.empty());
}

TEST_F(RecordedCallsTest, ForgedSizesEndTheRecord) {
  constexpr std::size_t kFirst = sizeof(witness::Account);
  for (const std::size_t place : {kFirst, kFirst + sizeof(witness::CallHead) + 8}) {
    for (const std::uint64_t forged : {std::uint64_t{0} - 8, std::uint64_t{1} << 40}) {
      open(4096);
      record(1, "a text of some length");
      record(2, "another");
      ASSERT_EQ(read().calls.size(), 2u);
      word(place) = forged;
      EXPECT_TRUE(read().calls.empty()) << place << " " << forged;
    }
  }
  open(4096);
  record(1, "text");
  word(kFirst + 8) = 1 | std::uint64_t{0xffffffff} << 32;  // field counts
  EXPECT_TRUE(read().calls.empty());
}

TEST_F(RecordedCallsTest, AForgedAccountReadsNoFurtherThanTheMemory) {
  record(1, "text");
  word(0) = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(read().calls.size(), 1u) << "what follows is no call";
  EXPECT_TRUE(read_recording(bytes().first(7)).calls.empty());
}

}  // namespace
}  // namespace assay::cells
