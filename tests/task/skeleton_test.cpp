#include "task/skeleton.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"

namespace assay::task {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHeader[] = R"(/* int one(int); in a comment */
int one(assay_ctx*, const params* p,
        float* out);
/* two lines
 */
int64_t count(kvc* cache);
void end(kvc*);
float* many(void);
)";

TEST(SkeletonTest, EveryFunctionHasTheBodyOfItsType) {
  const std::string text = skeleton(kHeader, {"one", "count", "end", "many"}, Language::cpp);
  EXPECT_THAT(text, HasSubstr("#include \"abi.h\"\n"));
  EXPECT_THAT(text, HasSubstr("extern \"C\" int one(assay_ctx*, const params* p,\n"
                              "        float* out) { return ASSAY_ENOTSUP; }\n"));
  EXPECT_THAT(text, HasSubstr("extern \"C\" int64_t count(kvc* cache) { return 0; }\n"));
  EXPECT_THAT(text, HasSubstr("extern \"C\" void end(kvc*) {}\n"));
  EXPECT_THAT(text, HasSubstr("extern \"C\" float* many(void) { return 0; }\n"));
  EXPECT_THAT(text, Not(HasSubstr("cuda_runtime")));
}

TEST(SkeletonTest, CudaIncludesItsRuntime) {
  EXPECT_THAT(skeleton(kHeader, {"one"}, Language::cuda), HasSubstr("#include <cuda_runtime.h>"));
}

TEST(SkeletonTest, AFunctionThatIsNotDeclaredIsAnError) {
  EXPECT_THROW(skeleton(kHeader, {"other"}, Language::cpp), Error);
  // Must not match "one", which ends in this name.
  EXPECT_THROW(skeleton(kHeader, {"ne"}, Language::cpp), Error);
}

}  // namespace
}  // namespace assay::task
