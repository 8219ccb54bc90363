// Launches on the double: parameters, results, refusals, and broken contexts.
#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

using ::testing::ElementsAre;

class DoubleLaunch : public ContextTest {
 protected:
  void expect_broken(CUresult code) {
    const CUdeviceptr at = 0;
    int value = 0;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cu.stream_synchronize(nullptr), code);
      EXPECT_EQ(cu.copy_to_host(&value, at, 4, nullptr), code);
      EXPECT_EQ(cu.event_create(&event, 0), code);
      EXPECT_EQ(cu.event_query(nullptr), code);
      EXPECT_EQ(cu.module_load(&module, kPtx, 0, nullptr, nullptr), code);
      EXPECT_EQ(launch(nullptr, 32), code);
    }
    EXPECT_EQ(cu.device_count(&value), kSuccess);
    EXPECT_NE(cu.text_of(code), "");
  }
};

TEST_F(DoubleLaunch, ParametersByPointers) {
  CUdeviceptr out = memory();
  std::uint32_t n = 10;
  void* params[] = {&out, &n};
  EXPECT_EQ(launch(kernel("add"), 4, params), kSuccess);
  EXPECT_THAT(download<int>(out, 5), ElementsAre(10, 11, 12, 13, 0));
}

TEST_F(DoubleLaunch, ParametersInABuffer) {
  const CUdeviceptr out = memory();
  struct {
    CUdeviceptr out;
    std::uint32_t n;
  } params{out, 20};
  std::size_t bytes = sizeof params;
  void* extra[] = {as_pointer(kLaunchParamBufferPointer), &params,
                   as_pointer(kLaunchParamBufferSize), &bytes, as_pointer(kLaunchParamEnd)};
  const CUfunction add = kernel("add");
  const auto go = [&](void** pointers) {
    return cu.launch(add, 1, 1, 1, 2, 1, 1, 0, nullptr, pointers, extra);
  };
  EXPECT_EQ(go(nullptr), kSuccess);
  EXPECT_THAT(download<int>(out, 3), ElementsAre(20, 21, 0));
  void* pointers[] = {&params.out, &params.n};
  EXPECT_EQ(go(pointers), kInvalidValue);  // both
  bytes = 11;
  EXPECT_EQ(go(nullptr), kInvalidValue);  // too short
  extra[0] = as_pointer(9);
  EXPECT_EQ(go(nullptr), kInvalidValue);     // no such key
  EXPECT_EQ(launch(add, 2), kInvalidValue);  // neither
}

TEST_F(DoubleLaunch, RefusesConfigurationsAndLivesOn) {
  const CUfunction nothing = kernel("nothing");
  EXPECT_EQ(launch(nothing, 0), kInvalidValue);
  EXPECT_EQ(launch(nothing, 1025), kInvalidValue);
  EXPECT_EQ(launch(nullptr, 32), kInvalidHandle);
  EXPECT_EQ(launch(nothing, 32), kSuccess);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);
}

TEST_F(DoubleLaunch, Cooperative) {
  CUdeviceptr out = memory();
  std::uint32_t n = 5;
  void* params[] = {&out, &n};
  EXPECT_EQ(cu.launch_cooperative(kernel("add"), 1, 1, 1, 2, 1, 1, 0, nullptr, params), kSuccess);
  EXPECT_THAT(download<int>(out, 3), ElementsAre(5, 6, 0));
  const auto of_blocks = [&](unsigned blocks) {
    return cu.launch_cooperative(kernel("nothing"), blocks, 1, 1, 1024, 1, 1, 0, nullptr, nullptr);
  };
  EXPECT_EQ(of_blocks(2 * 132), kSuccess);
  EXPECT_EQ(of_blocks(2 * 132 + 1), kCooperativeLaunchTooLarge);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);
}

