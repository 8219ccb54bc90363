#include "cells/kept_work.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>

#include "util/files.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;

struct KeptWork : testing::Test {
  fs::path folder = fs::path(testing::TempDir()) / ("kept_work_test_" + std::to_string(::getpid()));
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  static SimulatedWork sample() {
    SimulatedWork work;
    work.counters.instructions = (std::uint64_t{1} << 52) + 1;
    work.counters.global_load_bytes = 123;
    work.transfers = 7;
    work.device_bytes = 4096;
    return work;
  }
};

TEST_F(KeptWork, ComesBackAsItWas) {
  const fs::path file = folder / "a.work.json";
  EXPECT_FALSE(load_work(file));
  save_work(file, sample());
  const auto back = load_work(file);
  ASSERT_TRUE(back);
  const SimulatedWork expected = sample();
  EXPECT_EQ(std::memcmp(&*back, &expected, sizeof expected), 0);
}

TEST_F(KeptWork, LoadingIsAUse) {
  const fs::path file = folder / "a.work.json";
  save_work(file, sample());
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(9);
  fs::last_write_time(file, long_ago);
  ASSERT_TRUE(load_work(file));
  EXPECT_GT(fs::last_write_time(file), long_ago + std::chrono::hours(8));
}

TEST_F(KeptWork, AFileThatIsNotWholeIsNothing) {
  const fs::path file = folder / "a.work.json";
  save_work(file, sample());
  const std::string whole = read_file(file);
  for (const std::string& text : {whole.substr(0, whole.size() / 2), std::string("[1]"),
                                  std::string("{\"sim_instructions\": 1}"), std::string()}) {
    std::ofstream(file, std::ios::trunc) << text;
    EXPECT_FALSE(load_work(file)) << text;
  }
}

TEST_F(KeptWork, HasAFileForEachLibrarySpecAndCase) {
  ChallengeSpec one, other;
  one.hash = std::string(64, '1');
  other.hash = std::string(64, '2');
  const std::set<fs::path> files{
      work_file(folder, "/x.so", one, "a"), work_file(folder, "/y.so", one, "a"),
      work_file(folder, "/x.so", other, "a"), work_file(folder, "/x.so", one, "b")};
  EXPECT_EQ(files.size(), 4u);
  for (const fs::path& file : files) EXPECT_EQ(file.parent_path(), folder);
}

}  // namespace
}  // namespace assay::cells
