#include "submission/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SubmissionTest : public ::testing::Test {
 protected:
  SubmissionTest()
      : root_(fs::temp_directory_path() / ("assay-submission-" + std::to_string(::getpid()))) {
    fs::create_directories(folder());
  }
  ~SubmissionTest() override { fs::remove_all(root_); }

  fs::path folder() const { return root_ / "m" / "challenge_a"; }
  void put(const std::string& name, const std::string& text = "int x;") const {
    std::ofstream(folder() / name) << text;
  }
  std::vector<Submission> read_all() const {
    return read_submissions(folder(), "m", "challenge_a", "");
  }
  Submission read() const { return read_all().front(); }
  std::vector<Submission> find(std::vector<std::string>& warnings) const {
    return find_submissions(root_, {"challenge_a", "challenge_b"}, warnings);
  }

  fs::path root_;
};

TEST_F(SubmissionTest, ReadsSourcesWithTheMainFileFirst) {
  put("helper.cpp");
  put("submission.cpp", "int main_file;");
  put("part.h");
  put("notes.md");
  put("test.cpp", "int tests;");
  const Submission s = read();
  EXPECT_EQ(s.rejected, "");
  ASSERT_EQ(s.sources.size(), 3u);
  EXPECT_EQ(s.sources[0].name, "submission.cpp");
  EXPECT_EQ(s.sources[0].contents, "int main_file;");
  EXPECT_EQ(s.test_source, "int tests;");
}

TEST_F(SubmissionTest, RejectsWhatIsNotAPlainFile) {
  put("submission.cpp");
  fs::create_symlink("/etc/passwd", folder() / "link.h");
  EXPECT_THAT(read().rejected, HasSubstr("link.h: is a symbolic link"));
  fs::remove(folder() / "link.h");
  fs::create_hard_link(folder() / "submission.cpp", folder() / "twin.h");
  EXPECT_THAT(read().rejected, HasSubstr("hard link"));
  fs::remove(folder() / "twin.h");
  ASSERT_EQ(::mkfifo((folder() / "pipe.h").c_str(), 0600), 0);
  EXPECT_THAT(read().rejected, HasSubstr("pipe.h: is not a regular file"));
}

TEST_F(SubmissionTest, RejectsNamesThatToolsMisread) {
  for (const char* name :
       {"@x.cpp", "-fplugin=x.cpp", ".hidden.cpp", "two words.cpp", "line\nbreak.cpp"}) {
    put("submission.cpp");
    put(name);
    const Submission s = read();
    EXPECT_NE(s.rejected, "") << name;
    EXPECT_TRUE(s.sources.empty()) << name;
    fs::remove(folder() / name);
  }
}

TEST_F(SubmissionTest, WhatIsNoSourceIsNotPartOfTheAnswer) {
  put("submission.cpp");
  const std::string alone = source_hash(read());
  for (const char* name : {"session.jsonl", "solve.py", "build.sh", "Makefile", "two words.log",
                           ".gitignore", "a.out", "notes.md", "lib.so", "submission.o"}) {
    put(name, std::string((4u << 20) + 1, ' '));
  }
  fs::create_directories(folder() / "__pycache__" / "deeper");
  fs::create_symlink("/etc/passwd", folder() / "link");
  for (int i = 0; i < 100; ++i) put("log." + std::to_string(i));
  const Submission s = read();
  EXPECT_EQ(s.rejected, "");
  ASSERT_EQ(s.sources.size(), 1u);
  EXPECT_EQ(source_hash(s), alone);
  EXPECT_THAT(s.ignored, ::testing::IsSupersetOf(
                             {"session.jsonl", "build.sh", "__pycache__", "link", ".gitignore"}));
  EXPECT_THAT(s.ignored, ::testing::Not(::testing::Contains("notes.md")));
  std::vector<std::string> warnings;
  EXPECT_EQ(find(warnings).size(), 1u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("challenge_a: not part of the answer: .gitignore, Makefile"));
  EXPECT_THAT(warnings[0], HasSubstr("and 107 more"));
}

TEST_F(SubmissionTest, RejectsHugeFiles) {
  put("submission.cpp", std::string((4u << 20) + 1, ' '));
  EXPECT_THAT(read().rejected, HasSubstr("larger than 4 MiB"));
}

