#include "cli/object_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "util/files.h"
#include "util/temporary_folder.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// When the compiler began, if that was after the files were written.
constexpr auto kLater = fs::file_time_type::max();

TEST(Prerequisites, AreWhatFollowsTheColon) {
  EXPECT_THAT(prerequisites("a.o : a.cu /usr/include/x.h \\\n    b.h\n"),
              ElementsAre("a.cu", "/usr/include/x.h", "b.h"));
  EXPECT_THAT(prerequisites("a.o: a\\ b.cu c\\#d.h e$$f.h"),
              ElementsAre("a b.cu", "c#d.h", "e$f.h"));
  EXPECT_THAT(prerequisites("c:/x.o : a.cu"), ElementsAre("a.cu"));
  EXPECT_THAT(prerequisites(""), IsEmpty());
  EXPECT_THAT(prerequisites("a.o :"), IsEmpty());
  EXPECT_THAT(prerequisites("a.o: a.cu \\"), ElementsAre("a.cu"));
}

class ObjectCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_alone(object_, "object");
    write_file_alone(source_, "source");
    write_file_alone(header_, "header");
  }
  std::string found(const std::string& command) {
    const auto path = objects_.find(command);
    return path ? read_file(*path) : "";
  }

  TemporaryFolder folder_{"assay-object-cache-"};
  fs::path object_ = folder_.path() / "a.o", source_ = folder_.path() / "a.cu",
           header_ = folder_.path() / "a.h";
  BuildCache cache_{sandbox::Tier::none, folder_.path() / "cache", kDefaultCacheLimit};
  ObjectCache objects_{cache_};
};

TEST_F(ObjectCacheTest, KeepsAnObjectForItsCommandAndFiles) {
  EXPECT_EQ(found("command"), "");
  objects_.add("command", object_, {source_, header_}, kLater);
  EXPECT_EQ(found("command"), "object");
  EXPECT_EQ(found("another"), "");
  write_file_alone(header_, "changed");
  EXPECT_EQ(found("command"), "");
  write_file_alone(header_, "header");
  EXPECT_EQ(found("command"), "object");
  fs::remove(header_);
  EXPECT_EQ(found("command"), "");
}

TEST_F(ObjectCacheTest, TheLastObjectOfACommandCounts) {
  objects_.add("command", object_, {source_}, kLater);
  write_file_alone(source_, "changed");
  write_file_alone(object_, "object of what changed");
  objects_.add("command", object_, {source_}, kLater);
  EXPECT_EQ(found("command"), "object of what changed");
  BuildCache other(sandbox::Tier::none, cache_.folder(), kDefaultCacheLimit);
  EXPECT_EQ(read_file(*ObjectCache(other).find("command")), "object of what changed");
}

TEST_F(ObjectCacheTest, KeepsNothingThatItCouldNotCheck) {
  objects_.add("command", object_, {source_, folder_.path() / "gone.h"}, kLater);
  EXPECT_EQ(found("command"), "");
  const fs::path odd = folder_.path() / "two\nlines.h";
  write_file_alone(odd, "");
  objects_.add("command", object_, {odd}, kLater);
  EXPECT_EQ(found("command"), "");
  objects_.add("command", object_, {}, kLater);
  EXPECT_EQ(found("command"), "");
}

// What the compiler read may be the file as it was before.
TEST_F(ObjectCacheTest, AFileWrittenWhileTheCompilerRanIsNotKnown) {
  const auto begun = fs::last_write_time(source_) + std::chrono::seconds(1);
  fs::last_write_time(header_, begun + std::chrono::seconds(1));
  objects_.add("command", object_, {source_, header_}, begun);
  EXPECT_EQ(found("command"), "");
  objects_.add("command", object_, {source_}, begun);
  EXPECT_EQ(found("command"), "object");
}

TEST_F(ObjectCacheTest, AnObjectThatWasRemovedIsMadeAgain) {
  objects_.add("command", object_, {source_}, kLater);
  for (const auto& entry : fs::directory_iterator(cache_.folder())) {
    if (entry.path().extension() == ".o") fs::remove(entry.path());
  }
  BuildCache other(sandbox::Tier::none, cache_.folder(), kDefaultCacheLimit);
  EXPECT_FALSE(ObjectCache(other).find("command"));
}

TEST_F(ObjectCacheTest, KeepsAProgramForItsCommandAndTheContentsOfItsObjects) {
  EXPECT_FALSE(objects_.find_program("command", {object_, header_}));
  objects_.add_program("command", {object_, header_}, source_);
  const auto kept = objects_.find_program("command", {object_, header_});
  ASSERT_TRUE(kept);
  EXPECT_EQ(read_file(*kept), "source");
  EXPECT_FALSE(objects_.find_program("another", {object_, header_}));
  EXPECT_FALSE(objects_.find_program("command", {object_}));
  EXPECT_FALSE(objects_.find_program("command", {header_, object_}));
  write_file_alone(object_, "changed");
  EXPECT_FALSE(objects_.find_program("command", {object_, header_}));
}

}  // namespace
}  // namespace assay::cli
