// What the double reports about reservations, physical memory, mappings and host memory.
#include <cstring>

#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

class DoubleMemory : public ContextTest {};

TEST_F(DoubleMemory, Granularity) {
  std::size_t bytes = 0;
  CUmemAllocationProp properties;
  EXPECT_EQ(cu.granularity(&bytes, &properties, 0), kSuccess);
  EXPECT_EQ(bytes, kStep);
  EXPECT_EQ(cu.granularity(&bytes, &properties, 2), kInvalidValue);
  properties.location.id = 1;
  EXPECT_EQ(cu.granularity(&bytes, &properties, 0), kInvalidDevice);
  properties = {};
  properties.type = 0;
  EXPECT_EQ(cu.granularity(&bytes, &properties, 0), kInvalidValue);
}

TEST_F(DoubleMemory, Reservations) {
  CUdeviceptr a = 0, b = 0;
  EXPECT_EQ(cu.address_reserve(&a, kStep, 0, 0x1234000000, 0), kSuccess);
  EXPECT_EQ(a % kStep, 0u);
  EXPECT_EQ(cu.address_reserve(&b, std::size_t{32} << 30, std::size_t{1} << 30, 0, 0), kSuccess);
  EXPECT_EQ(b % (std::size_t{1} << 30), 0u);
  EXPECT_TRUE(b >= a + kStep || b + (std::size_t{32} << 30) <= a);
  EXPECT_EQ(cu.address_reserve(&b, 4096, 0, 0, 0), kInvalidValue);
  EXPECT_EQ(cu.address_reserve(&b, 0, 0, 0, 0), kInvalidValue);
  EXPECT_EQ(cu.address_reserve(&b, kStep, 3, 0, 0), kInvalidValue);
  EXPECT_EQ(cu.address_reserve(&b, std::size_t{1} << 40, 0, 0, 0), kOutOfMemory);
}

TEST_F(DoubleMemory, PhysicalMemoryIsLimited) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp properties;
  EXPECT_EQ(cu.mem_create(&handle, std::size_t{40} << 30, &properties, 0), kSuccess);
  EXPECT_EQ(cu.mem_create(&handle, std::size_t{40} << 30, &properties, 0), kOutOfMemory);
  EXPECT_EQ(cu.mem_create(&handle, std::size_t{24} << 30, &properties, 0), kSuccess);
  EXPECT_EQ(cu.mem_create(&handle, kStep, &properties, 0), kOutOfMemory);
  EXPECT_EQ(cu.mem_create(&handle, kStep + 1, &properties, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_create(&handle, 0, &properties, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_create(&handle, kStep, nullptr, 0), kInvalidValue);
}

TEST_F(DoubleMemory, MappingsAreChecked) {
  const CUdeviceptr at = reserve(4 * kStep);
  const auto handle = create(2 * kStep);
  EXPECT_EQ(cu.mem_map(at, kStep / 2, 0, handle, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_map(at + 4096, kStep, 0, handle, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_map(at, 3 * kStep, 0, handle, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_map(at, 2 * kStep, kStep, handle, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_map(at + 3 * kStep, 2 * kStep, 0, handle, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_map(at, kStep, 0, handle + 1, 0), kInvalidValue);
  EXPECT_EQ(cu.mem_map(at, kStep, 0, handle, 0), kSuccess);
  EXPECT_EQ(cu.mem_map(at, kStep, kStep, handle, 0), kInvalidValue);      // mapped there
  EXPECT_EQ(cu.mem_map(at + kStep, kStep, 0, handle, 0), kNotSupported);  // mapped elsewhere
  EXPECT_EQ(cu.mem_map(at + kStep, kStep, kStep, handle, 0), kSuccess);
}

TEST_F(DoubleMemory, AccessIsOfWholeMappings) {
  const CUdeviceptr at = reserve(4 * kStep);
  ASSERT_EQ(cu.mem_map(at, 2 * kStep, 0, create(2 * kStep), 0), kSuccess);
  EXPECT_EQ(allow(at, kStep), kInvalidValue);
  EXPECT_EQ(allow(at, 3 * kStep), kInvalidValue);
  EXPECT_EQ(allow(at, 2 * kStep, 2), kInvalidValue);
  EXPECT_EQ(cu.mem_set_access(at, 2 * kStep, nullptr, 1), kInvalidValue);
  const std::vector<int> values(4);
  EXPECT_EQ(upload(at, values), kInvalidValue);
  EXPECT_EQ(allow(at, 2 * kStep, 1), kSuccess);  // read only
  EXPECT_EQ(upload(at, values), kInvalidValue);
  EXPECT_EQ(download<int>(at, 4), values);
  EXPECT_EQ(allow(at, 2 * kStep), kSuccess);
  EXPECT_EQ(upload(at, values), kSuccess);
}

TEST_F(DoubleMemory, CopiesAcrossMappingsAndNotBeyond) {
  const CUdeviceptr at = reserve(4 * kStep);
  ASSERT_EQ(cu.mem_map(at, kStep, 0, create(kStep), 0), kSuccess);
  ASSERT_EQ(cu.mem_map(at + kStep, kStep, 0, create(kStep), 0), kSuccess);
  ASSERT_EQ(allow(at, 2 * kStep), kSuccess);
  const std::vector<int> values{1, 2, 3, 4};
  EXPECT_EQ(upload(at + kStep - 8, values), kSuccess);
  EXPECT_EQ(download<int>(at + kStep - 8, 4), values);
  EXPECT_EQ(upload(at + 2 * kStep - 8, values), kInvalidValue);
}

TEST_F(DoubleMemory, HostMemory) {
  void* memory = nullptr;
  ASSERT_EQ(cu.host_alloc(&memory, 5000, kHostAllocDeviceMap), kSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
  std::memset(memory, 1, 5000);
  CUdeviceptr address = 0;
  EXPECT_EQ(cu.host_device_pointer(&address, memory, 0), kSuccess);
  EXPECT_EQ(address, reinterpret_cast<std::uintptr_t>(memory));
  EXPECT_EQ(cu.host_device_pointer(&address, &address, 0), kInvalidValue);
  EXPECT_EQ(cu.host_device_pointer(&address, memory, 1), kInvalidValue);
  EXPECT_EQ(cu.host_alloc(&memory, 0, 0), kInvalidValue);
  EXPECT_EQ(cu.host_alloc(&memory, 64, 0x100), kInvalidValue);
}

}  // namespace
}  // namespace assay::gpu