TEST_F(SubmissionTest, SaysWhatIsMissing) {
  EXPECT_THAT(read().rejected, HasSubstr("no source files in"));
  put("other.cpp");
  EXPECT_THAT(read().rejected, HasSubstr("submission.cpp or submission.cu is missing"));
}

std::vector<std::string> names_of(const Submission& s) {
  std::vector<std::string> names;
  for (const SourceFile& file : s.sources) names.push_back(file.name);
  return names;
}

TEST_F(SubmissionTest, AFolderMayHoldAnAnswerInEachLanguage) {
  for (const char* name : {"helper.cpp", "helper.cu", "part.cuh", "part.h", "submission.cpp",
                           "submission.cu", "test.cpp"}) {
    put(name);
  }
  put("test.cu", "int x; // in CUDA");
  const std::vector<Submission> all = read_all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].device(), Device::cpu);
  EXPECT_EQ(names_of(all[0]), (std::vector<std::string>{"submission.cpp", "helper.cpp", "part.h"}));
  EXPECT_EQ(all[0].test_source, "int x;");
  EXPECT_EQ(all[1].device(), Device::sim);
  EXPECT_EQ(names_of(all[1]),
            (std::vector<std::string>{"submission.cu", "helper.cu", "part.cuh", "part.h"}));
  EXPECT_EQ(all[1].test_source, "int x; // in CUDA");
  EXPECT_EQ(all[1].model, "m");
}

TEST_F(SubmissionTest, CudaAloneIsOneSubmission) {
  put("submission.cu");
  put("other.cpp");
  ASSERT_EQ(read_all().size(), 1u);
  EXPECT_EQ(read().language, Language::cuda);
  EXPECT_EQ(names_of(read()), std::vector<std::string>{"submission.cu"});
  put("bad name.h");
  ASSERT_EQ(read_all().size(), 1u);
  EXPECT_EQ(read().language, Language::cuda);
  EXPECT_THAT(read().rejected, HasSubstr("bad name.h"));
  EXPECT_TRUE(read().sources.empty());
}

TEST_F(SubmissionTest, NumberedAttemptsComeInNumericOrder) {
  for (const char* attempt : {"10", "2", "1"}) {
    fs::create_directories(folder() / attempt);
    std::ofstream(folder() / attempt / "submission.cpp") << "int x;";
  }
  std::vector<std::string> warnings, attempts;
  for (const Submission& s : find(warnings)) attempts.push_back(s.attempt);
  EXPECT_EQ(attempts, (std::vector<std::string>{"1", "2", "10"}));
  EXPECT_TRUE(warnings.empty());

  put("submission.cu");
  attempts.clear();
  for (const Submission& s : find(warnings)) {
    attempts.push_back(s.attempt);
    EXPECT_EQ(s.rejected, "");
  }
  EXPECT_EQ(attempts, (std::vector<std::string>{"", "1", "2", "10"}));
}

TEST_F(SubmissionTest, AModelWhoseNameIsNoTextIsLeftOutWithAWarning) {
  for (const char* name : {"m\xff", "m\n"}) {
    fs::create_directories(root_ / name / "challenge_a");
    std::ofstream(root_ / name / "challenge_a" / "submission.cpp") << "int x;";
  }
  put("submission.cpp");
  std::vector<std::string> warnings;
  EXPECT_EQ(find(warnings).size(), 1u);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[1], HasSubstr("m\\xff: the model's name is not plain text"));
}

TEST_F(SubmissionTest, WarnsAboutUnknownChallengesAndEmptyModels) {
  put("submission.cpp");
  fs::create_directories(root_ / "m" / "chalenge_b");
  fs::create_directories(root_ / "idle");
  std::vector<std::string> warnings;
  EXPECT_EQ(find(warnings).size(), 1u);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], HasSubstr("idle answers no challenge"));
  EXPECT_THAT(warnings[1], HasSubstr("did you mean 'challenge_b'"));
}

TEST_F(SubmissionTest, TheHashCoversNamesContentsAndTests) {
  put("submission.cpp");
  const std::string first = source_hash(read());
  EXPECT_EQ(first, source_hash(read()));
  put("test.cpp");
  const std::string with_tests = source_hash(read());
  EXPECT_NE(first, with_tests);
  put("part.h");
  EXPECT_NE(with_tests, source_hash(read()));
}

}  // namespace
}  // namespace assay
