// Copies and fills of the double.
#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

using ::testing::ElementsAre;

class DoubleCopy : public ContextTest {};

TEST_F(DoubleCopy, ThereAndBack) {
  const CUdeviceptr at = memory();
  EXPECT_EQ(upload<int>(at, {1, 2, 3}), kSuccess);
  EXPECT_EQ(cu.copy_within(at + 1024, at, 12, nullptr), kSuccess);
  EXPECT_THAT(download<int>(at + 1024, 3), ElementsAre(1, 2, 3));
  EXPECT_EQ(cu.fill(at + 1028, 0xff, 4, nullptr), kSuccess);
  EXPECT_THAT(download<int>(at + 1024, 3), ElementsAre(1, -1, 3));
}

TEST_F(DoubleCopy, RefusesWhatIsNotMemory) {
  const CUdeviceptr at = memory();
  const CUdeviceptr unmapped = reserve(kStep);
  int value = 0;
  for (const CUdeviceptr wrong : {CUdeviceptr{64}, unmapped, at + kStep - 2}) {
    EXPECT_EQ(cu.copy_to_device(wrong, &value, 4, nullptr), kInvalidValue) << wrong;
    EXPECT_EQ(cu.copy_to_host(&value, wrong, 4, nullptr), kInvalidValue) << wrong;
    EXPECT_EQ(cu.copy_within(wrong, at, 4, nullptr), kInvalidValue) << wrong;
    EXPECT_EQ(cu.copy_within(at, wrong, 4, nullptr), kInvalidValue) << wrong;
    EXPECT_EQ(cu.fill(wrong, 0, 4, nullptr), kInvalidValue) << wrong;
  }
  EXPECT_EQ(cu.copy_to_device(at, nullptr, 4, nullptr), kInvalidValue);
  EXPECT_EQ(cu.copy_to_host(&value, at, ~std::size_t{0}, nullptr), kInvalidValue);
  EXPECT_EQ(cu.fill(64, 0, 0, nullptr), kSuccess);  // nothing is accessed
}

TEST_F(DoubleCopy, RefusesAStreamThatIsNone) {
  const CUdeviceptr at = memory();
  int value = 0;
  const auto stream = reinterpret_cast<CUstream>(&value);
  EXPECT_EQ(cu.copy_to_device(at, &value, 4, stream), kInvalidHandle);
  EXPECT_EQ(cu.copy_to_host(&value, at, 4, stream), kInvalidHandle);
  EXPECT_EQ(cu.copy_within(at, at + 8, 4, stream), kInvalidHandle);
  EXPECT_EQ(cu.fill(at, 0, 4, stream), kInvalidHandle);
}

}  // namespace
}  // namespace assay::gpu
