#include "store/merge_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/evidence_file.h"
#include "store_samples.h"
#include "support/error_of.h"
#include "util/files.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using testing::entry_at;
using ::testing::HasSubstr;
using testing::key_of;
using ::testing::Pair;
using testing::run_start;
using testing::times;
using ::testing::UnorderedElementsAre;

class MergeFoldersTest : public ::testing::Test {
 protected:
  static void measure(const fs::path& folder, const std::vector<BoardEntry>& entries) {
    ResultStore store(folder);
    store.start(run_start("run"));
    for (const BoardEntry& entry : entries) store.add(entry);
    store.finish();
  }
  MergeCount merge(Prefer prefer = Prefer::newest) const {
    return merge_results(ours_, IncomingResults(theirs_), prefer);
  }
  // Whether the evidence of a cell on our board exists and belongs to that measurement.
  std::string evidence_of(const std::string& model) const {
    return find_evidence(ours_, read_board(ours_).entries.at(key_of(model)).evidence).text;
  }

  testing::TemporaryFolder temporary_;
  const fs::path ours_ = temporary_.path / "ours", theirs_ = temporary_.path / "theirs";
};

TEST_F(MergeFoldersTest, WhatIsNewComesWithItsEvidence) {
  measure(ours_, {entry_at("a", "1")});
  measure(theirs_, {entry_at("b", "2")});
  const MergeCount count = merge();
  EXPECT_EQ(count.added, 1u);
  EXPECT_EQ(count.taken(), 1u);
  EXPECT_EQ(count.without_evidence, 0u);
  EXPECT_THAT(times(read_board(ours_)), UnorderedElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_EQ(evidence_of("b"), evidence_text({"run", entry_at("b", "2")}));
}

TEST_F(MergeFoldersTest, OfTwoMeasurementsTheLaterStaysAndOnceMoreChangesNothing) {
  measure(ours_, {entry_at("a", "1"), entry_at("b", "3")});
  measure(theirs_, {entry_at("a", "2"), entry_at("b", "2")});
  const MergeCount count = merge();
  EXPECT_EQ(count.replaced, 1u);
  EXPECT_EQ(count.older, 1u);
  EXPECT_THAT(times(read_board(ours_)), UnorderedElementsAre(Pair("a", "2"), Pair("b", "3")));
  EXPECT_EQ(evidence_of("a"), evidence_text({"run", entry_at("a", "2")}));
  const MergeCount again = merge();
  EXPECT_EQ(again.taken(), 0u);
  EXPECT_EQ(again.same, 1u);
}

TEST_F(MergeFoldersTest, TheirsMayBePreferredThoughOlder) {
  measure(ours_, {entry_at("a", "2")});
  measure(theirs_, {entry_at("a", "1")});
  EXPECT_EQ(merge(Prefer::theirs).replaced, 1u);
  EXPECT_THAT(times(read_board(ours_)), UnorderedElementsAre(Pair("a", "1")));
  EXPECT_EQ(evidence_of("a"), evidence_text({"run", entry_at("a", "1")}));
}

TEST_F(MergeFoldersTest, OursMayBePreferredThoughOlder) {
  measure(ours_, {entry_at("a", "1")});
  measure(theirs_, {entry_at("a", "2"), entry_at("b", "2")});
  const MergeCount count = merge(Prefer::ours);
  EXPECT_EQ(count.ours, 1u);
  EXPECT_EQ(count.added, 1u);
  EXPECT_THAT(times(read_board(ours_)), UnorderedElementsAre(Pair("a", "1"), Pair("b", "2")));
}

// Our evidence would say nothing about their score.
TEST_F(MergeFoldersTest, WithoutTheirEvidenceOursGoes) {
  measure(ours_, {entry_at("a", "1")});
  measure(theirs_, {entry_at("a", "2")});
  fs::remove_all(theirs_ / "cells");
  const MergeCount count = merge();
  EXPECT_EQ(count.replaced, 1u);
  EXPECT_EQ(count.without_evidence, 1u);
  EXPECT_EQ(evidence_of("a"), "");
  EXPECT_FALSE(fs::exists(ours_ / read_board(ours_).entries.at(key_of("a")).evidence.path));
}

TEST_F(MergeFoldersTest, NothingIsWrittenToTheOtherFolder) {
  measure(theirs_, {entry_at("a", "1")});
  const auto files = [&] {
    std::map<fs::path, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(theirs_)) {
      if (entry.is_regular_file()) all[entry.path()] = read_file(entry.path());
    }
    return all;
  };
  const auto before = files();
  fs::create_directories(ours_);
  EXPECT_EQ(merge().added, 1u);
  EXPECT_EQ(files(), before);
}

TEST_F(MergeFoldersTest, AFolderWithoutResultsIsRefused) {
  fs::create_directories(theirs_);
  EXPECT_THAT(testing::error_of([&] { IncomingResults incoming(theirs_); }),
              HasSubstr(theirs_.string() + " holds no results"));
}

}  // namespace
}  // namespace assay::store
