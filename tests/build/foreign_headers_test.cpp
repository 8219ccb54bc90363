#include "build/foreign_headers.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

bool refused(const std::string& header, const char* toolkit = "") {
  return !foreign_headers("submission.o: \\\n /usr/include/stdio.h " + header + " \\\n abi.h\n",
                          "/usr/src/cache/build", toolkit)
              .empty();
}

TEST(ForeignHeaders, AreNeitherTheCompilersNorTheCLibrarys) {
  for (const char* header :
       {"/usr/include/string.h", "/usr/include/c++/12/vector", "/usr/include/linux/futex.h",
        "/usr/include/x86_64-linux-gnu/bits/types.h", "/usr/include/x86_64-linux-gnu/a.out.h",
        "/usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h",
        "/usr/lib/gcc/x86_64-linux-gnu/12/include/immintrin.h",
        "/usr/lib/llvm-19/lib/clang/19/include/immintrin.h", "/src/own.h", "own/parts.h",
        "/usr/include/tbb/tbb.h"})
    EXPECT_FALSE(refused(header)) << header;
  for (const char* header :
       {"/usr/include/eigen3/Eigen/Core", "/usr/include/boost/config.hpp",
        "/usr/include/x86_64-linux-gnu/openblas/cblas.h", "/src/../usr/include/eigen3/Eigen/Core",
        "/usr/lib/python3/dist-packages/numpy/core/include/numpy/arrayobject.h"})
    EXPECT_TRUE(refused(header)) << header;
}

TEST(ForeignHeaders, OfTheBuildAreNoneWhereverItIs) {
  EXPECT_FALSE(refused("/usr/src/cache/build/src/own.h"));
  EXPECT_TRUE(refused("/usr/src/cache/other/src/own.h"));
  EXPECT_TRUE(refused("/usr/src/cache/build/src/../../../../include/eigen3/Eigen/Core"));
}

TEST(ForeignHeaders, OfTheToolkitAreNone) {
  const char* cub = "/usr/local/cuda-13.0/targets/x86_64-linux/include/cub/cub.cuh";
  EXPECT_TRUE(refused(cub));
  EXPECT_FALSE(refused(cub, "/usr/local/cuda-13.0"));
  EXPECT_FALSE(refused("/usr/include/cub/cub.cuh", "/usr"));
  EXPECT_TRUE(refused("/usr/include/eigen3/Eigen/Core", "/usr"));
}

TEST(ForeignHeaders, AreNamedAndCounted) {
  EXPECT_EQ(
      foreign_headers("a.o: /usr/include/b/b.h /usr/include/a/a.h /usr/include/b/b.h", "/own", ""),
      "it includes /usr/include/a/a.h and 1 more header: an answer may use its own headers "
      "and the standard library only");
  EXPECT_EQ(foreign_headers("", "/own", ""), "");
}

}  // namespace
}  // namespace assay
