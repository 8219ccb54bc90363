// Launches, their configuration and sticky errors.
#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

using testing::ElementsAre;

class Launch : public RuntimeTest {};

TEST_F(Launch, ParametersAreLaidOutAsTheKernelHasThem) {
  ASSERT_EQ(launch({2, 3, 4}, {32, 2, 1}, 100), cudaSuccess);
  ASSERT_EQ(state_.launches.size(), 1u);
  const auto& l = state_.launches[0];
  EXPECT_EQ(l.kernel, 7u);
  EXPECT_EQ(l.config.grid.y, 3u);
  EXPECT_EQ(l.config.block.x, 32u);
  EXPECT_EQ(l.config.dynamic_shared_bytes, 100u);
  EXPECT_FALSE(l.config.cooperative);
  ASSERT_EQ(l.params.size(), 12u);
  EXPECT_EQ(std::memcmp(l.params.data(), &pointer_arg_, 8), 0);
  EXPECT_EQ(std::memcmp(l.params.data() + 8, &int_arg_, 4), 0);
}

// The sequence that nvcc 13 generates for f<<<grid, block, shared, stream>>>(...).
TEST_F(Launch, ThroughTheStub) {
  EXPECT_EQ(__cudaPushCallConfiguration({5, 1, 1}, {64, 1, 1}, 16, nullptr), 0u);
  cudaKernel_t kernel = nullptr;
  ASSERT_EQ(__cudaGetKernel(&kernel, &stub_), cudaSuccess);
  dim3 grid{}, block{};
  std::size_t shared = 0;
  cudaStream_t stream = reinterpret_cast<cudaStream_t>(1);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  ASSERT_EQ(__cudaLaunchKernel(kernel, grid, block, args_, shared, stream), cudaSuccess);
  EXPECT_EQ(state_.launches.at(0).config.grid.x, 5u);
  EXPECT_EQ(state_.launches.at(0).config.dynamic_shared_bytes, 16u);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
            cudaErrorMissingConfiguration);
}

TEST_F(Launch, TheModuleIsLoadedOnceAndWhenItIsUsed) {
  EXPECT_TRUE(state_.modules.empty());
  launch({1, 1, 1}, {1, 1, 1});
  launch({1, 1, 1}, {1, 1, 1});
  EXPECT_THAT(state_.modules, ElementsAre("the PTX"));
}

TEST_F(Launch, ConfigurationsThatTheDeviceCannotRun) {
  const dim3 one{1, 1, 1};
  for (const dim3 bad : {dim3{0, 1, 1}, dim3{1, 0, 1}, dim3{1, 1, 0}}) {
    EXPECT_EQ(launch(bad, one), cudaErrorInvalidConfiguration);
    EXPECT_EQ(launch(one, bad), cudaErrorInvalidConfiguration);
  }
  for (const dim3 block : {dim3{1025, 1, 1}, dim3{1, 1025, 1}, dim3{1, 1, 65}, dim3{32, 32, 2}}) {
    EXPECT_EQ(launch(one, block), cudaErrorInvalidConfiguration);
  }
  for (const dim3 grid : {dim3{0x80000000u, 1, 1}, dim3{1, 65536, 1}, dim3{1, 1, 65536}}) {
    EXPECT_EQ(launch(grid, one), cudaErrorInvalidConfiguration);
  }
  EXPECT_EQ(launch(one, {513, 1, 1}), cudaErrorLaunchOutOfResources);  // __launch_bounds__(512)
  EXPECT_EQ(last(), cudaErrorLaunchOutOfResources);
  EXPECT_EQ(last(), cudaSuccess);
  EXPECT_TRUE(state_.launches.empty());
  EXPECT_EQ(launch({0x7fffffffu, 65535, 65535}, {512, 1, 1}), cudaSuccess);
}

TEST_F(Launch, DynamicSharedMemoryNeedsTheAttribute) {
  const dim3 one{1, 1, 1};
  EXPECT_EQ(launch(one, one, 47 << 10), cudaSuccess);
  EXPECT_EQ(launch(one, one, (47 << 10) + 1), cudaErrorInvalidValue);  // 1 KiB is static
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(&stub_, attribute, 227 << 10), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(&stub_, attribute, -1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(&stub_, attribute, 226 << 10), cudaSuccess);
  EXPECT_EQ(launch(one, one, 226 << 10), cudaSuccess);
  EXPECT_EQ(launch(one, one, (226 << 10) + 1), cudaErrorInvalidValue);
}

TEST_F(Launch, WhatIsNoKernelOfTheProgram) {
  EXPECT_EQ(cudaLaunchKernel(&int_arg_, {1, 1, 1}, {1, 1, 1}, args_, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, args_, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 0, reinterpret_cast<cudaStream_t>(&int_arg_)),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLaunchKernel(&stub_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidValue);
  args_[1] = nullptr;
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorInvalidValue);
}

