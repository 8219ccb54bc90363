#include "grade/currency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../compare/boards.h"
#include "grade/gpu.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using testing::given_board;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::three_specs;

const std::string kH200 = "H200";

BoardRow row_of_today(Device device = Device::cpu) {
  BoardRow row = testing::given_row({"m", 0, "", 70}, three_specs()[0], device);
  if (device == Device::sim) {
    row.score.modelled_on = kH200;
    row.score.gpu_sheet = gpu_named("h200").sheet;
  }
  if (device == Device::cuda) row.machine.gpu.emplace().name = kH200;
  return row;
}

std::vector<std::string> reasons(const BoardRow& row, const std::string& on = kH200) {
  return stale_reasons(row, three_specs()[0], on);
}

TEST(Currency, ARowOfTodayIsCurrent) {
  EXPECT_THAT(reasons(row_of_today()), IsEmpty());
  EXPECT_THAT(reasons(row_of_today(Device::sim)), IsEmpty());
  EXPECT_THAT(reasons(row_of_today(Device::cuda)), IsEmpty());
  EXPECT_EQ(stale_mark(row_of_today(), three_specs()[0], kH200), "");
}

TEST(Currency, EachReasonIsNamed) {
  BoardRow row = row_of_today(Device::sim);
  row.revision = oldest_comparable(Device::sim) - 1;
  EXPECT_THAT(reasons(row), ElementsAre("older measurement revision"));
  EXPECT_FALSE(is_of_newer_assay(row));
  row.revision = kMeasurementRevision + 1;
  EXPECT_THAT(reasons(row), ElementsAre("newer measurement revision"));
  EXPECT_TRUE(is_of_newer_assay(row));
  row = row_of_today(Device::sim);
  row.spec_hash = "older";
  row.score.gpu_sheet = "older";
  EXPECT_THAT(reasons(row), ElementsAre("older spec", "another GPU model"));
  EXPECT_EQ(stale_mark(row, three_specs()[0], kH200), " (stale: older spec, another GPU model)");
}

TEST(Currency, ARevisionThatChangedNothingForADeviceLeavesItsRowsCurrent) {
  for (const Device device : kDevices) {
    ASSERT_LE(oldest_comparable(device), kMeasurementRevision);
    BoardRow old = row_of_today(device), older = old;
    const BoardRow today = old;
    old.revision = oldest_comparable(device);
    older.revision = oldest_comparable(device) - 1;
    EXPECT_THAT(reasons(old), IsEmpty());
    EXPECT_EQ(why_apart(old, today), "");
    EXPECT_THAT(reasons(older), ElementsAre("older measurement revision"));
    EXPECT_EQ(why_apart(older, today), "measured at different revisions");
    EXPECT_EQ(why_apart(older, old), "measured at different revisions");
  }
}

TEST(Currency, TheGpuIsThatOfTheBoard) {
  const BoardRow row = row_of_today(Device::sim);
  EXPECT_THAT(reasons(row, "A100"), ElementsAre("another GPU model"));
  BoardRow unknown = row;
  unknown.score.modelled_on = "X1";
  EXPECT_THAT(reasons(unknown, "X1"), ElementsAre("another GPU model"));
  // A row of this revision knows its data sheet; a row from before there were data sheets does not.
  BoardRow without = row;
  without.score.gpu_sheet.clear();
  EXPECT_THAT(reasons(without), ElementsAre("another GPU model"));
  without.revision = 0;
  EXPECT_THAT(reasons(without), ElementsAre("older measurement revision"));
}

