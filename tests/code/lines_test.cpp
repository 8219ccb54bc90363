#include "code/lines.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::sources {
namespace {

TEST(Lines, AreCodeOrCommentOrBlank) {
  EXPECT_EQ(line_counts(""), (LineCounts{0, 0, 0}));
  EXPECT_EQ(line_counts("\n"), (LineCounts{0, 0, 1}));
  EXPECT_EQ(line_counts("int x;"), (LineCounts{1, 0, 0}));
  EXPECT_EQ(line_counts("int x;  // code\n  // comment\n \t\r\n"), (LineCounts{1, 1, 1}));
  EXPECT_EQ(line_counts("/* one\n\nthree */\nx; /* a\nb */ y;\n"), (LineCounts{2, 2, 1}));
}

TEST(Lines, WhatLooksLikeACommentInAStringIsCode) {
  EXPECT_EQ(line_counts("f(\"// no\");\ng(\"/*\");\nh();\n"), (LineCounts{3, 0, 0}));
  // In a raw string, every line that is not blank counts as code.
  EXPECT_EQ(line_counts("auto s = R\"(\n// a\n\n/* b\n)\";\n// c\n"), (LineCounts{4, 1, 1}));
}

TEST(Lines, DirectivesAreCode) {
  EXPECT_EQ(line_counts("#include <a>\n#define A \\\n  1\n"), (LineCounts{3, 0, 0}));
}

// Lines of code that are all different.
std::string lines(int from, int count) {
  std::string text;
  for (int i = from; i < from + count; ++i) text += "x" + std::to_string(i) + " = 1;\n";
  return text;
}

TEST(DuplicatedLines, AreRunsThatStandTwice) {
  EXPECT_EQ(duplicated_lines({}), 0);
  EXPECT_EQ(duplicated_lines({lines(0, 40)}), 0);
  EXPECT_EQ(duplicated_lines({lines(0, 6) + "y;\n" + lines(0, 6)}), 12);
  EXPECT_EQ(duplicated_lines({lines(0, 8) + "y;\n" + lines(0, 8) + "z;\n" + lines(2, 6)}), 22);
  EXPECT_EQ(duplicated_lines({lines(0, 5) + "y;\n" + lines(0, 5)}), 0) << "too short";
}

TEST(DuplicatedLines, MayStandInTwoFilesButRunOnInNone) {
  const std::string a = lines(0, 7), b = "y;\n" + lines(0, 7);
  EXPECT_EQ(duplicated_lines({a, b}), 14);
  const std::string head = lines(0, 3), tail = lines(3, 3), whole = lines(0, 6);
  EXPECT_EQ(duplicated_lines({head, tail, whole}), 0);
}

TEST(DuplicatedLines, SpacesCommentsAndLinesOfBracketsMakeNoDifference) {
  const std::string one = "if (a) {\n  b = 1;\n}\nc = 2;\nd = 3;\ne = 4;\nf = 5;\n";
  const std::string two =
      "if ( a )  // why\n{\nb=1;\n\n}\n// more\nc = 2;\nd = 3;\ne = 4;\nf = 5;\n";
  // "if (a)" and "if (a) {" differ, which leaves five copied lines: one too few.
  EXPECT_EQ(duplicated_lines({one, two}), 0);
  EXPECT_EQ(duplicated_lines({one + "g = 6;\n", two + "g = 6;\n"}), 12);
}

TEST(DuplicatedLines, OverlapIsNoCopy) {
  std::string text;
  for (int i = 0; i < 11; ++i) text += "x += 1;\n";
  EXPECT_EQ(duplicated_lines({text}), 0);
  EXPECT_EQ(duplicated_lines({text + "x += 1;\n"}), 12);
}

}  // namespace
}  // namespace assay::sources