TEST_F(Launch, CooperativeGridsMustFit) {
  // 512 threads of 32 registers: 4 blocks on each of 132 multiprocessors.
  EXPECT_EQ(cudaLaunchCooperativeKernel(&stub_, {528, 1, 1}, {512, 1, 1}, args_, 0, nullptr),
            cudaSuccess);
  EXPECT_TRUE(state_.launches.at(0).config.cooperative);
  EXPECT_EQ(cudaLaunchCooperativeKernel(&stub_, {529, 1, 1}, {512, 1, 1}, args_, 0, nullptr),
            cudaErrorCooperativeLaunchTooLarge);
}

TEST_F(Launch, AttributesOfLaunches) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{{1, 1, 1}, {32, 1, 1}, 0, nullptr, attributes, 2};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {1, 1, 1};
  EXPECT_EQ(cudaLaunchKernelExC(&config, &stub_, args_), cudaSuccess);
  EXPECT_TRUE(state_.launches.at(0).config.cooperative);
  attributes[1].id = static_cast<cudaLaunchAttributeID>(99);
  EXPECT_EQ(cudaLaunchKernelExC(&config, &stub_, args_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernelExC(nullptr, &stub_, args_), cudaErrorInvalidValue);
  EXPECT_EQ(state_.launches.size(), 1u);
}

TEST_F(Launch, Clusters) {
  cudaLaunchAttribute attribute{cudaLaunchAttributeClusterDimension, {}, {}};
  cudaLaunchConfig_t config{{32, 1, 1}, {32, 1, 1}, 0, nullptr, &attribute, 1};
  const auto launch_in = [&](unsigned blocks) {
    attribute.val.clusterDim = {blocks, 1, 1};
    return cudaLaunchKernelExC(&config, &stub_, args_);
  };
  EXPECT_EQ(launch_in(2), cudaSuccess);
  EXPECT_EQ(state_.launches.at(0).config.cluster, (Dim3{2, 1, 1}));
  EXPECT_EQ(launch_in(3), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launch_in(16), cudaErrorInvalidClusterSize);
  int size = 0;
  attribute.val.clusterDim = {4, 1, 1};
  EXPECT_EQ(cudaOccupancyMaxPotentialClusterSize(&size, &stub_, &config), cudaSuccess);
  EXPECT_EQ(size, 8);
  int clusters = 0;
  config.blockDim = {512, 1, 1};  // 4 blocks a multiprocessor
  EXPECT_EQ(cudaOccupancyMaxActiveClusters(&clusters, &stub_, &config), cudaSuccess);
  EXPECT_EQ(clusters, 2 * (4 * 18 / 4) + 6 * (4 * 16 / 4));
  EXPECT_EQ(cudaFuncSetAttribute(&stub_, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
            cudaSuccess);
  EXPECT_EQ(launch_in(16), cudaSuccess);
  EXPECT_EQ(launch_in(32), cudaErrorInvalidClusterSize);
  EXPECT_EQ(cudaOccupancyMaxPotentialClusterSize(&size, &stub_, &config), cudaSuccess);
  EXPECT_EQ(size, 16);
}

TEST_F(Launch, ClustersThatEveryLaunchMustHave) {
  EXPECT_EQ(cudaFuncSetAttribute(&stub_, cudaFuncAttributeRequiredClusterWidth, 4), cudaSuccess);
  cudaFuncAttributes attributes{};
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, &stub_), cudaSuccess);
  EXPECT_EQ(attributes.requiredClusterWidth, 4);
  EXPECT_EQ(attributes.requiredClusterDepth, 1);
  EXPECT_EQ(launch({8, 1, 1}, {32, 1, 1}), cudaSuccess);
  EXPECT_EQ(state_.launches.at(0).config.cluster, (Dim3{4, 1, 1}));
  EXPECT_EQ(launch({6, 1, 1}, {32, 1, 1}), cudaErrorInvalidClusterSize);
  EXPECT_EQ(cudaFuncSetAttribute(&stub_, cudaFuncAttributeRequiredClusterHeight, -1),
            cudaErrorInvalidValue);
}

// CUDA would let a kernel use memory from cudaMallocHost by its own address.
TEST_F(Launch, HostMemoryInAKernelIsRefusedByName) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  state_.launch_reply.status = LaunchStatus::illegal_address;
  pointer_arg_ = static_cast<decltype(pointer_arg_)>(pinned);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  EXPECT_THAT(Runtime::instance().unsupported_api(),
              ElementsAre(testing::HasSubstr("memory of the host (cudaMallocHost")));
}

// After a kernel that faults, the launch succeeds, every later call fails, and nothing clears the
// error.
TEST_F(Launch, FaultsStay) {
  state_.launch_reply.status = LaunchStatus::illegal_address;
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorIllegalAddress);
  EXPECT_EQ(last(), cudaErrorIllegalAddress);
  EXPECT_EQ(last(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceReset(), cudaErrorIllegalAddress);
  EXPECT_EQ(state_.launches.size(), 1u);
}

TEST_F(Launch, HowFaultsAreCalled) {
  const std::pair<LaunchStatus, cudaError_t> faults[] = {
      {LaunchStatus::misaligned_address, cudaErrorMisalignedAddress},
      {LaunchStatus::illegal_instruction, cudaErrorIllegalInstruction},
      {LaunchStatus::assertion, cudaErrorAssert},
      {LaunchStatus::timeout, cudaErrorLaunchTimeout},
  };
  for (const auto& [status, error] : faults) {
    Runtime::instance().attach(std::make_unique<FakeDevice>(state_));
    state_.launch_reply.status = status;
    launch({1, 1, 1}, {1, 1, 1});
    EXPECT_EQ(cudaDeviceSynchronize(), error);
  }
}

