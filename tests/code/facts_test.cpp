#include "code/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::sources {
namespace {

TEST(CodeFacts, AreThoseOfAllFiles) {
  const auto facts =
      facts_of({{"a.h", "// a\n\ninline int f(int a) {\n  return a;\n}\n"},
                {"submission.cpp",
                 "#include \"a.h\"\nint g(int a) {\n  if (a)\n    return 1;\n"
                 "  return a ? 2 : 3;\n}\nint h() { for (;;) if (g(1)) return 0; }\n"}});
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->files, 2);
  EXPECT_EQ(facts->code_lines, 10);
  EXPECT_EQ(facts->comment_lines, 1);
  EXPECT_EQ(facts->blank_lines, 1);
  EXPECT_EQ(facts->duplicated_lines, 0);
  EXPECT_EQ(facts->functions, 3);
  EXPECT_EQ(facts->longest, (CodePlace{"g", "submission.cpp", 2, 5}));
  EXPECT_EQ(facts->deepest, (CodePlace{"h", "submission.cpp", 7, 2}));
  EXPECT_EQ(facts->most_complex, (CodePlace{"g", "submission.cpp", 2, 3}));  // same as h, but first
  EXPECT_FALSE(facts->warnings);
}

TEST(CodeFacts, OfNoFunctionNothingIsTheLongest) {
  const auto facts = facts_of({{"submission.cpp", "int x;\n"}});
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->functions, 0);
  EXPECT_FALSE(facts->longest || facts->deepest || facts->most_complex);
}

TEST(CodeFacts, OfNothingAndOfTooMuchTheyAreNotKnown) {
  EXPECT_FALSE(facts_of({}));
  const std::string half(kMostBytes / 2, ' '), byte = " ";
  EXPECT_TRUE(facts_of({{"a.h", half}, {"b.cpp", half}}));
  EXPECT_FALSE(facts_of({{"a.h", half}, {"b.cpp", half}, {"c.h", byte}}));
}

TEST(CodeFacts, NamesOfFilesArePrintable) {
  const auto facts = facts_of({{"\x1b[2J.cpp", "void f() {}\n"}});
  ASSERT_TRUE(facts && facts->longest);
  EXPECT_THAT(facts->longest->file, testing::Not(testing::HasSubstr("\x1b")));
}

}  // namespace
}  // namespace assay::sources