TEST_F(DoubleLaunch, Clusters) {
  CUdeviceptr out = memory();
  void* params[] = {&out};
  CUlaunchAttribute attributes[2];
  attributes[0].id = kLaunchClusterDimension;
  attributes[1].id = kLaunchCooperative;
  CUlaunchConfig config{{32, 1, 1}, {1, 1, 1}, 0, nullptr, attributes, 2};
  const CUfunction ranks = kernel("ranks");
  const auto in_clusters_of = [&](unsigned blocks) {
    attributes[0].cluster[0] = blocks;
    attributes[0].cluster[1] = attributes[0].cluster[2] = 1;
    return cu.launch_extended(&config, ranks, params, nullptr);
  };
  EXPECT_EQ(in_clusters_of(2), kSuccess);
  EXPECT_THAT(download<int>(out, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(in_clusters_of(3), kInvalidValue);
  EXPECT_EQ(in_clusters_of(16), kInvalidValue);
  EXPECT_EQ(cu.function_set_attribute(ranks, kFunctionLargeClusters, 1), kSuccess);
  EXPECT_EQ(in_clusters_of(16), kSuccess);
  EXPECT_THAT(download<int>(out, 4), ElementsAre(16, 16, 16, 16));
  attributes[1].id = 99;
  EXPECT_EQ(in_clusters_of(2), kInvalidValue);
  EXPECT_EQ(cu.launch_extended(nullptr, ranks, params, nullptr), kInvalidValue);
}

TEST_F(DoubleLaunch, IllegalAddressBreaksTheContext) {
  EXPECT_EQ(launch(kernel("stray"), 1), kSuccess);
  expect_broken(kIllegalAddress);
}

TEST_F(DoubleLaunch, MisalignedAddressBreaksTheContext) {
  CUdeviceptr out = memory();
  void* params[] = {&out};
  EXPECT_EQ(launch(kernel("crooked"), 1, params), kSuccess);
  expect_broken(kMisalignedAddress);
}

TEST_F(DoubleLaunch, TrapBreaksTheContext) {
  EXPECT_EQ(launch(kernel("trapped"), 1), kSuccess);
  expect_broken(kIllegalInstruction);
}

TEST_F(DoubleLaunch, DeadlockBreaksTheContextAsATimeout) {
  EXPECT_EQ(launch(kernel("stuck"), 32), kSuccess);
  expect_broken(kLaunchTimeout);
}

TEST_F(DoubleLaunch, FailedAssertionBreaksTheContext) {
  CUmodule module = load(R"(.version 9.0
.target sm_90
.address_size 64
.global .align 1 .b8 text[3] = {110, 111, 0};
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,
                           .param .b64 e) .noreturn;
.visible .entry k() {
  .reg .b64 %rd<3>;
  mov.u64 %rd1, text;
  {
    .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd1; st.param.b32 [p2], 7;
    st.param.b64 [p3], %rd1; st.param.b64 [p4], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4);
  }
  ret;
})");
  CUfunction function = nullptr;
  ASSERT_EQ(cu.module_function(&function, module, "k"), kSuccess);
  EXPECT_EQ(launch(function, 1), kSuccess);
  expect_broken(kAssert);
}

TEST_F(DoubleLaunch, PrintsOnStandardOutput) {
  CUmodule module = load(R"(.version 9.0
.target sm_90
.address_size 64
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.visible .entry k() {
  .reg .b64 %rd<3>;
  mov.u64 %rd1, text;
  cvta.global.u64 %rd2, %rd1;
  {
    .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %rd2; st.param.b64 [b], 0;
    call.uni (c), vprintf, (a, b);
  }
  ret;
})");
  CUfunction function = nullptr;
  ASSERT_EQ(cu.module_function(&function, module, "k"), kSuccess);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(launch(function, 2), kSuccess);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "hi\nhi\n");
}

TEST_F(DoubleLaunch, WhatIsNotSimulatedIsNotSupported) {
  CUmodule module = load(
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k() { frobnicate; ret; }");
  CUfunction function = nullptr;
  ASSERT_EQ(cu.module_function(&function, module, "k"), kSuccess);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(launch(function, 1), kNotSupported);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("frobnicate"));
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);
}

}  // namespace
}  // namespace assay::gpu
