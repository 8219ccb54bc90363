// The double's device, context and errors.
#include <cstdlib>
#include <thread>
#include <tuple>

#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

class DoubleDevice : public DriverTest {
 protected:
  int attribute(int which) {
    int value = -1;
    EXPECT_EQ(cu.device_attribute(&value, which, 0), kSuccess) << which;
    return value;
  }
};

TEST_F(DoubleDevice, IsAnH200) {
  CUdevice device = -1;
  EXPECT_EQ(cu.device_get(&device, 0), kSuccess);
  EXPECT_EQ(device, 0);
  char name[64] = {};
  EXPECT_EQ(cu.device_name(name, sizeof name, 0), kSuccess);
  EXPECT_STREQ(name, "Simulated H200");
  EXPECT_EQ(cu.device_name(name, 4, 0), kSuccess);
  EXPECT_STREQ(name, "Sim");
  EXPECT_EQ(cu.pci_bus_id(name, sizeof name, 0), kSuccess);
  EXPECT_STREQ(name, "0000:3b:00.0");
  EXPECT_EQ(cu.pci_bus_id(name, 12, 0), kInvalidValue) << "no room for the NUL";
  std::size_t bytes = 0;
  EXPECT_EQ(cu.device_total_mem(&bytes, 0), kSuccess);
  EXPECT_EQ(bytes, std::size_t{64} << 30);
  int version = 0;
  EXPECT_EQ(cu.driver_version(&version), kSuccess);
  EXPECT_GE(version, 12040);
}

TEST_F(DoubleDevice, Attributes) {
  EXPECT_EQ(attribute(kComputeCapabilityMajor), 9);
  EXPECT_EQ(attribute(kComputeCapabilityMinor), 0);
  EXPECT_EQ(attribute(kMultiprocessorCount), 132);
  EXPECT_EQ(attribute(kMaxThreadsPerBlockAttribute), 1024);
  EXPECT_EQ(attribute(kMaxBlockX), 1024);
  EXPECT_EQ(attribute(kMaxBlockY), 1024);
  EXPECT_EQ(attribute(kMaxBlockZ), 64);
  EXPECT_EQ(attribute(kMaxGridX), 0x7fffffff);
  EXPECT_EQ(attribute(kMaxGridY), 65535);
  EXPECT_EQ(attribute(kMaxGridZ), 65535);
  EXPECT_EQ(attribute(kClockRate), 1'980'000);
  EXPECT_EQ(attribute(kEccEnabled), 1);
  EXPECT_EQ(attribute(kL2CacheBytes), 4 << 20);
  EXPECT_EQ(attribute(kCooperativeLaunchAttribute), 1);
  EXPECT_EQ(attribute(kMaxSharedPerBlockOptin), 227 << 10);
}

TEST_F(DoubleDevice, IsTheOneThatIsVisible) {
  char text[64] = {};
  for (const auto& [id, name, bus] : {std::tuple{"1", "Simulated H200", "0000:5e:00.0"},
                                      {"2", "Simulated H100", "0000:86:00.0"}}) {
    reset_double();
    ::setenv("CUDA_VISIBLE_DEVICES", id, 1);
    EXPECT_EQ(cu.init(0), kSuccess);
    EXPECT_EQ(cu.device_name(text, sizeof text, 0), kSuccess);
    EXPECT_STREQ(text, name);
    EXPECT_EQ(cu.pci_bus_id(text, sizeof text, 0), kSuccess);
    EXPECT_STREQ(text, bus);
  }
  for (const char* id : {"3", "", "-1", "0,1"}) {
    reset_double();
    ::setenv("CUDA_VISIBLE_DEVICES", id, 1);
    EXPECT_EQ(cu.init(0), kNoDevice) << id;
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(DoubleDevice, RefusesWhatDoesNotExist) {
  CUdevice device = -1;
  EXPECT_EQ(cu.device_get(&device, 1), kInvalidDevice);
  int value = 0;
  EXPECT_EQ(cu.device_attribute(&value, kClockRate, 1), kInvalidDevice);
  EXPECT_EQ(cu.device_attribute(&value, -1, 0), kInvalidValue);
  EXPECT_EQ(cu.primary_set_flags(0, 0x1000), kInvalidValue);
  EXPECT_EQ(cu.init(1), kInvalidValue);
}

TEST_F(DoubleDevice, NothingWorksBeforeInit) {
  reset_double();
  int count = 0;
  EXPECT_EQ(cu.device_count(&count), kNotInitialized);
  CUcontext context = nullptr;
  EXPECT_EQ(cu.primary_retain(&context, 0), kNotInitialized);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kNotInitialized);
  EXPECT_EQ(cu.text_of(kNotInitialized), "CUDA_ERROR_NOT_INITIALIZED: initialization error");
  EXPECT_EQ(cu.init(0), kSuccess);
  EXPECT_EQ(cu.device_count(&count), kSuccess);
}

TEST_F(DoubleDevice, ContextIsOneThreads) {
  EXPECT_EQ(cu.stream_synchronize(nullptr), kInvalidContext);
  EXPECT_EQ(cu.primary_set_flags(0, kContextLmemResizeToMax), kSuccess);
  CUcontext context = nullptr;
  ASSERT_EQ(cu.primary_retain(&context, 0), kSuccess);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kInvalidContext);
  EXPECT_EQ(cu.context_set_current(context), kSuccess);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);
  std::thread([&] { EXPECT_EQ(cu.stream_synchronize(nullptr), kInvalidContext); }).join();
  EXPECT_EQ(cu.context_set_current(nullptr), kSuccess);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kInvalidContext);
}

TEST_F(DoubleDevice, ContextEndsWithAReset) {
  CUcontext context = nullptr;
  ASSERT_EQ(cu.primary_retain(&context, 0), kSuccess);
  ASSERT_EQ(cu.context_set_current(context), kSuccess);
  reset_double();
  ASSERT_EQ(cu.init(0), kSuccess);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kInvalidContext);
}

}  // namespace
}  // namespace assay::gpu
