#include "util/shell.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Quoted, LeavesPlainWordsAsTheyAre) {
  for (const char* word : {"a", "--march=x86-64-v3", "/tmp/r_1.json", "user@host:1,2+3%4"})
    EXPECT_EQ(quoted(word), word);
}

TEST(Quoted, ProtectsAllElse) {
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("a b"), "'a b'");
  EXPECT_EQ(quoted("$(rm x)"), "'$(rm x)'");
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace assay
