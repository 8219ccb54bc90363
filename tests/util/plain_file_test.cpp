#include "util/plain_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "assay/error.h"
#include "support/temporary_folder.h"
#include "util/fd.h"
#include "util/transient_fault.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlainFileTest : public ::testing::Test {
 protected:
  PlainFile read(const std::string& name) const {
    constexpr std::size_t kMost = 1 << 20;
    return read_plain_file(fd_.get(), name, kMost);
  }
  fs::path write(const std::string& name, const std::string& contents) const {
    fs::path path = folder_.path / name;
    std::ofstream(path) << contents;
    return path;
  }

  testing::TemporaryFolder folder_;
  Fd fd_{::open(folder_.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(PlainFileTest, IsReadWhole) {
  write("a", std::string(300'000, 'x'));
  EXPECT_EQ(read("a").contents, std::string(300'000, 'x'));
  EXPECT_EQ(read("a").objection, "");
}

TEST_F(PlainFileTest, NothingElseIsRead) {
  const fs::path file = write("a", "x");
  fs::create_symlink(file, folder_.path / "link");
  fs::create_directory(folder_.path / "folder");
  ASSERT_EQ(::mkfifo((folder_.path / "pipe").c_str(), 0600), 0);
  write("large", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(read("link").objection, "is a symbolic link");
  EXPECT_EQ(read("folder").objection, "is not a regular file");
  EXPECT_EQ(read("pipe").objection, "is not a regular file");
  EXPECT_EQ(read("large").objection, "is larger than 1 MiB");
  EXPECT_THAT(read("missing").objection, HasSubstr("cannot be read: No such file"));
  fs::create_hard_link(file, folder_.path / "twin");
  EXPECT_EQ(read("a").objection, "is a hard link to another file");
}

TEST_F(PlainFileTest, AFaultOfTheMachineIsNoObjectionToTheFile) {
  write("a", "x");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{static_cast<rlim_t>(fd_.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::string told;
  try {
    read("a");
  } catch (const TransientFault& e) {
    told = e.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(told, HasSubstr("/a: Too many open files"));
}

}  // namespace
}  // namespace assay
