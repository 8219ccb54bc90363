// The driver is found and started, and its errors are put into words.
#include "gpu/driver.h"

#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

using ::testing::HasSubstr;

// The error of starting the driver.
DriverError error_of(const std::string& library) {
  try {
    const Driver driver(library);
  } catch (const DriverError& e) {
    return e;
  }
  return {kSuccess, "no error"};
}

TEST_F(DriverTest, HasEveryFunction) {
#define ASSAY_CHECK(member, name, parameters) EXPECT_NE(cu.member, nullptr) << #name;
  ASSAY_DRIVER_FUNCTIONS(ASSAY_CHECK)
#undef ASSAY_CHECK
  int count = 0;
  EXPECT_EQ(cu.device_count(&count), kSuccess);  // so the driver was initialised
  EXPECT_EQ(count, 1);
}

TEST(DriverMissing, SaysWhatToInstall) {
  const DriverError error = error_of("libno_such_driver.so.1");
  EXPECT_EQ(error.code, kSharedObjectInitFailed);
  EXPECT_THAT(error.what(), HasSubstr("no CUDA driver: libno_such_driver.so.1: "));
  EXPECT_THAT(error.what(), HasSubstr("install NVIDIA's driver"));
}

TEST(DriverMissing, NamesTheFunctionThatAnOldOneLacks) {
  const std::string library = testing::binary_dir() + "/tests/libcuda_driver_too_old.so";
  const DriverError error = error_of(library);
  EXPECT_EQ(error.code, kSharedObjectSymbolNotFound);
  EXPECT_THAT(error.what(), HasSubstr("too old: " + library +
                                      " has no function "
                                      "cuDriverGetVersion; install NVIDIA's driver for CUDA 12.4"));
}

TEST(DriverMissing, SaysWhyItDoesNotStart) {
  reset_double();
  ASSERT_EQ(set_faults("cuInit:100@1"), 0);
  const DriverError error = error_of(double_path());
  EXPECT_EQ(error.code, kNoDevice);
  EXPECT_THAT(error.what(), HasSubstr("does not start: CUDA_ERROR_NO_DEVICE: no CUDA-capable "
                                      "device is detected; check that nvidia-smi lists the GPU"));
}

TEST_F(DriverTest, RequireThrowsWhatWasTried) {
  EXPECT_NO_THROW(cu.require(kSuccess, "copying to the GPU"));
  try {
    cu.require(kIllegalAddress, "copying to the GPU");
    FAIL() << "no error";
  } catch (const DriverError& e) {
    EXPECT_EQ(e.code, kIllegalAddress);
    EXPECT_STREQ(e.what(),
                 "copying to the GPU: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory "
                 "access was encountered");
  }
}

TEST_F(DriverTest, TextOfAResultThatTheDriverDoesNotKnow) {
  EXPECT_EQ(cu.text_of(123456), "CUDA error 123456, which this driver does not know");
  ASSERT_EQ(set_faults("cuGetErrorString:1@1"), 0);
  EXPECT_EQ(cu.text_of(kOutOfMemory), "CUDA_ERROR_OUT_OF_MEMORY");
}

}  // namespace
}  // namespace assay::gpu
