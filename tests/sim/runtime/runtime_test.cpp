// Errors, streams, events, the device, and refused functions.
#include "sim/runtime/runtime_fixture.h"

// One of the refused functions, as NVIDIA's header declares it.
extern "C" assay::sim::cuda::cudaError_t cudaCreateSurfaceObject(void* object, void* resource);
extern "C" assay::sim::cuda::cudaError_t cudaIpcGetMemHandle(void* handle, void* pointer);

namespace assay::sim::cuda {
namespace {

using testing::ElementsAre;

class Api : public RuntimeTest {};

TEST_F(Api, ErrorNamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress),
               "an illegal memory access was encountered");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST_F(Api, TheLastErrorIsForgottenWhenAskedForAndKeptBySuccess) {
  cudaMalloc(nullptr, 1);
  cudaSetDevice(0);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Api, WithoutADevice) {
  Runtime::instance().attach(nullptr);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 1), cudaErrorNoDevice);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorNoDevice);
}

TEST_F(Api, RefusedFunctionsAreNamedOnce) {
  void* p = nullptr;
  EXPECT_EQ(cudaCreateSurfaceObject(&p, nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaCreateSurfaceObject(&p, nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaIpcGetMemHandle(&p, nullptr), cudaErrorNotSupported);
  EXPECT_THAT(Runtime::instance().unsupported_api(),
              ElementsAre("cudaCreateSurfaceObject", "cudaIpcGetMemHandle"));
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST_F(Api, Streams) {
  cudaStream_t s = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&s, 1, -9), cudaSuccess);
  int priority = 0;
  unsigned flags = 0;
  EXPECT_EQ(cudaStreamGetPriority(s, &priority), cudaSuccess);
  EXPECT_EQ(priority, -5);
  EXPECT_EQ(cudaStreamGetFlags(s, &flags), cudaSuccess);
  EXPECT_EQ(flags, 1u);
  EXPECT_EQ(cudaStreamQuery(s), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 0, s), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  for (const std::uintptr_t implicit : {0, 1, 2}) {
    EXPECT_EQ(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(implicit)), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamCreateWithFlags(&s, 2), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
}

TEST_F(Api, HostFunctionsMayCallTheApi) {
  static cudaError_t seen = cudaErrorUnknown;
  const cudaHostFn_t fn = [](void* data) {
    int device = 0;
    seen = cudaGetDevice(&device);
    *static_cast<int*>(data) = 1;
  };
  int called = 0;
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, fn, &called), cudaSuccess);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(seen, cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
}

// The clock counts work, so it is the same on every run.
TEST_F(Api, EventsMeasureCountedWork) {
  cudaEvent_t start = nullptr, end = nullptr, untimed = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, 2), cudaSuccess);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);  // not recorded
  EXPECT_EQ(cudaEventQuery(start), cudaSuccess);
  cudaEventRecord(start, nullptr);
  state_.launch_reply.instructions = 2'000'000;
  launch({1, 1, 1}, {1, 1, 1});
  cudaEventRecord(end, nullptr);
  cudaEventRecord(untimed, nullptr);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
  EXPECT_FLOAT_EQ(ms, 2.001f);
  EXPECT_EQ(cudaEventElapsedTime(&ms, end, start), cudaSuccess);
  EXPECT_FLOAT_EQ(ms, -2.001f);
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(nullptr, start, end), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, end, 0), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, end, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(nullptr, nullptr), cudaErrorInvalidResourceHandle);
}

TEST_F(Api, TheDevice) {
  int n = 0;
  EXPECT_EQ(cudaGetDeviceCount(&n), cudaSuccess);
  EXPECT_EQ(n, 1);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp p{};
  EXPECT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
  EXPECT_EQ(p.major * 10 + p.minor, 90);
  EXPECT_EQ(p.totalGlobalMem, 1u << 20);
  EXPECT_EQ(cudaGetDeviceProperties(&p, 1), cudaErrorInvalidDevice);
  const auto attribute = [](int number) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(number), 0), cudaSuccess);
    return value;
  };
  EXPECT_EQ(attribute(16), 132);
  EXPECT_EQ(attribute(97), 227 << 10);
  EXPECT_EQ(attribute(95), 1);
  EXPECT_EQ(attribute(120), 1);  // clusters
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(0), 0),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(500), 0),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaRuntimeGetVersion(&value), cudaSuccess);
  EXPECT_EQ(value, 13000);
  std::size_t limit = 0;
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4096), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize), cudaSuccess);
  EXPECT_EQ(limit, 4096u);
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 3), cudaErrorUnsupportedLimit);
}

TEST_F(Api, UnregisteredModulesAreForgotten) {
  char other = 0;
  void** handle = __cudaRegisterFatBinary(&wrapper_);
  __cudaRegisterFunction(handle, &other, &other, "_Z3addPfi", -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
  EXPECT_EQ(cudaLaunchKernel(&other, {1, 1, 1}, {1, 1, 1}, args_, 0, nullptr), cudaSuccess);
  __cudaUnregisterFatBinary(handle);
  EXPECT_EQ(cudaLaunchKernel(&other, {1, 1, 1}, {1, 1, 1}, args_, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
}

TEST_F(Api, WhatIsRegisteredButIsNoFatBinary) {
  char other = 0;
  int rubbish[8] = {};
  void** handle = __cudaRegisterFatBinary(rubbish);
  __cudaRegisterFunction(handle, &other, &other, "f", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  EXPECT_EQ(cudaLaunchKernel(&other, {1, 1, 1}, {1, 1, 1}, args_, 0, nullptr),
            cudaErrorNoKernelImageForDevice);
  __cudaUnregisterFatBinary(handle);
}

}  // namespace
}  // namespace assay::sim::cuda
