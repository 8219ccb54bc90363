#include "store/board_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/line_file.h"
#include "store_samples.h"
#include "support/error_of.h"
#include "util/files.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::times;
using ::testing::UnorderedElementsAre;

BoardRow row(const std::string& model, const std::string& time) {
  return testing::row_of(testing::entry_at(model, time));
}

class BoardFileTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder temporary;
  const fs::path& folder = temporary.path;
};

TEST_F(BoardFileTest, AFolderWithoutABoardHasAnEmptyOne) {
  EXPECT_TRUE(read_board(folder).entries.empty());
  EXPECT_TRUE(read_board(folder / "none").entries.empty());
}

TEST_F(BoardFileTest, WhatIsAppendedIsReadBeforeItIsWrittenWhole) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  board.write();
  board.append(row("b", "1"));
  board.append(row("a", "2"));
  EXPECT_THAT(times(board.board()), UnorderedElementsAre(Pair("a", "2"), Pair("b", "1")));
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "2"), Pair("b", "1")));
  EXPECT_EQ(read_lines(journal_path(folder)).lines.size(), 2u);
}

TEST_F(BoardFileTest, WritingItWholeLeavesNoJournal) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  board.write();
  EXPECT_FALSE(fs::exists(journal_path(folder)));
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1")));
}

TEST_F(BoardFileTest, AKillBetweenBoardAndJournalChangesNothing) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  board.append(row("a", "2"));
  const std::string journal = read_file(journal_path(folder));
  board.write();
  const std::string text = read_file(board_path(folder));
  write_file_atomically(journal_path(folder), journal);
  BoardFile again(folder);
  again.write();
  EXPECT_EQ(read_file(board_path(folder)), text);
}

TEST_F(BoardFileTest, AnOldJournalDoesNotDisplaceANewerBoard) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  const std::string journal = read_file(journal_path(folder));
  board.append(row("a", "2"));
  board.write();
  write_file_atomically(journal_path(folder), journal);
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "2")));
}

TEST_F(BoardFileTest, ATornLineIsIgnored) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  const std::string whole = read_file(journal_path(folder));
  write_file_atomically(journal_path(folder), whole + whole.substr(0, whole.size() - 1));
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1")));
  BoardFile again(folder);
  again.append(row("b", "1"));
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1"), Pair("b", "1")));
}

TEST_F(BoardFileTest, ABrokenLineIsNamed) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  append_line(journal_path(folder), "{\"schema\": 2}");
  const std::string place = journal_path(folder).string() + ":2: ";
  EXPECT_THAT(testing::error_of([&] { read_board(folder); }), HasSubstr(place));
  EXPECT_THAT(testing::error_of([&] { board.refresh(); }), HasSubstr(place));
}

TEST_F(BoardFileTest, OthersAppendAndRewriteMeanwhile) {
  BoardFile mine(folder), theirs(folder);
  theirs.append(row("a", "1"));
  mine.refresh();
  EXPECT_THAT(times(mine.board()), UnorderedElementsAre(Pair("a", "1")));
  theirs.write();
  mine.refresh();
  EXPECT_THAT(times(mine.board()), UnorderedElementsAre(Pair("a", "1")));
  theirs.write(Scoreboard{});  // they removed it
  mine.refresh();
  EXPECT_TRUE(mine.board().entries.empty());
  theirs.append(row("b", "1"));
  mine.refresh();
  mine.append(row("c", "1"));
  theirs.refresh();
  EXPECT_THAT(times(theirs.board()), UnorderedElementsAre(Pair("b", "1"), Pair("c", "1")));
  theirs.write();
  theirs.append(row("d", "1"));
  mine.refresh();
  EXPECT_EQ(times(mine.board()), times(read_board(folder)));
}

TEST_F(BoardFileTest, AJournalThatIsGoneIsNoticed) {
  BoardFile board(folder);
  board.append(row("a", "1"));
  fs::remove(journal_path(folder));
  board.refresh();
  EXPECT_TRUE(board.board().entries.empty());
}

TEST_F(BoardFileTest, EvidenceElsewhereIsRefused) {
  BoardRow foreign = row("a", "1");
  foreign.evidence.path = "../../../etc/passwd";
  BoardFile board(folder);
  board.append(foreign);
  EXPECT_THAT(testing::error_of([&] { read_board(folder); }), HasSubstr("should lie in cells/a/"));
  board.write();
  EXPECT_THAT(testing::error_of([&] { read_board(folder); }), HasSubstr("should lie in cells/a/"));
}

}  // namespace
}  // namespace assay::store
