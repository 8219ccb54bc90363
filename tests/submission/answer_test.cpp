#include "submission/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ChallengeSpec challenge(const std::string& name, std::vector<std::string> required,
                        std::vector<std::string> optional = {}) {
  ChallengeSpec spec;
  spec.name = name;
  spec.required_symbols = std::move(required);
  spec.optional_symbols = std::move(optional);
  return spec;
}

class AnswerTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path / name;
    fs::create_directories(path.parent_path());
    write_file_atomically(path, text);
    return path;
  }
  Recognised recognised(const fs::path& path) const {
    return recognise_challenge(path, read_answers(path), specs_);
  }

  testing::TemporaryFolder folder_;
  std::vector<ChallengeSpec> specs_{challenge("summing", {"sum"}),
                                    challenge("forward", {"fa_forward"}),
                                    challenge("backward", {"fa_backward"}, {"fa_forward"})};
};

TEST_F(AnswerTest, AFileIsTheWholeAnswerWhateverItsName) {
  const fs::path path = write("it's; mine.cpp", "int f();");
  write("helper.h", "");
  const auto answers = read_answers(path);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].language, Language::cpp);
  ASSERT_EQ(answers[0].sources.size(), 1u);
  EXPECT_EQ(answers[0].sources[0].name, "submission.cpp");
  EXPECT_EQ(answers[0].sources[0].contents, "int f();");
  EXPECT_EQ(answers[0].rejected, "");
}

TEST_F(AnswerTest, TheEndingIsTheLanguage) {
  EXPECT_EQ(read_answers(write("a.cu", "x"))[0].sources[0].name, "submission.cu");
  EXPECT_EQ(read_answers(write("a.cu", "x"))[0].device(), Device::sim);
  EXPECT_THAT(error_of([&] { read_answers(write("a.txt", "x")); }),
              HasSubstr("a.txt: an answer is a folder, or a file that ends in .cpp"));
}

TEST_F(AnswerTest, AFolderIsReadAsOneOfSubmissions) {
  write("a/submission.cpp", "x");
  write("a/submission.cu", "y");
  write("a/parts.h", "z");
  write("a/session.log", "");
  const auto answers = read_answers(folder_.path / "a");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].sources.size(), 2u);
  EXPECT_EQ(answers[1].language, Language::cuda);
  EXPECT_THAT(answers[0].ignored, ElementsAre("session.log"));
}

TEST_F(AnswerTest, WhatIsNotThereIsSaid) {
  EXPECT_THAT(error_of([&] { read_answers(folder_.path / "none"); }),
              HasSubstr("none: no such file or folder"));
  write("empty/notes.md", "");
  EXPECT_THAT(error_of([&] { read_answers(folder_.path / "empty"); }),
              HasSubstr("holds no submission.cpp and no submission.cu"));
}

TEST_F(AnswerTest, LinksAreRefusedInAFolderAndAsAFile) {
  const fs::path secret = write("secret.cpp", "secret");
  fs::create_directories(folder_.path / "a");
  fs::create_symlink(secret, folder_.path / "a" / "submission.cpp");
  for (const fs::path& path : {folder_.path / "a", folder_.path / "a" / "submission.cpp"}) {
    const auto answers = read_answers(path);
    EXPECT_EQ(answers[0].rejected, "submission.cpp: is a symbolic link");
    EXPECT_THAT(answers[0].sources, IsEmpty());
  }
}

TEST_F(AnswerTest, TheChallengeIsThatOfTheFolderOrOfTheOneAbove) {
  for (const char* name : {"summing/submission.cpp", "m/summing/2/submission.cpp"}) {
    const fs::path file = write(name, "int fa_backward(int);");
    EXPECT_EQ(recognised(file).challenge, "summing") << name;
    EXPECT_EQ(recognised(file.parent_path()).challenge, "summing") << name;
    EXPECT_EQ(recognised(file.parent_path() / ".").how, "its folder says so") << name;
  }
}

TEST_F(AnswerTest, ElseTheFunctionsTell) {
  EXPECT_EQ(recognised(write("a.cpp", "extern \"C\" int sum (int);")).challenge, "summing");
  EXPECT_EQ(recognised(write("a.cpp", "int sum(int) {}")).how, "it has sum()");
  // A backward pass may include the forward one.
  EXPECT_EQ(recognised(write("b.cpp", "fa_forward(a) fa_backward(b)")).challenge, "backward");
  EXPECT_EQ(recognised(write("c.cpp", "fa_forward(a)")).challenge, "forward");
}

TEST_F(AnswerTest, WhatIsNotClearNamesTheCandidates) {
  EXPECT_THAT(error_of([&] { recognised(write("a.cpp", "int main() {}")); }),
              HasSubstr("--challenge: summing, forward, backward"));
  EXPECT_THAT(error_of([&] { recognised(write("b.cpp", "sum(1) fa_forward(2)")); }),
              HasSubstr("could answer summing, forward: say which"));
}

TEST(FunctionsNamed, OnlyCodeCounts) {
  const std::vector<std::string> kNames{"sum", "other"};
  const auto in = [&](const char* text) { return functions_named(text, kNames); };
  EXPECT_THAT(in("int sum(int);"), ElementsAre("sum"));
  EXPECT_THAT(in("int sum\n  (int); other()"), ElementsAre("sum", "other"));
  for (const char* text : {"// sum(1)", "/* sum( */", "\"sum(\"", "\"\\\"sum(\"", "int sum;",
                           "my_sum(1)", "sum2(1)", "'\"' /* \" sum( */", "/* sum("})
    EXPECT_THAT(in(text), IsEmpty()) << text;
  EXPECT_THAT(in("'\"'; sum(1)"), ElementsAre("sum"));
  EXPECT_THAT(in("1'000; sum(1)"), ElementsAre("sum"));
  EXPECT_THAT(in("\"unfinished\n sum(1)"), ElementsAre("sum"));
}

}  // namespace
}  // namespace assay
