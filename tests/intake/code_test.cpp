#include "intake/code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::intake {
namespace {

using ::testing::ElementsAre;

bool defines(const std::string& code, const std::string& name = "f") {
  return !functions_defined(without_comments_and_literals(code), {name}).empty();
}

TEST(IntakeCode, ADefinitionHasABody) {
  EXPECT_TRUE(defines("int f() {}"));
  EXPECT_TRUE(defines("extern \"C\" int f(\n    int a,\n    int (*g)(int)) \n{ return 0; }"));
  EXPECT_TRUE(defines("int f() noexcept { }"));
  EXPECT_TRUE(defines("auto f(int x) -> int { }"));
  EXPECT_TRUE(defines("int f (void) __attribute__((hot)) {"));
  EXPECT_FALSE(defines("int f();"));
  EXPECT_FALSE(defines("int f() noexcept;"));
  EXPECT_FALSE(defines("int y = f(1);"));
  EXPECT_FALSE(defines("if (f(1)) { }"));
  EXPECT_FALSE(defines("if (f(1) == 0) { }"));
  EXPECT_FALSE(defines("int gf() {}"));
  EXPECT_FALSE(defines("int f_() {}"));
  EXPECT_FALSE(defines("int f( {"));
  EXPECT_FALSE(defines("f"));
  EXPECT_FALSE(defines("int f() {}", ""));
}

TEST(IntakeCode, FunctionsAreFoundInTheOrderAskedFor) {
  EXPECT_THAT(
      functions_defined("int c() {} int b(int (*x)(int)) {} ) ( int a() {}", {"a", "b", "d", "c"}),
      ElementsAre("a", "b", "c"));
}

TEST(IntakeCode, CommentsAndLiteralsDefineNothing) {
  EXPECT_FALSE(defines("// int f() {}"));
  EXPECT_FALSE(defines("// goes on \\\nint f() {}"));
  EXPECT_FALSE(defines("/* int f() {} */"));
  EXPECT_FALSE(defines("const char* s = \"int f() {}\";"));
  EXPECT_FALSE(defines("const char* s = R\"x(int f() {} )\" )x\";"));
  EXPECT_FALSE(defines("/* never closed int f() {}"));
  EXPECT_TRUE(defines("char q = '\"'; int f() {} char r = '\"';"));
  EXPECT_TRUE(defines("int n = 1'000'000; int f() {} int m = 2'0;"));
  EXPECT_TRUE(defines("const char* s = \"\\\"\"; int f() {}"));
}

TEST(IntakeCode, BlankingKeepsLines) {
  const std::string code = "a\n/* b\nc */ \"d\ne\nR\"(\n)\" // f\ng";
  const std::string bare = without_comments_and_literals(code);
  EXPECT_EQ(bare.size(), code.size());
  EXPECT_EQ(std::count(bare.begin(), bare.end(), '\n'), std::count(code.begin(), code.end(), '\n'));
}

TEST(IntakeCode, TextThatIsMadeToBeSlowIsNot) {
  constexpr std::size_t kMany = 1 << 20;
  std::string calls, raw;
  while (calls.size() < kMany) calls += "f(";
  while (raw.size() < kMany) raw += "R\"";
  EXPECT_FALSE(defines(calls));
  EXPECT_FALSE(defines(raw));
  std::string qualified;
  while (qualified.size() < kMany) qualified += "f()try ";
  EXPECT_FALSE(defines(qualified));
}

TEST(IntakeCode, FileNamesLoseTheirFolders) {
  EXPECT_THAT(file_names_in("see ./src/a-b.cpp and `x.cuh`, e.g. v1.2 or C++."),
              ElementsAre("a-b.cpp", "x.cuh"));
  EXPECT_THAT(file_names_in("../../etc/passwd.h a\\b\\c.cpp"), ElementsAre("passwd.h", "c.cpp"));
  EXPECT_THAT(file_names_in("a.cpp a.cpp"), ElementsAre("a.cpp"));
  EXPECT_THAT(file_names_in("it is in submission.cpp."), ElementsAre("submission.cpp"));
}

TEST(IntakeCode, ALineNamesAFileWhenItSaysLittleElse) {
  for (const char* line :
       {"### `submission.cpp`", "**submission.cpp**", "submission.cpp:", "File: submission.cpp",
        "Filename: `submission.cpp`", "1. **`src/submission.cpp`**",
        "## 2) submission.cpp (kernel)",
        "Here is the complete submission.cpp:", "`submission.cpp` \xe2\x80\x94 the whole answer",
        "<file path=\"submission.cpp\">", "**submission.cpp**:", "==== submission.cpp ===="}) {
    EXPECT_EQ(file_named_by(line), "submission.cpp") << line;
  }
  for (const char* line :
       {"", "The answer:", "Unlike helper.h this is in submission.cpp:",
        "submission.cpp now handles masks.", "I changed submission.cpp as you asked"}) {
    EXPECT_EQ(file_named_by(line), "") << line;
  }
  EXPECT_EQ(file_named_by(std::string(400, ' ') + "submission.cpp"), "");
}

TEST(IntakeCode, ACommentNamesItsFile) {
  for (const char* line : {"// submission.cpp", "/* submission.cpp */", "// File: submission.cpp",
                           "// ===== submission.cpp =====", "//submission.cpp - layer norm"}) {
    EXPECT_EQ(file_named_by_comment(line), "submission.cpp") << line;
  }
  for (const char* line : {"// See abi.h for the interface", "#include \"helper.h\"",
                           "// Compile with submission.cpp:", "int x; // submission.cpp"}) {
    EXPECT_EQ(file_named_by_comment(line), "") << line;
  }
}

}  // namespace
}  // namespace assay::intake