TEST(Currency, ABoardIsOfTheGpuThatMostRowsAreModelledOn) {
  Scoreboard board = given_board({{"a", 0, "", 1}, {"a", 1, "", 1}, {"b", 0, "", 1}}, Device::sim);
  EXPECT_EQ(gpu_of(board, Device::sim), gpu_named(kDefaultGpu).name);
  for (auto& [key, row] : board.entries) row.score.modelled_on = key.model == "a" ? "A100" : kH200;
  EXPECT_EQ(gpu_of(board, Device::sim), "A100");
  EXPECT_EQ(gpu_of(board, Device::cuda), "");
  board.entries.erase(board.entries.begin());
  EXPECT_EQ(gpu_of(board, Device::sim), gpu_named(kDefaultGpu).name);
}

TEST(Currency, ABoardIsOfTheRealGpuThatMostRowsWereMeasuredOn) {
  Scoreboard board = given_board({{"a", 0, "", 1}, {"a", 1, "", 1}, {"b", 0, "", 1}}, Device::cuda);
  EXPECT_EQ(gpu_of(board, Device::cuda), "") << "none of them knows its GPU";
  for (auto& [key, row] : board.entries)
    row.machine.gpu.emplace().name = key.model == "a" ? "NVIDIA H100" : "NVIDIA H200";
  EXPECT_EQ(gpu_of(board, Device::cuda), "NVIDIA H100");
  EXPECT_EQ(gpu_of(board, Device::sim), gpu_named(kDefaultGpu).name);
}

TEST(Currency, RowsOfAnotherRealGpuEnterNothing) {
  BoardRow row = row_of_today(Device::cuda);
  EXPECT_THAT(reasons(row, "NVIDIA H100"), ElementsAre("another GPU"));
  BoardRow other = row;
  other.machine.gpu->driver = "13.1";
  EXPECT_EQ(why_apart(row, other), "");
  other.machine.gpu->name = "NVIDIA H100";
  EXPECT_EQ(why_apart(row, other), "measured on different GPUs");
  row.machine.gpu.reset();
  EXPECT_THAT(reasons(row), ElementsAre("another GPU")) << "it does not know its own";
  row.key.device = Device::cpu;
  EXPECT_THAT(reasons(row), IsEmpty());
}

TEST(Currency, EveryDataSheetHasAHashOfItsOwn) {
  std::vector<std::string> sheets;
  for (const std::string& name : gpu_names()) sheets.push_back(gpu_named(name).sheet);
  std::ranges::sort(sheets);
  EXPECT_EQ(std::ranges::adjacent_find(sheets), sheets.end());
  EXPECT_THAT(sheets, Not(::testing::Contains("")));
}

TEST(Currency, TwoRowsAreToldApart) {
  const BoardRow row = row_of_today(Device::sim);
  EXPECT_EQ(why_apart(row, row), "");
  BoardRow other = row;
  other.revision += 1;
  EXPECT_EQ(why_apart(row, other, true), "measured at different revisions");
  other = row;
  other.spec_hash = "older";
  EXPECT_EQ(why_apart(row, other), "measured against different versions of the spec");
  EXPECT_EQ(why_apart(row, other, true), "");
  other = row;
  other.score.gpu_sheet = "older";
  EXPECT_EQ(why_apart(row, other), "modelled on different GPUs");
}

TEST(Currency, TheReaderIsToldHowManyAndWhatToDo) {
  Scoreboard board = given_board({{"a", 0, "", 1}, {"a", 1, "", 1}, {"b", 0, "", 1}});
  EXPECT_EQ(stale_text(count_stale(board, three_specs())), "");
  board.entries.begin()->second.revision = 0;
  EXPECT_EQ(stale_text(count_stale(board, three_specs())),
            "1 of 3 results is stale (1 older measurement revision): it is marked, and enters no "
            "average, rank or comparison. `assay run --stale` measures it again.");
  for (auto& [key, row] : board.entries) row.revision = kMeasurementRevision + 1;
  const std::string newer = stale_text(count_stale(board, three_specs()));
  EXPECT_THAT(newer, HasSubstr("3 are of a newer assay"));
  EXPECT_THAT(newer, Not(HasSubstr("--stale")));
}

}  // namespace
}  // namespace assay
