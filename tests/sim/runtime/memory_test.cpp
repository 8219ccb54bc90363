// Memory, symbols and copies through the CUDA API.
#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

class Memory : public RuntimeTest {
 protected:
  char* allocate(std::size_t bytes) {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
    return static_cast<char*>(p);
  }
};

TEST_F(Memory, AllocationAndItsErrors) {
  void* p = &p;
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMalloc(&p, 0), cudaSuccess);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(cudaMalloc(&p, 2 << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(last(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&p, 100), cudaSuccess);
  std::size_t free_bytes = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_EQ(total, 1u << 20);
  EXPECT_EQ(total - free_bytes, 100u);
  EXPECT_EQ(cudaFree(static_cast<char*>(p) + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(&total), cudaErrorInvalidValue);
}

TEST_F(Memory, VariablesOfModulesCannotBeFreed) {
  void* p = nullptr;
  ASSERT_EQ(cudaGetSymbolAddress(&p, &variable_), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
}

TEST_F(Memory, CopiesInEveryDirection) {
  char *a = allocate(16), *b = allocate(16);
  const char text[16] = "fifteen letters";
  char back[16] = {};
  EXPECT_EQ(cudaMemcpy(a, text, 16, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(b, a, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back, b, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, text);
  EXPECT_EQ(cudaMemcpy(back, "host", 5, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_STREQ(back, "host");
  EXPECT_EQ(cudaMemcpy(back, a + 8, 8, cudaMemcpyDefault), cudaSuccess);
  EXPECT_STREQ(back, "letters");
  EXPECT_EQ(cudaMemcpyAsync(a, "x", 2, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyPeer(b, 0, a, 0, 2), cudaSuccess);
  EXPECT_EQ(cudaMemcpyPeer(b, 1, a, 0, 2), cudaErrorInvalidDevice);
}

TEST_F(Memory, CopiesThatMustFail) {
  char* a = allocate(16);
  char host[32] = {};
  EXPECT_EQ(cudaMemcpy(a, host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, a + 15, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, a, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, a, 4, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, a, 4, static_cast<cudaMemcpyKind>(5)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(nullptr, a, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a, nullptr, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(a, host, 4, cudaMemcpyDefault, reinterpret_cast<cudaStream_t>(host)),
            cudaErrorInvalidResourceHandle);
}

TEST_F(Memory, CopiesOfRectangles) {
  void* p = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&p, &pitch, 3, 2), cudaSuccess);
  EXPECT_EQ(pitch, 512u);
  const char host[] = "abc.def.";
  char back[7] = {};
  EXPECT_EQ(cudaMemcpy2D(p, pitch, host, 4, 3, 2, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy2D(back, 3, p, pitch, 3, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, "abcdef");
  EXPECT_EQ(cudaMemcpy2D(back, 2, p, pitch, 3, 2, cudaMemcpyDeviceToHost),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemset2D(p, pitch, 'z', 2, 2), cudaSuccess);
  cudaMemcpy2D(back, 3, p, pitch, 3, 2, cudaMemcpyDeviceToHost);
  EXPECT_STREQ(back, "zzczzf");
  EXPECT_EQ(cudaMallocPitch(&p, &pitch, ~std::size_t{0}, 2), cudaErrorMemoryAllocation);
}

TEST_F(Memory, CopiesOfBoxes) {
  cudaPitchedPtr device{};
  ASSERT_EQ(cudaMalloc3D(&device, {2, 2, 2}), cudaSuccess);
  EXPECT_EQ(device.pitch, 512u);
  char host[] = "abcdefgh", back[9] = {};
  cudaMemcpy3DParms p{};
  p.srcPtr = {host, 2, 2, 2};
  p.dstPtr = device;
  p.extent = {2, 2, 2};
  p.kind = cudaMemcpyHostToDevice;
  EXPECT_EQ(cudaMemcpy3D(&p), cudaSuccess);
  std::swap(p.srcPtr, p.dstPtr);
  p.dstPtr.ptr = back;
  p.srcPos = {0, 1, 1};  // the row "gh"
  p.extent = {2, 1, 1};
  p.kind = cudaMemcpyDeviceToHost;
  EXPECT_EQ(cudaMemcpy3D(&p), cudaSuccess);
  EXPECT_STREQ(back, "gh");
  p.srcArray = reinterpret_cast<cudaArray_t>(back);
  EXPECT_EQ(cudaMemcpy3D(&p), cudaErrorInvalidResourceHandle) << "no array";
}

TEST_F(Memory, Fills) {
  char* a = allocate(8);
  char back[8] = {};
  EXPECT_EQ(cudaMemset(a, 0x141, 7), cudaSuccess);  // the low byte
  EXPECT_EQ(cudaMemset(a + 7, 0, 1), cudaSuccess);
  cudaMemcpy(back, a, 8, cudaMemcpyDeviceToHost);
  EXPECT_STREQ(back, "AAAAAAA");
  EXPECT_EQ(cudaMemset(a, 0, 9), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(back, 0, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(nullptr, 0, 0), cudaSuccess);
}

TEST_F(Memory, Symbols) {
  char value[65] = "the table", back[16] = {};
  EXPECT_EQ(cudaMemcpyToSymbol(&variable_, value, 10, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyFromSymbol(back, &variable_, 10, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, "the table");
  EXPECT_EQ(cudaMemcpyToSymbol(&variable_, value, 61, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(&variable_, value, 1, ~std::size_t{0}, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(&variable_, value, 1, 0, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyFromSymbol(back, &variable_, 1, 0, cudaMemcpyHostToDevice),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyToSymbol("table", value, 1, 0, cudaMemcpyHostToDevice),
            cudaErrorInvalidSymbol);
  std::size_t bytes = 0;
  EXPECT_EQ(cudaGetSymbolSize(&bytes, &variable_), cudaSuccess);
  EXPECT_EQ(bytes, 64u);
  void* p = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&p, &variable_), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back, static_cast<char*>(p) + 4, 10, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, "the table");
  EXPECT_EQ(cudaGetSymbolAddress(&p, nullptr), cudaErrorInvalidSymbol);
}

TEST_F(Memory, ResetFreesEverythingAndReloadsModules) {
  char* a = allocate(8);
  void *before = nullptr, *after = nullptr;
  cudaGetSymbolAddress(&before, &variable_);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaFree(a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetSymbolAddress(&after, &variable_), cudaSuccess);
  EXPECT_EQ(state_.modules.size(), 2u);
}

TEST_F(Memory, HostMemory) {
  void* p = nullptr;
  ASSERT_EQ(cudaMallocHost(&p, 100), cudaSuccess);
  std::memset(p, 1, 100);
  cudaPointerAttributes a{};
  EXPECT_EQ(cudaPointerGetAttributes(&a, static_cast<char*>(p) + 99), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaPointerGetAttributes(&a, static_cast<char*>(p) + 100), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaHostRegister(static_cast<char*>(p) - 8, 16, 0),
            cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaFreeHost(p), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(&a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
  EXPECT_EQ(cudaHostAlloc(&p, 8, 0x80), cudaErrorInvalidValue);
  char own[64];
  EXPECT_EQ(cudaHostRegister(own, 64, 0x1), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(own + 63, 2, 0), cudaErrorHostMemoryAlreadyRegistered);
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetFlags(&flags, own), cudaSuccess);
  EXPECT_EQ(flags, 1u);
  EXPECT_EQ(cudaHostUnregister(own), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
}

TEST_F(Memory, DevicePointersAreKnown) {
  char* p = allocate(8);
  cudaPointerAttributes a{};
  EXPECT_EQ(cudaPointerGetAttributes(&a, p + 7), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
  EXPECT_EQ(a.devicePointer, p + 7);
  EXPECT_EQ(a.hostPointer, nullptr);
  EXPECT_EQ(cudaPointerGetAttributes(&a, p + 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPointerGetAttributes(nullptr, p), cudaErrorInvalidValue);
}

TEST_F(Memory, TheDefaultPool) {
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  std::uint64_t threshold = 12345;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  threshold = 0;
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  EXPECT_EQ(threshold, 12345u);
  void* p = nullptr;
  EXPECT_EQ(cudaMallocFromPoolAsync(&p, 16, pool, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(p, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&p, 16, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolDestroy(pool), cudaErrorInvalidValue);
}

class Pools : public Memory {
 protected:
  static cudaMemPool_t create(std::size_t capacity = 0) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    properties.maxSize = capacity;
    cudaMemPool_t pool = nullptr;
    EXPECT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
    return pool;
  }
  static std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    std::uint64_t value = 99999;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, which, &value), cudaSuccess);
    return value;
  }
  static void* take(std::size_t bytes, cudaError_t expected = cudaSuccess) {
    void* p = nullptr;
    EXPECT_EQ(cudaMallocAsync(&p, bytes, nullptr), expected);
    return p;
  }
};

TEST_F(Pools, MemoryComesFromTheChosenOne) {
  cudaMemPool_t own = create(), standard = nullptr, current = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&standard, 0), cudaSuccess);
  void* const a = take(100);
  ASSERT_EQ(cudaDeviceSetMemPool(0, own), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(current, own);
  void* const b = take(20);
  EXPECT_EQ(attribute(standard, cudaMemPoolAttrUsedMemCurrent), 100u);
  EXPECT_EQ(attribute(own, cudaMemPoolAttrReservedMemCurrent), 20u);
  EXPECT_EQ(cudaFreeAsync(a, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(b), cudaSuccess) << "which frees it as well";
  EXPECT_EQ(attribute(standard, cudaMemPoolAttrUsedMemCurrent), 0u);
  EXPECT_EQ(attribute(own, cudaMemPoolAttrUsedMemCurrent), 0u);
  EXPECT_EQ(attribute(own, cudaMemPoolAttrUsedMemHigh), 20u);
}

TEST_F(Pools, HighWaterMarksStartAgainAtZeroOnly) {
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  void* const p = take(100);
  take(50);
  EXPECT_EQ(cudaFreeAsync(p, nullptr), cudaSuccess);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemHigh), 150u);
  std::uint64_t value = 1;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value),
            cudaErrorInvalidValue);
  value = 0;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value), cudaSuccess);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), 50u);
}

TEST_F(Pools, OneHoldsNoMoreThanItsCapacity) {
  ASSERT_EQ(cudaDeviceSetMemPool(0, create(100)), cudaSuccess);
  void* const p = take(60);
  EXPECT_EQ(take(41, cudaErrorMemoryAllocation), nullptr);
  EXPECT_EQ(cudaFreeAsync(p, nullptr), cudaSuccess);
  EXPECT_NE(take(100), nullptr);
}

TEST_F(Pools, MemoryOutlivesItsPool) {
  cudaMemPool_t own = create(), current = nullptr, standard = nullptr;
  ASSERT_EQ(cudaDeviceSetMemPool(0, own), cudaSuccess);
  void* const p = take(16);
  EXPECT_EQ(cudaMemPoolDestroy(own), cudaSuccess);
  EXPECT_EQ(cudaMemPoolDestroy(own), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolTrimTo(own, 0), cudaErrorInvalidValue);
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&standard, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(current, standard);
  EXPECT_EQ(cudaMemset(p, 1, 16), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(p, nullptr), cudaSuccess);
}

TEST_F(Pools, ResetEndsThem) {
  const cudaMemPool_t own = create();
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaMemPoolTrimTo(own, 0), cudaErrorInvalidValue);
}

TEST_F(Pools, Arguments) {
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties{};
  EXPECT_EQ(cudaMemPoolCreate(&pool, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolCreate(&pool, &properties), cudaErrorNotSupported) << "not pinned";
  properties.allocType = cudaMemAllocationTypePinned;
  EXPECT_EQ(cudaMemPoolCreate(&pool, &properties), cudaErrorInvalidValue) << "no location";
  properties.location = {cudaMemLocationTypeHost, 0};
  EXPECT_EQ(cudaMemPoolCreate(&pool, &properties), cudaErrorNotSupported);
  properties.location = {cudaMemLocationTypeDevice, 1};
  EXPECT_EQ(cudaMemPoolCreate(&pool, &properties), cudaErrorInvalidDevice);
  properties.location.id = 0;
  properties.handleTypes = static_cast<cudaMemAllocationHandleType>(1);
  EXPECT_EQ(cudaMemPoolCreate(&pool, &properties), cudaErrorNotSupported);

  pool = create();
  cudaMemAccessDesc access{{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
  EXPECT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
  EXPECT_EQ(cudaMemPoolSetAccess(pool, nullptr, 1), cudaErrorInvalidValue);
  access.flags = static_cast<cudaMemAccessFlags>(0);
  EXPECT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaErrorInvalidValue);
  cudaMemAccessFlags flags{};
  EXPECT_EQ(cudaMemPoolGetAccess(&flags, pool, &access.location), cudaSuccess);
  EXPECT_EQ(flags, cudaMemAccessFlagsProtReadWrite);
  access.location.id = 1;
  EXPECT_EQ(cudaMemPoolGetAccess(&flags, pool, &access.location), cudaErrorInvalidDevice);
}

}  // namespace
}  // namespace assay::sim::cuda
