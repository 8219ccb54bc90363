#include "util/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "support/error_of.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TemporaryFolder, IsNewAndGoesWithAllThatIsInIt) {
  fs::path first;
  {
    const TemporaryFolder folder("assay-test-"), other("assay-test-");
    first = folder.path();
    EXPECT_NE(first, other.path());
    EXPECT_EQ(first.parent_path(), fs::temp_directory_path());
    EXPECT_THAT(first.filename().string(), StartsWith("assay-test-"));
    fs::create_directories(first / "in" / "it");
    std::ofstream(first / "in" / "it" / "file") << "x";
  }
  EXPECT_FALSE(fs::exists(first));
}

TEST(TemporaryFolder, NobodyElseMayEnterIt) {
  const TemporaryFolder folder("assay-test-");
  struct stat info {};
  ASSERT_EQ(::stat(folder.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
}

TEST(TemporaryFolder, OneThatIsMadeElsewhereStays) {
  const TemporaryFolder parent("assay-test-");
  const fs::path made = make_new_folder(parent.path(), "kept-");
  EXPECT_TRUE(fs::is_directory(made));
  EXPECT_EQ(made.parent_path(), parent.path());
  EXPECT_NE(make_new_folder(parent.path(), "kept-"), made);
}

TEST(TemporaryFolder, WhereNoneCanBeMadeTheErrorNamesThePlaceTheCauseAndTheRemedy) {
  EXPECT_EQ(testing::error_of([] { make_new_folder("/nowhere", "a-"); }),
            "cannot make a folder in /nowhere: No such file or directory");
  const char* set = std::getenv("TMPDIR");
  const std::optional<std::string> before =
      set != nullptr ? std::optional(std::string(set)) : std::nullopt;
  ::setenv("TMPDIR", "/nowhere", 1);
  const std::string said = testing::error_of([] { TemporaryFolder("a-"); });
  before ? ::setenv("TMPDIR", before->c_str(), 1) : ::unsetenv("TMPDIR");
  EXPECT_THAT(said, AllOf(StartsWith("cannot make a folder in "), HasSubstr("TMPDIR")));
}

}  // namespace
}  // namespace assay
