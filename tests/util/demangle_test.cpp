#include "util/demangle.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Demangled, ANameIsAsItsAuthorWroteIt) {
  EXPECT_EQ(demangled("_Z1fi"), "f(int)");
  EXPECT_EQ(demangled("_Znwm"), "operator new(unsigned long)");
}

TEST(Demangled, ANameOfCStays) {
  EXPECT_EQ(demangled("i"), "i");
  EXPECT_EQ(demangled("expf"), "expf");
  EXPECT_EQ(demangled("_Zz"), "_Zz");
}

TEST(Demangled, NamesWithinTextAreFound) {
  EXPECT_EQ(demangled_within("in _Z1fi: _Z1gPf, not in i"), "in f(int): g(float*), not in i");
  EXPECT_EQ(demangled_within("_Z1fi"), "f(int)");
  EXPECT_EQ(demangled_within(""), "");
}

}  // namespace
}  // namespace assay
