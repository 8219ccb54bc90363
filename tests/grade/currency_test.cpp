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

Yardstick yardstick(const std::string& on = kH200) {
  return yardstick_of_today(three_specs()[0], on);
}

std::vector<std::string> reasons(const BoardRow& row, const std::string& on = kH200) {
  return stale_reasons(row, yardstick(on));
}

TEST(Currency, ARowOfTodayIsCurrent) {
  EXPECT_THAT(reasons(row_of_today()), IsEmpty());
  EXPECT_THAT(reasons(row_of_today(Device::sim)), IsEmpty());
  EXPECT_THAT(reasons(row_of_today(Device::cuda)), IsEmpty());
  EXPECT_EQ(currency_mark(row_of_today(), yardstick()), "");
  EXPECT_EQ(currency_note(row_of_today(), yardstick()), "");
}

TEST(Currency, EachReasonIsNamed) {
  BoardRow row = row_of_today(Device::sim);
  row.revision = oldest_comparable(Device::sim) - 1;
  EXPECT_THAT(reasons(row), ElementsAre("older measurement revision"));
  EXPECT_FALSE(is_of_newer_assay(row));
  row.revision = kMeasurementRevision + 1;
  EXPECT_THAT(reasons(row), ElementsAre("newer measurement revision"));
  EXPECT_TRUE(is_of_newer_assay(row));
  EXPECT_EQ(currency_note(row, yardstick()),
            "stale, and compared with nothing: newer measurement revision");
  row = row_of_today(Device::sim);
  row.spec_hash = "older";
  row.score.gpu_sheet = "older";
  EXPECT_THAT(reasons(row), ElementsAre("older spec", "another GPU model"));
  EXPECT_EQ(currency_mark(row, yardstick()), " (stale: older spec, another GPU model)");
  EXPECT_EQ(currency_note(row, yardstick()),
            "stale, and compared with nothing: older spec, another GPU model; `assay run --stale` "
            "measures it again");
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

// A board of two challenges, on which a challenge's rows are of the specs given.
Scoreboard board_of_specs(const std::vector<std::string>& of_first) {
  Scoreboard board =
      given_board({{"a", 0, "", 1}, {"b", 0, "", 1}, {"c", 0, "", 1}, {"a", 1, "", 1}});
  std::size_t i = 0;
  for (auto& [key, row] : board.entries) {
    if (key.challenge == "first") row.spec_hash = of_first[i++];
  }
  return board;
}

std::vector<std::string> marks_of_first(const Scoreboard& board) {
  const Yardsticks yardsticks(board, three_specs());
  std::vector<std::string> marks;
  for (const auto& [key, row] : board.entries) {
    if (key.challenge == "first") marks.push_back(currency_mark(row, yardsticks.of(key)));
  }
  return marks;
}

TEST(Currency, RowsThatAllShareAnOlderSpecCompareWithOneAnother) {
  const std::string today = three_specs()[0].hash;
  const std::string dated = " (older spec)", stale = " (stale: older spec)";
  EXPECT_THAT(marks_of_first(board_of_specs({today, today, today})), ElementsAre("", "", ""));
  EXPECT_THAT(marks_of_first(board_of_specs({"old", "old", "old"})),
              ElementsAre(dated, dated, dated));
  EXPECT_THAT(marks_of_first(board_of_specs({"old", "old", "older"})),
              ElementsAre(stale, stale, stale));
  EXPECT_THAT(marks_of_first(board_of_specs({"old", today, "old"})), ElementsAre(stale, "", stale));
}

TEST(Currency, RowsThatAreStaleForOtherReasonsDoNotMakeTheRestStale) {
  Scoreboard board = board_of_specs({"old", "old", "older"});
  board.entries.rbegin()->second.revision = 0;
  EXPECT_THAT(marks_of_first(board),
              ElementsAre(" (older spec)", " (older spec)",
                          " (stale: older measurement revision, older spec)"));
  // Today's spec applies as soon as any row is of it.
  board.entries.rbegin()->second.spec_hash = three_specs()[0].hash;
  EXPECT_THAT(marks_of_first(board), ElementsAre(" (stale: older spec)", " (stale: older spec)",
                                                 " (stale: older measurement revision)"));
}

TEST(Currency, OtherChallengesAndDevicesDoNotMatter) {
  Scoreboard board = board_of_specs({"old", "old", "old"});
  for (const auto& [key, row] : given_board({{"a", 0, "", 1}}, Device::sim).entries)
    board.entries.emplace(key, row);
  const Yardsticks yardsticks(board, three_specs());
  EXPECT_TRUE(yardsticks.of(Device::cpu, "first").is_dated);
  EXPECT_FALSE(yardsticks.of(Device::sim, "first").is_dated);
  EXPECT_FALSE(yardsticks.of(Device::cpu, "second").is_dated);
  EXPECT_FALSE(yardsticks.of(Device::cpu, "third").is_dated) << "it has no rows";
  EXPECT_TRUE(is_stale(board.entries.begin()->second, yardstick()))
      << "on no particular board, older specs are stale";
}

TEST(Currency, TheReaderIsToldOfDatedRows) {
  const Scoreboard board = board_of_specs({"old", "old", "old"});
  const StaleCount count = count_stale(board, three_specs());
  EXPECT_EQ(count.dated, 3u);
  EXPECT_EQ(count.stale, 0u);
  EXPECT_EQ(stale_text(count),
            "3 of 4 results are of an older spec, like all that they are compared with; `assay run "
            "--stale` measures them again.");
  const Yardsticks yardsticks(board, three_specs());
  const auto& [key, row] = *board.entries.begin();
  EXPECT_EQ(currency_note(row, yardsticks.of(key)),
            "measured against an older spec, like all that it is compared with; `assay run "
            "--stale` measures it again");
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
