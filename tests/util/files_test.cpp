#include "util/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "assay/error.h"
#include "util/sha256.h"
#include "util/transient_fault.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest()
      : folder_(fs::temp_directory_path() / ("assay_files_test." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FilesTest() override { fs::remove_all(folder_); }
  std::string message_of(auto action) {
    try {
      action();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  fs::path folder_;
};

TEST_F(FilesTest, ContentsComeBackByteForByte) {
  std::string bytes;
  for (int i = 0; i < 70000; ++i) bytes.push_back(static_cast<char>(i * 31));
  write_file_atomically(folder_ / "a", bytes);
  EXPECT_EQ(read_file(folder_ / "a"), bytes);
  write_file_atomically(folder_ / "a", "");
  EXPECT_EQ(read_file(folder_ / "a"), "");
}

TEST_F(FilesTest, WhatCannotBeReadIsNeverTakenForEmpty) {
  EXPECT_THAT(message_of([&] { read_file(folder_); }),
              HasSubstr("cannot read " + folder_.string() + ": Is a directory"));
  EXPECT_THAT(message_of([&] { read_file(folder_ / "missing"); }), HasSubstr("No such file"));
}

TEST_F(FilesTest, FilesOfUnknownSizeAreReadToTheirEnd) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:"));
}

TEST_F(FilesTest, ASecretIsNobodyElsesFromTheBeginning) {
  write_file_atomically(folder_ / "a", "secret", 0600);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms(0600));
}

TEST_F(FilesTest, ATemporaryFileTakesThePlaceOfAnother) {
  write_file_atomically(folder_ / "a", "old");
  std::ofstream(folder_ / "b") << "new";
  replace_file(folder_ / "a", folder_ / "b");
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_FALSE(fs::exists(folder_ / "b"));
  std::ofstream(folder_ / "b") << "again";
  fs::create_directories(folder_ / "c" / "d");
  EXPECT_THAT(message_of([&] { replace_file(folder_ / "c", folder_ / "b"); }),
              HasSubstr("cannot replace"));
}

TEST_F(FilesTest, AnErrorOfTheSystemIsOneSentence) {
  EXPECT_EQ(message_of([] {
              errno = ENOENT;
              fail_with_errno("read", "results/x");
            }),
            "cannot read results/x: No such file or directory");
}

TEST_F(FilesTest, OneThatCanPassIsTold) {
  const auto fail = [](int error) {
    errno = error;
    fail_with_errno("open", "results/x");
  };
  EXPECT_THROW(fail(EMFILE), TransientFault);
  EXPECT_THAT(message_of([&] { fail(ENOENT); }), HasSubstr("cannot open results/x"));
}

TEST_F(FilesTest, WritingReplacesTheFileAndLeavesNothingElse) {
  write_file_atomically(folder_ / "a", "old");
  write_file_atomically(folder_ / "a", "new");
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FilesTest, WritersOfOneFileDoNotMeet) {
  const std::string contents(1 << 16, 'x');
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i)
          EXPECT_NO_THROW(write_file_atomically(folder_ / "a", contents));
      });
    }
  }
  EXPECT_EQ(read_file(folder_ / "a"), contents);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

// It belongs to a process in another pid namespace that shares the folder, or to one that was
// killed.
TEST_F(FilesTest, AForeignTemporaryFileIsLeftAlone) {
  for (int i = 0; i < 3; ++i) {
    const std::string name = "a." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
    std::ofstream(folder_ / name) << "foreign";
  }
  write_file_atomically(folder_ / "a", "mine");
  EXPECT_EQ(read_file(folder_ / "a"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 4);
}

TEST_F(FilesTest, TouchingSetsTheTime) {
  write_file_atomically(folder_ / "a", "x");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(9);
  fs::last_write_time(folder_ / "a", long_ago);
  touch(folder_ / "a");
  EXPECT_GT(fs::last_write_time(folder_ / "a"), long_ago + std::chrono::hours(8));
  touch(folder_ / "missing");
  EXPECT_FALSE(fs::exists(folder_ / "missing"));
}

TEST_F(FilesTest, WhatAKilledLoneWriterLeftIsOverwritten) {
  write_file_atomically(folder_ / "a.tmp", "longer than the new contents");
  write_file_alone(folder_ / "a", "new");
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_FALSE(fs::exists(folder_ / "a.tmp"));
}

TEST_F(FilesTest, AReaderOfTheOldFileKeepsIt) {
  write_file_atomically(folder_ / "a", "old");
  fs::create_hard_link(folder_ / "a", folder_ / "b");
  write_file_atomically(folder_ / "a", "new");
  EXPECT_EQ(read_file(folder_ / "b"), "old");
}

TEST_F(FilesTest, ErrorsNameThePath) {
  const fs::path missing = folder_ / "missing";
  EXPECT_THAT(message_of([&] { read_file(missing); }), HasSubstr(missing.string()));
  EXPECT_THAT(message_of([&] { write_file_atomically(missing / "a", "x"); }),
              HasSubstr(missing.string()));
}

TEST_F(FilesTest, AWritableFolderIsMadeWhereThereIsNone) {
  require_writable_directory(folder_ / "x" / "y");
  EXPECT_TRUE(fs::is_directory(folder_ / "x" / "y"));
  EXPECT_TRUE(fs::is_empty(folder_ / "x" / "y"));
}

TEST_F(FilesTest, AFolderIsMadeWithItsParents) {
  create_folder(folder_ / "x" / "y");
  EXPECT_TRUE(fs::is_directory(folder_ / "x" / "y"));
  EXPECT_NO_THROW(create_folder(folder_ / "x" / "y"));
  write_file_atomically(folder_ / "a", "x");
  EXPECT_THAT(message_of([&] { create_folder(folder_ / "a" / "b"); }),
              HasSubstr((folder_ / "a").string()));
}

TEST_F(FilesTest, AFileIsNoFolder) {
  write_file_atomically(folder_ / "a", "x");
  EXPECT_THROW(require_writable_directory(folder_ / "a"), Error);
  EXPECT_THROW(require_writable_directory(folder_ / "a" / "b"), Error);
}

TEST(Sha256, AgreesWithThePublishedExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, ZeroBytesCount) { EXPECT_NE(sha256_hex(std::string("a\0", 2)), sha256_hex("a")); }

}  // namespace
}  // namespace assay
