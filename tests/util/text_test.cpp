#include "util/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(Nearest, FindsTypingErrors) {
  const std::vector<std::string> names{"textbook", "tuned", "flawed"};
  EXPECT_EQ(nearest("textbok", names), "textbook");
  EXPECT_EQ(nearest("tunde", names), "tuned");
  EXPECT_EQ(nearest("something else", names), std::nullopt);
}

TEST(UnknownName, SuggestsOrLists) {
  EXPECT_EQ(unknown_name("model", "flawd", {"flawed", "tuned"}),
            "unknown model 'flawd'; did you mean 'flawed'?");
  EXPECT_EQ(unknown_name("model", "zebra", {"flawed", "tuned"}),
            "unknown model 'zebra'; known: flawed, tuned");
  EXPECT_THAT(unknown_name("model", "x\x1b[2J", {}), HasSubstr("there are none"));
  EXPECT_EQ(unknown_name("case", "zebra", {"b", "a", "b"}), "unknown case 'zebra'; known: b, a");
  EXPECT_EQ(unknown_name("case", "zebra",
                         {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"}),
            "unknown case 'zebra': none of the 13 known ones is near");
}

TEST(Wrapped, BreaksAtSpacesAndLeavesLongWordsWhole) {
  EXPECT_EQ(wrapped("one two three", 13, "> "), "one two three\n");
  EXPECT_EQ(wrapped("one two three", 12, "> "), "one two\n> three\n");
  EXPECT_EQ(wrapped("one two  three", 7, "> "), "one two\n> three\n");
  EXPECT_EQ(wrapped("a longest b", 3, ""), "a\nlongest\nb\n");
  EXPECT_EQ(wrapped("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9", 5, ""),
            "\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\n");
  EXPECT_EQ(wrapped("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9", 4, ""),
            "\xc3\xa9\xc3\xa9\n\xc3\xa9\xc3\xa9\n");
  EXPECT_EQ(wrapped("", 5, ""), "");
}

TEST(ColumnsOf, AreThoseOfTheWidestLine) {
  EXPECT_EQ(columns_of("a\n\xc3\xa9\xc3\xa9\xc3\xa9\nab\n"), 3u);
  EXPECT_EQ(columns_of("abcd"), 4u);
  EXPECT_EQ(columns_of(""), 0u);
}

TEST(Printable, NeutralisesHostileBytes) {
  EXPECT_EQ(printable("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(printable("tab\tand\nline"), "tab\tand\nline");
  EXPECT_EQ(printable("\xc3\xa9\xff\xc3"), "\xc3\xa9\\xff\\xc3");  // good, bad, cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                  // overlong
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");         // right-to-left override
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");         // surrogate
}

TEST(Printable, CutsLongTexts) {
  EXPECT_EQ(printable("a\nb\nc\nd", 2), "a\nb\n... (3 more bytes)");
  EXPECT_EQ(printable(std::string(30, 'x'), 1, 10), "xxxxxxxxxx...");
}

TEST(TextTable, AlignsWordsLeftAndNumbersRight) {
  TextTable table({"name", "n"});
  table.add({"\xc3\xa9t\xc3\xa9", "1.5"});
  table.add({"a", "100"});
  EXPECT_EQ(table.str(), "name  n\n\xc3\xa9t\xc3\xa9   1.5\na     100\n");
}

TEST(TextTable, WrapsTheLastColumnWhereItIsTooWide) {
  TextTable table({"name", "why"});
  table.add({"a", std::string(20, 'x') + " " + std::string(20, 'y')});
  table.add({"b", "short"});
  const std::string xs(20, 'x'), ys(20, 'y');
  EXPECT_EQ(table.str(46), "name  why\na     " + xs + "\n      " + ys + "\nb     short\n");
  EXPECT_EQ(table.str(47), "name  why\na     " + xs + " " + ys + "\nb     short\n");
  EXPECT_EQ(table.str(10), table.str(36)) << "30 columns at least";
}

TEST(AmountText, HasFourDigitsAndBytesByPowersOf1024) {
  EXPECT_EQ(amount_text(1.34567, ""), "1.346");
  EXPECT_EQ(amount_text(8, "B/row"), "8 B/row");
  EXPECT_EQ(amount_text(0, "B"), "0 B");
  EXPECT_EQ(amount_text(1000, "B"), "1000 B");
  EXPECT_EQ(amount_text(524288, "B"), "512 KiB");
  EXPECT_EQ(amount_text(1025.0 * 1024, "B"), "1.001 MiB");
  EXPECT_EQ(amount_text(3.0 * (1ll << 40), "B"), "3 TiB");
  EXPECT_EQ(amount_text(HUGE_VAL, "B"), "inf TiB");
}

}  // namespace
}  // namespace assay