TEST_F(Launch, RefusalsOfTheDeviceAreForgotten) {
  state_.launch_reply.status = LaunchStatus::invalid_configuration;
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(last(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(Launch, WhatTheSimulatorLacksIsNamed) {
  state_.module_reply = {ModuleReply::Status::unsupported, "stacksave.u64 in f", 0};
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorNotSupported);
  EXPECT_THAT(Runtime::instance().unsupported_api(), ElementsAre("stacksave.u64 in f"));
  // The stub keeps the result of __cudaGetKernel: if that failed, it would for the program's whole
  // life.
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &stub_), cudaSuccess);
  EXPECT_EQ(__cudaLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, args_, 0, nullptr),
            cudaErrorNotSupported);
}

TEST_F(Launch, AKernelThatNeedsWhatIsMissingFailsForGood) {
  state_.launch_reply.unsupported = true;
  state_.launch_reply.message = "tex.2d";
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorNotSupported);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorNotSupported);
}

TEST_F(Launch, InvalidPtx) {
  state_.module_reply = {ModuleReply::Status::invalid_ptx, "PTX line 3", 0};
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorInvalidPtx);
}

TEST_F(Launch, PrintfAppearsWhenCudaShowsIt) {
  state_.launch_reply.output = "from the kernel\n";
  testing::internal::CaptureStdout();
  launch({1, 1, 1}, {1, 1, 1});
  std::fputs("from the host\n", stdout);
  EXPECT_EQ(Runtime::instance().pending_output(), 16u);
  cudaDeviceSynchronize();
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "from the host\nfrom the kernel\n");
  EXPECT_EQ(Runtime::instance().pending_output(), 0u);
}

TEST_F(Launch, Attributes) {
  cudaFuncAttributes a{};
  ASSERT_EQ(cudaFuncGetAttributes(&a, &stub_), cudaSuccess);
  EXPECT_EQ(a.sharedSizeBytes, 1024u);
  EXPECT_EQ(a.maxThreadsPerBlock, 512);
  EXPECT_EQ(a.numRegs, 32);
  EXPECT_EQ(a.ptxVersion, 80);
  EXPECT_EQ(a.maxDynamicSharedSizeBytes, 47 << 10);
  const char* name = nullptr;
  EXPECT_EQ(cudaFuncGetName(&name, &stub_), cudaSuccess);
  EXPECT_STREQ(name, "_Z3addPfi");
  std::size_t offset = 0, bytes = 0;
  EXPECT_EQ(cudaFuncGetParamInfo(&stub_, 1, &offset, &bytes), cudaSuccess);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(cudaFuncGetParamInfo(&stub_, 2, &offset, &bytes), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncGetAttributes(&a, nullptr), cudaErrorInvalidDeviceFunction);
}

TEST_F(Launch, Occupancy) {
  int blocks = 0;
  const auto active = [&](int threads, std::size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &stub_, threads, shared);
  };
  EXPECT_EQ(active(512, 0), cudaSuccess);
  EXPECT_EQ(blocks, 4);  // 2048 threads
  active(32, 0);
  EXPECT_EQ(blocks, 32);  // blocks
  active(512, 100 << 10);
  EXPECT_EQ(blocks, 2);  // 228 KiB of shared memory, 1 KiB of it reserved for each block
  active(512, 227 << 10);
  EXPECT_EQ(blocks, 0);
  active(1024, 0);
  EXPECT_EQ(blocks, 0);
  EXPECT_EQ(active(0, 0), cudaErrorInvalidValue);
  std::size_t bytes = 0;
  EXPECT_EQ(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, &stub_, 2, 512), cudaSuccess);
  EXPECT_EQ(bytes, (114u << 10) - (2u << 10));
  EXPECT_EQ(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, &stub_, 5, 512),
            cudaErrorInvalidValue);
}

// The register estimate is reported, but never refuses a launch.
TEST_F(Launch, RegistersAreAnEstimate) {
  state_.kernels["_Z3addPfi"].registers = 1000;
  int blocks = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &stub_, 512, 0), cudaSuccess);
  EXPECT_EQ(blocks, 4);
  cudaFuncAttributes a{};
  EXPECT_EQ(cudaFuncGetAttributes(&a, &stub_), cudaSuccess);
  EXPECT_EQ(a.numRegs, 128);  // 512 threads of 128 registers use all of them
}

TEST_F(Launch, AKernelThatCannotBeDecodedIsNamed) {
  state_.kernel_problem = "add: stacksave.u64";
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), cudaErrorNotSupported);
  EXPECT_THAT(Runtime::instance().unsupported_api(), ElementsAre("add: stacksave.u64"));
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 4), cudaSuccess);  // nothing ran, so the error is not sticky
}

}  // namespace
}  // namespace assay::sim::cuda
