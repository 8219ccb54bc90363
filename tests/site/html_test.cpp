#include "site/html.h"

#include <gtest/gtest.h>

namespace assay::site {
namespace {

TEST(Html, TextCannotBecomeMarkup) {
  EXPECT_EQ(escaped("<script>alert('x')</script>&\""),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&#34;");
}

TEST(Html, BytesThatAreNoUtf8AreShownAsReplaced) {
  EXPECT_EQ(escaped("a\xff\xc3z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(escaped("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");                  // overlong '/'
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(escaped("\xf0\x9f\x98"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // cut off
  EXPECT_EQ(escaped("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(Html, ControlsAreReplacedButLinesAndTabsStay) {
  EXPECT_EQ(escaped(std::string_view("a\0b\x1b[31m\n\t\x7f", 11)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd[31m\n\t\xef\xbf\xbd");
  EXPECT_EQ(escaped("\xc2\x9b"), "\xef\xbf\xbd");  // C1
}

TEST(Html, WhatTurnsOrHidesTextIsMadeVisible) {
  EXPECT_EQ(escaped("a\xe2\x80\xae"
                    "b"),
            "a[U+202E]b");
  EXPECT_EQ(escaped("\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf"), "[U+2066][U+200B][U+FEFF]");
  EXPECT_EQ(escaped("\xf3\xa0\x81\x81"), "[U+E0041]");  // a tag
}

TEST(Html, AttributesStayInTheirQuotes) {
  Html html;
  html.element("a", {{"href", "\" onclick=\"x"}, {"title", "<b>"}}, "<i>");
  EXPECT_EQ(html.str(), "<a href=\"&#34; onclick=&#34;x\" title=\"&lt;b&gt;\">&lt;i&gt;</a>");
}

TEST(Html, OfProseSpansBetweenBackticksAreCode) {
  EXPECT_EQ(Html().prose("`assay run` or `a<b`, it's").str(),
            "<code>assay run</code> or <code>a&lt;b</code>, it&#39;s");
  EXPECT_EQ(Html().prose("no `end").str(), "no `end");
  EXPECT_EQ(Html().prose("").str(), "");
}

TEST(Html, LinksAreNoSchemesQueriesOrFragments) {
  EXPECT_EQ(href("../a b/%41.html"), "../a%20b/%2541.html");
  EXPECT_EQ(href("javascript:x?y#z"), "javascript%3Ax%3Fy%23z");
}

}  // namespace
}  // namespace assay::site
