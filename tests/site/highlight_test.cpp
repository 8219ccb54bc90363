#include "site/highlight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace assay::site {
namespace {

using testing::HasSubstr;

std::string marked_up(std::string_view source) { return highlighted(source, "L", {}).str(); }

TEST(Highlight, TellsThePartsOfASourceApart) {
  EXPECT_EQ(marked_up("int x = 1; // one"), "<b>int</b> x = 1; <i>// one</i>");
  EXPECT_EQ(marked_up("f(\"a\\\"b\", 'c')"), "f(<u>&#34;a\\&#34;b&#34;</u>, <u>&#39;c&#39;</u>)");
  EXPECT_EQ(marked_up("/* a\n b */x"), "<i>/* a\n b */</i>x");
  EXPECT_EQ(marked_up("__global__ void k()"), "<b>__global__</b> <b>void</b> k()");
  EXPECT_EQ(marked_up("interior"), "interior");
}

TEST(Highlight, DirectivesBeginALine) {
  EXPECT_EQ(marked_up("#include <a.h>\nx"), "<em>#include &lt;a.h&gt;</em>\nx");
  EXPECT_EQ(marked_up("  #define A 1"), "  <em>#define</em> A 1");
  EXPECT_EQ(marked_up("a # b"), "a # b");
}

TEST(Highlight, RawStringsEndWithTheirDelimiter) {
  EXPECT_EQ(marked_up("R\"x(a)\" )x\" int"), "<u>R&#34;x(a)&#34; )x&#34;</u> <b>int</b>");
  EXPECT_EQ(marked_up("u8R\"(a\nb)\"c"), "<u>u8R&#34;(a\nb)&#34;</u>c");
}

TEST(Highlight, SeparatorsOfDigitsBeginNoCharacter) {
  EXPECT_EQ(marked_up("1'000'000 int"), "1&#39;000&#39;000 <b>int</b>");
}

TEST(Highlight, WhatIsLeftOpenEndsWithTheLineOrTheText) {
  EXPECT_EQ(marked_up("\"open\nint"), "<u>&#34;open</u>\n<b>int</b>");
  EXPECT_EQ(marked_up("/* open"), "<i>/* open</i>");
  EXPECT_EQ(marked_up("R\"(open"), "<u>R&#34;(open</u>");
}

TEST(Highlight, MarksTheLinesThatAreLinkedTo) {
  EXPECT_EQ(highlighted("a\nint b;\nc", "f0-", {2}).str(),
            "a\n<mark id=\"f0-2\"><b>int</b> b;</mark>\nc");
  // A comment of several lines, one of which is marked.
  EXPECT_EQ(highlighted("/*1\n2\n3*/", "L", {2}).str(),
            "<i>/*1</i>\n<mark id=\"L2\"><i>2</i></mark>\n<i>3*/</i>");
  EXPECT_EQ(highlighted("a", "L", {1, 7}).str(), "<mark id=\"L1\">a</mark>");
}

// Whatever the bytes are, no tag except the five is written.
TEST(Highlight, AnyBytesAreText) {
  constexpr std::string_view kAlphabet("\"'\\/*#R(x)\n \0\xff<&u8int1.e+-", 26);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string source;
    for (std::size_t n = random() % 40; n > 0; --n)
      source += kAlphabet[random() % kAlphabet.size()];
    std::string html = highlighted(source, "L", {1, 3}).str();
    for (const char* tag : {"<b>", "</b>", "<i>", "</i>", "<u>", "</u>", "<em>", "</em>", "</mark>",
                            "<mark id=\"L1\">", "<mark id=\"L3\">"}) {
      for (std::size_t at = html.find(tag); at != std::string::npos; at = html.find(tag))
        html.erase(at, std::string_view(tag).size());
    }
    ASSERT_EQ(html.find('<'), html.npos) << html;
  }
}

}  // namespace
}  // namespace assay::site
