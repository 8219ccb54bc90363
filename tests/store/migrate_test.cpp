#include "store/migrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/record_fields.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store_samples.h"
#include "util/files.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Migrate : public ::testing::Test {
 protected:
  Migrate() {
    nlohmann::json entries = nlohmann::json::array();
    for (const char* model : {"a", "b"}) {
      nlohmann::json e =
          nlohmann::json::parse(evidence_text({"", testing::entry_at(model, "2026")}));
      for (const char* key : {"schema", "kind", "run_id"}) e.erase(key);
      entries.push_back(e);
    }
    write_file_atomically(
        board_path(folder),
        nlohmann::json{{"schema", 1}, {"kind", "scoreboard"}, {"entries", entries}}.dump());
  }
  testing::TemporaryFolder temporary;
  const fs::path& folder = temporary.path;
};

TEST_F(Migrate, KeepsScoresAndEvidence) {
  EXPECT_THAT(migrate(folder), HasSubstr("the evidence of its 2 cells"));
  const Scoreboard board = read_board(folder);
  ASSERT_EQ(board.entries.size(), 2u);
  for (const auto& [key, row] : board.entries) {
    const BoardEntry entry = testing::entry_at(key.model, "2026");
    EXPECT_EQ(record_json(row.score).dump(), record_json(entry.score).dump());
    const FoundEvidence found = find_evidence(folder, row.evidence);
    EXPECT_EQ(found.problem, "");
    EXPECT_EQ(found.text, evidence_text({"", entry}));
  }
}

TEST_F(Migrate, HappensOnce) {
  migrate(folder);
  const std::string text = read_file(board_path(folder));
  EXPECT_EQ(migrate(folder), "");
  EXPECT_EQ(read_file(board_path(folder)), text);
}

TEST_F(Migrate, ABoardOfTodayInAnotherLayoutIsLeftAlone) {
  migrate(folder);
  const std::string compact = nlohmann::ordered_json::parse(read_file(board_path(folder))).dump();
  write_file_atomically(board_path(folder), compact);
  EXPECT_EQ(migrate(folder), "");
  EXPECT_EQ(read_file(board_path(folder)), compact);
}

// The format of boards before they kept the failed cases.
std::string without_failed_cases(const std::string& text) {
  std::string old;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    const std::string line = text.substr(at, end - at);
    if (!line.starts_with("   \"failed\": ")) old += line;
    at = end;
  }
  return old;
}

TEST_F(Migrate, CompletesFailedCasesFromTheEvidence) {
  migrate(folder);
  const std::string whole = read_file(board_path(folder));
  const std::string old = without_failed_cases(whole);
  ASSERT_NE(old, whole);
  write_file_atomically(board_path(folder), old);
  EXPECT_THAT(migrate(folder), HasSubstr("the failed cases of 2 cells"));
  EXPECT_EQ(read_file(board_path(folder)), whole);
  EXPECT_EQ(migrate(folder), "");
}

TEST_F(Migrate, LeavesFailedCasesUnknownWhereThereIsNoEvidence) {
  migrate(folder);
  const std::string old = without_failed_cases(read_file(board_path(folder)));
  write_file_atomically(board_path(folder), old);
  fs::remove_all(folder / "cells");
  EXPECT_EQ(migrate(folder), "");
  EXPECT_EQ(read_file(board_path(folder)), old);
  const Scoreboard board = read_board(folder);
  ASSERT_EQ(board.entries.size(), 2u);
  for (const auto& [key, row] : board.entries) EXPECT_FALSE(row.failed.has_value());
}

TEST_F(Migrate, AfterAKillItBeginsAgain) {
  write_evidence(folder, evidence_path(testing::key_of("a")), "what a killed migration left");
  migrate(folder);
  const Scoreboard board = read_board(folder);
  ASSERT_EQ(board.entries.size(), 2u);
  for (const auto& [key, row] : board.entries)
    EXPECT_EQ(find_evidence(folder, row.evidence).problem, "");
}

TEST_F(Migrate, WithoutItTheBoardIsTheSame) {
  const Scoreboard before = read_board(folder);
  migrate(folder);
  EXPECT_EQ(scoreboard_text(read_board(folder)), scoreboard_text(before));
}

TEST_F(Migrate, ARunMigratesFirst) {
  ResultStore store(folder);
  EXPECT_THAT(store.migration(), HasSubstr("schema 1"));
  store.start(testing::run_start("r"));
  store.finish();
  const Scoreboard board = read_board(folder);
  ASSERT_EQ(board.entries.size(), 2u);
  for (const auto& [key, row] : board.entries)
    EXPECT_EQ(find_evidence(folder, row.evidence).problem, "");
}

}  // namespace
}  // namespace assay::store
