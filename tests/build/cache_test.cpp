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

// The name of an entry: a hash and an extension.
std::string hashed(char digit, const char* kind) { return std::string(64, digit) + kind; }
const std::string kA = hashed('a', ".so"), kB = hashed('b', ".o"), kC = hashed('c', ".work.json"),
                  kD = hashed('d', ".so");

class CacheTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  BuildCache open(std::uint64_t limit = kDefaultCacheLimit) { return {Tier::none, folder_, limit}; }
  bool kept(const std::string& name) const { return fs::exists(folder_ / name); }
  // Makes the entry look as if it was last used that many hours ago.
  void age(const std::string& name, int hours) {
    fs::last_write_time(folder_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  fs::path folder_ = fs::temp_directory_path() / ("assay-cache-" + std::to_string(::getpid()));
};

TEST_F(CacheTest, WhatWasAddedIsFoundByThisAndTheNextProcess) {
  {
    BuildCache cache = open();
    EXPECT_FALSE(cache.find(kA));
    EXPECT_EQ(read_file(cache.add(kA, "library")), "library");
    EXPECT_EQ(read_file(*cache.find(kA)), "library");
  }
  EXPECT_EQ(read_file(*open().find(kA)), "library");
}

TEST_F(CacheTest, TheLeastRecentlyUsedGoes) {
  BuildCache cache = open(3 * kBlock);
  for (const std::string& name : {kA, kB, kC}) cache.add(name, "x");
  age(kA, 3);
  age(kB, 2);
  age(kC, 1);
  ASSERT_TRUE(cache.find(kA));  // used now
  cache.add(kD, "x");
  EXPECT_TRUE(kept(kA));
  EXPECT_FALSE(kept(kB));
  EXPECT_TRUE(kept(kC));
  EXPECT_TRUE(kept(kD));
  EXPECT_EQ(cache.usage().bytes, 3 * kBlock);
  EXPECT_EQ(cache.usage().entries, 3u);
}

TEST_F(CacheTest, ASmallerLimitHoldsFromTheStart) {
  {
    BuildCache cache = open();
    for (const std::string& name : {kA, kB, kC}) cache.add(name, std::string(kBlock + 1, 'x'));
    age(kB, 1);
    EXPECT_EQ(cache.usage().bytes, 6 * kBlock);
  }
  BuildCache cache = open(4 * kBlock);
  EXPECT_TRUE(kept(kA));
  EXPECT_FALSE(kept(kB));
  EXPECT_EQ(cache.usage().bytes, 4 * kBlock);
}

TEST_F(CacheTest, WhatIsInUseOutlivesItsEntry) {
  BuildCache mine = open();
  const fs::path added = mine.add(kA, "added");
  open().add(kB, "found");
  const fs::path found = *mine.find(kB);
  BuildCache other = open(0);  // limit 0 keeps nothing
  EXPECT_EQ(other.usage().entries, 0u);
  EXPECT_EQ(read_file(added), "added");
  EXPECT_EQ(read_file(found), "found");
  EXPECT_EQ(read_file(*mine.find(kA)), "added");
  EXPECT_FALSE(other.find(kA));
}

TEST_F(CacheTest, EntriesAreReadableWhateverTheUmask) {
  const mode_t before = ::umask(077);
  const fs::path own = open().add(kA, "x");
  ::umask(before);
  EXPECT_EQ(fs::status(folder_ / kA).permissions(), fs::perms(0644));
}

TEST_F(CacheTest, WhatKilledProcessesLeftIsRemoved) {
  fs::create_directories(folder_);
  const pid_t child = ::fork();
  if (child == 0) {
    auto* cache = new BuildCache(Tier::none, folder_, kDefaultCacheLimit);
    cache->add(kA, "x");
    new FileLock(cache->lock(kB));
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto old = "build-" + std::to_string(child) + "-0",
             alive = "build-" + std::to_string(::getpid()) + "-0";
  for (const auto& name : {old, alive}) fs::create_directories(folder_ / name / "src");
  const std::string old_part = kC + ".1-0.tmp", new_part = kD + ".1-0.tmp";
  for (const std::string& name : {old_part, new_part}) std::ofstream(folder_ / name) << "x";
  age(old_part, 2);

  const BuildCache cache = open();
  EXPECT_TRUE(kept(kA));
  EXPECT_FALSE(kept(kB + ".lock"));
  EXPECT_FALSE(kept(old));
  EXPECT_TRUE(kept(alive));
  EXPECT_FALSE(kept(old_part));
  EXPECT_TRUE(kept(new_part)) << "somebody may be writing it";
  EXPECT_EQ(cache.usage().entries, 1u);
  std::size_t workplaces = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    workplaces += entry.path().filename().string().starts_with("assay-work-") ? 1 : 0;
  }
  EXPECT_EQ(workplaces, 1u) << "that of this process";
}

// The user may name a folder with files that are not the cache's.
TEST_F(CacheTest, ForeignFilesAreLeftAlone) {
  fs::create_directories(folder_ / "build-4194305-old");  // an id that no process has, and a word
  const std::string almost = std::string(63, 'a') + ".so";
  const std::string names[] = {"thesis.pdf", "my.lock", "my.tmp", "libfoo.so", almost};
  for (const std::string& name : names) {
    std::ofstream(folder_ / name) << "x";
    age(name, 99);
  }
  BuildCache cache = open(0);
  cache.add(kA, "x");
  for (const std::string& name : names) EXPECT_TRUE(kept(name)) << name;
  EXPECT_TRUE(kept("build-4194305-old"));
  EXPECT_EQ(cache.usage().entries, 0u);
}

// Another file system cannot have links to the entries.
TEST_F(CacheTest, SharesNothingButContentsAcrossFileSystems) {
  if (::geteuid() != 0 || !fs::is_directory("/dev/shm")) GTEST_SKIP() << "needs root and /dev/shm";
  const fs::path closed = "/dev/shm/assay-cache-" + std::to_string(::getpid());
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms(0700));
  {
    BuildCache cache(Tier::landlock, closed / "cache", kDefaultCacheLimit);
    EXPECT_FALSE(cache.workplace().string().starts_with("/dev/shm"));
    EXPECT_EQ(read_file(cache.add(kA, "x")), "x");
    BuildCache other(Tier::landlock, closed / "cache", kDefaultCacheLimit);
    EXPECT_EQ(read_file(*other.find(kA)), "x");
  }
  fs::remove_all(closed);
}

TEST_F(CacheTest, ALockIsHeldByOne) {
  const BuildCache one = open(), other = open();
  const FileLock held = one.lock(kA);
  EXPECT_FALSE(FileLock::if_free(folder_ / (kA + ".lock")));
  other.lock(kB);
}

}  // namespace
}  // namespace assay
