#include "build/cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "util/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using sandbox::Tier;

constexpr std::uint64_t kBlock = 4096;  // an entry takes whole blocks

class CacheTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  BuildCache open(std::uint64_t limit = kDefaultCacheLimit) { return {Tier::none, folder_, limit}; }
  bool kept(const std::string& name) const { return fs::exists(folder_ / name); }
  // As if it had been used that many hours ago.
  void age(const std::string& name, int hours) {
    fs::last_write_time(folder_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  fs::path folder_ = fs::temp_directory_path() / ("assay-cache-" + std::to_string(::getpid()));
};

TEST_F(CacheTest, WhatWasAddedIsFoundByThisAndTheNextProcess) {
  {
    BuildCache cache = open();
    EXPECT_FALSE(cache.find("a.so"));
    EXPECT_EQ(read_file(cache.add("a.so", "library")), "library");
    EXPECT_EQ(read_file(*cache.find("a.so")), "library");
  }
  EXPECT_EQ(read_file(*open().find("a.so")), "library");
}

TEST_F(CacheTest, TheLeastRecentlyUsedGoes) {
  BuildCache cache = open(3 * kBlock);
  for (const char* name : {"a.so", "b.o", "c.work.json"}) cache.add(name, "x");
  age("a.so", 3);
  age("b.o", 2);
  age("c.work.json", 1);
  ASSERT_TRUE(cache.find("a.so"));  // used now
  cache.add("d.so", "x");
  EXPECT_TRUE(kept("a.so"));
  EXPECT_FALSE(kept("b.o"));
  EXPECT_TRUE(kept("c.work.json"));
  EXPECT_TRUE(kept("d.so"));
  EXPECT_EQ(cache.usage().bytes, 3 * kBlock);
  EXPECT_EQ(cache.usage().entries, 3u);
}

TEST_F(CacheTest, ASmallerLimitHoldsFromTheStart) {
  {
    BuildCache cache = open();
    for (const char* name : {"a.so", "b.so", "c.so"}) cache.add(name, std::string(kBlock + 1, 'x'));
    age("b.so", 1);
    EXPECT_EQ(cache.usage().bytes, 6 * kBlock);
  }
  BuildCache cache = open(4 * kBlock);
  EXPECT_TRUE(kept("a.so"));
  EXPECT_FALSE(kept("b.so"));
  EXPECT_EQ(cache.usage().bytes, 4 * kBlock);
}

TEST_F(CacheTest, WhatIsInUseOutlivesItsEntry) {
  BuildCache mine = open();
  const fs::path added = mine.add("a.so", "added");
  open().add("b.so", "found");
  const fs::path found = *mine.find("b.so");
  BuildCache other = open(0);  // keeps nothing
  EXPECT_EQ(other.usage().entries, 0u);
  EXPECT_EQ(read_file(added), "added");
  EXPECT_EQ(read_file(found), "found");
  EXPECT_EQ(read_file(*mine.find("a.so")), "added");
  EXPECT_FALSE(other.find("a.so"));
}

TEST_F(CacheTest, EntriesAreReadableWhateverTheUmask) {
  const mode_t before = ::umask(077);
  const fs::path own = open().add("a.so", "x");
  ::umask(before);
  EXPECT_EQ(fs::status(folder_ / "a.so").permissions(), fs::perms(0644));
}

TEST_F(CacheTest, WhatKilledProcessesLeftIsRemoved) {
  fs::create_directories(folder_);
  const pid_t child = ::fork();
  if (child == 0) {
    auto* cache = new BuildCache(Tier::none, folder_, kDefaultCacheLimit);
    cache->add("a.so", "x");
    new FileLock(cache->lock("b.so"));
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto old = "build-" + std::to_string(child) + "-0",
             alive = "build-" + std::to_string(::getpid()) + "-0";
  for (const auto& name : {old, alive}) fs::create_directories(folder_ / name / "src");
  for (const char* name : {"c.so.1-0.tmp", "d.so.1-0.tmp"}) std::ofstream(folder_ / name) << "x";
  age("c.so.1-0.tmp", 2);

  const BuildCache cache = open();
  EXPECT_TRUE(kept("a.so"));
  EXPECT_FALSE(kept("b.so.lock"));
  EXPECT_FALSE(kept(old));
  EXPECT_TRUE(kept(alive));
  EXPECT_FALSE(kept("c.so.1-0.tmp"));
  EXPECT_TRUE(kept("d.so.1-0.tmp")) << "somebody may be writing it";
  EXPECT_EQ(cache.usage().entries, 1u);
  std::size_t workplaces = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    workplaces += entry.path().filename().string().starts_with("assay-work-") ? 1 : 0;
  }
  EXPECT_EQ(workplaces, 1u) << "that of this process";
}

// Another file system has no links to the entries.
TEST_F(CacheTest, SharesNothingButContentsAcrossFileSystems) {
  if (::geteuid() != 0 || !fs::is_directory("/dev/shm")) GTEST_SKIP() << "needs root and /dev/shm";
  const fs::path closed = "/dev/shm/assay-cache-" + std::to_string(::getpid());
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms(0700));
  {
    BuildCache cache(Tier::landlock, closed / "cache", kDefaultCacheLimit);
    EXPECT_FALSE(cache.workplace().string().starts_with("/dev/shm"));
    EXPECT_EQ(read_file(cache.add("a.so", "x")), "x");
    BuildCache other(Tier::landlock, closed / "cache", kDefaultCacheLimit);
    EXPECT_EQ(read_file(*other.find("a.so")), "x");
  }
  fs::remove_all(closed);
}

TEST_F(CacheTest, ALockIsHeldByOne) {
  const BuildCache one = open(), other = open();
  const FileLock held = one.lock("a.so");
  EXPECT_FALSE(FileLock::if_free(folder_ / "a.so.lock"));
  other.lock("b.so");
}

}  // namespace
}  // namespace assay
