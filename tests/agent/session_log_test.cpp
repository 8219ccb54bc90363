#include "agent/session_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::agent {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SessionLog, KeepsWhatWasPrintedWithoutSecrets) {
  const testing::TemporaryFolder folder;
  SessionLog log(folder.path / "log", Redactor({"hush hush"}));
  for (const char* piece : {"it says hu", "sh hu", "sh\nand ends"}) log.add(piece);
  log.close();
  EXPECT_EQ(read_file(folder.path / "log"), "it says [secret removed]\nand ends");
  EXPECT_EQ(log.size(), 26u);
}

TEST(SessionLog, KeepsBeginAndEndOfMuch) {
  const testing::TemporaryFolder folder;
  SessionLog log(folder.path / "log", Redactor(), 1000);
  std::string all;
  for (int i = 0; i < 20000; ++i) all += std::to_string(i) + "\n";
  for (std::size_t at = 0; at < all.size(); at += 777) log.add(all.substr(at, 777));
  log.close();
  const std::string mark = "\n[... " + std::to_string(all.size() - 1000) + " bytes left out ...]\n";
  EXPECT_EQ(read_file(folder.path / "log"),
            all.substr(0, 500) + mark + all.substr(all.size() - 500));
  EXPECT_EQ(log.last_lines(2), "19998\n19999");
}

TEST(SessionLog, LastLinesAreSafe) {
  const testing::TemporaryFolder folder;
  SessionLog log(folder.path / "log", Redactor());
  EXPECT_EQ(log.last_lines(3), "");
  log.add("a\nb\x1b[2J\n\n");
  log.close();
  EXPECT_EQ(log.last_lines(1), "b\\x1b[2J");
  EXPECT_EQ(log.last_lines(9), "a\nb\\x1b[2J");
}

}  // namespace
}  // namespace assay::agent
