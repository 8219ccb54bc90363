// A real GPU as the device process serves it, tested with the driver that simulates one.
#include "device/hardware_gpu.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "device/device_fixture.h"
#include "gpu/double_fixture.h"

namespace assay::device {
namespace {

using gpu::double_path;
using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 64 << 20;

class HardwareGpuTest : public ::testing::Test {
 protected:
  void SetUp() override { gpu::reset_double(); }
  void TearDown() override { gpu::reset_double(); }

  ServerFixture& start() {
    fixture_ =
        std::make_unique<ServerFixture>(std::make_unique<HardwareGpu>(double_path(), kBytes));
    fixture_->place();
    fixture_->start();
    return *fixture_;
  }
  static sim::LaunchStatus status(ServerFixture& f) {
    return static_cast<sim::LaunchStatus>(f.launched().status);
  }
  static std::uint32_t word(const std::byte* at) {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

 private:
  std::unique_ptr<ServerFixture> fixture_;
};

TEST_F(HardwareGpuTest, BuffersGoInAndOutputsComeBack) {
  ServerFixture f(std::make_unique<HardwareGpu>(double_path(), kBytes));
  std::memset(f.arena() + 256, 7, 16);
  std::memset(f.arena() + 500, 9, 64);
  f.place();
  f.start();
  ASSERT_EQ(f.call(CallKind::read, f.input(), 16).ok, 1u);
  EXPECT_EQ(word(f.window()), 0x07070707u);
  f.launch(f.kernel(f.load(), "put"), put_params(f.output() + 4, 0x12345678));
  EXPECT_EQ(status(f), sim::LaunchStatus::ok);
  const Report& report = f.stop();
  EXPECT_EQ(report.findings, 0u) << report.first_finding;
  EXPECT_EQ(f.counters().launches, 1u);
  f.order(Order::collect);
  EXPECT_EQ(word(f.arena() + 520), 0x12345678u);
  EXPECT_EQ(word(f.arena() + 516), 0x09090909u);
  EXPECT_EQ(f.control.changed, -1);
}

TEST_F(HardwareGpuTest, WorkersAreToldWhatItIs) {
  const LinkPage& page = start().page();
  EXPECT_EQ(page.architecture, 90u);
  EXPECT_EQ(page.multiprocessors, 132u);
  EXPECT_EQ(page.is_hardware, 1u);
}

// The double charges 3 us per launch, and nothing for the harness's own work.
TEST_F(HardwareGpuTest, WhatIsMeasuredIsTheSubmissionsWork) {
  ServerFixture& f = start();
  EXPECT_EQ(f.stop().seconds, 0);
  f.start();
  const std::uint32_t put = f.kernel(f.load(), "put");
  for (std::uint32_t i = 0; i < 10; ++i) f.launch(put, put_params(f.output(), i));
  const double ten = f.stop().seconds;
  EXPECT_GT(ten, 30e-6);
  EXPECT_LT(ten, 40e-6);
  f.start();
  EXPECT_EQ(f.stop().seconds, 0) << "each phase has a time of its own";
}

TEST_F(HardwareGpuTest, MoreWorkThanTheStreamHoldsIsDoneInParts) {
  ServerFixture& f = start();
  const std::uint32_t put = f.kernel(f.load(), "put");
  for (std::uint32_t i = 0; i < 1000; ++i) f.launch(put, put_params(f.output(), i));
  ASSERT_EQ(f.call(CallKind::read, f.output(), 4).ok, 1u);
  EXPECT_EQ(word(f.window()), 999u);
  EXPECT_GT(f.stop().seconds, 3e-3);
  EXPECT_EQ(f.counters().launches, 1000u);
}

TEST_F(HardwareGpuTest, CopiesLargerThanTheStagingMemoryAreWhole) {
  constexpr std::size_t kLarge = (std::size_t{65} << 20) + 3;
  HardwareGpu gpu(double_path(), 2 * kLarge);
  const std::uint64_t at = gpu.allocate(kLarge);
  std::vector<std::byte> sent(kLarge), came(kLarge);
  for (std::size_t i = 0; i < kLarge; ++i) sent[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  ASSERT_TRUE(gpu.write(at, sent, nullptr));
  ASSERT_TRUE(gpu.read(came, at, false, nullptr));
  EXPECT_TRUE(sent == came);
}

// The first word of a box goes to out.
constexpr const char* kTensorPtx = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry first(.param .align 64 .b8 map[128], .param .u64 out) {
  .shared .align 128 .b8 tile[64];
  .shared .align 8 .b8 full[8];
  .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<5>;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [out];
  mbarrier.init.shared.b64 [full], 1;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [tile], [%rd1, {4, 1}], [full];
  mbarrier.arrive.expect_tx.shared.b64 %rd3, [full], 64;
wait:
  mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
  @!%p1 bra wait;
  ld.shared.u32 %r1, [tile];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

TEST_F(HardwareGpuTest, TensorMapsAreTheDrivers) {
  HardwareGpu gpu(double_path(), kBytes);
  std::vector<std::uint32_t> tensor(64);
  for (std::uint32_t i = 0; i < 64; ++i) tensor[i] = 100 + i;
  const std::uint64_t at = gpu.allocate(256), out = gpu.allocate(4);
  ASSERT_TRUE(gpu.write(at, std::as_bytes(std::span(tensor)), nullptr));
  sim::TensorMapRequest request{.element = 2, .rank = 2, .address = at};
  request.size = {16, 4};
  request.stride_bytes = {64};
  request.box = {8, 2};
  request.step = {1, 1};
  const sim::TensorMapReply reply = gpu.tensor_map(request);
  ASSERT_EQ(reply.status, sim::TensorMapReply::Status::ok);
  std::vector<std::byte> params(reply.map.begin(), reply.map.end());
  params.resize(params.size() + sizeof out);
  std::memcpy(params.data() + reply.map.size(), &out, sizeof out);
  const sim::KernelId kernel = gpu.kernel(gpu.load_module(kTensorPtx), "first");
  gpu.begin_phase(0);
  EXPECT_EQ(gpu.launch(kernel, {}, params, nullptr).status, sim::LaunchStatus::ok);
  gpu.end_phase();
  std::array<std::byte, 4> word{};
  ASSERT_TRUE(gpu.read(word, out, false, nullptr));
  EXPECT_EQ(HardwareGpuTest::word(word.data()), 120u) << "the fifth of the second row";

  request.rank = 6;
  EXPECT_EQ(gpu.tensor_map(request).status, sim::TensorMapReply::Status::invalid);
  ASSERT_EQ(gpu::set_faults("cuTensorMapEncodeTiled:3@1"), 0);
  EXPECT_THROW(gpu.tensor_map(request), gpu::DriverError);
}

TEST_F(HardwareGpuTest, OnlyWhatIsAllocatedCanBeReached) {
  ServerFixture& f = start();
  EXPECT_EQ(f.call(CallKind::read, f.input(), 17).ok, 0u);
  EXPECT_EQ(f.call(CallKind::write, f.input() - 1, 0, "x").ok, 0u);
  EXPECT_EQ(f.call(CallKind::free, f.input()).ok, 0u) << "it is the case's";
  const std::uint64_t own = f.call(CallKind::allocate, 0, 100).address;
  ASSERT_NE(own, 0u);
  EXPECT_EQ(f.call(CallKind::write, own, 0, std::string(100, 'x')).ok, 1u);
  EXPECT_EQ(f.call(CallKind::free, own).ok, 1u);
  EXPECT_EQ(f.call(CallKind::read, own, 100).ok, 0u);
  EXPECT_EQ(f.call(CallKind::allocate, 0, kBytes + 1).address, 0u);
}

TEST_F(HardwareGpuTest, VariablesOfModulesAreMemory) {
  ServerFixture& f = start();
  Call call;
  call.kind = CallKind::variable;
  call.id = f.load(gpu::kPtx);
  const Answer counter = f.call(call, "counter");
  ASSERT_EQ(counter.bytes, 4u);
  ASSERT_EQ(f.call(CallKind::read, counter.address, 4).ok, 1u);
  EXPECT_EQ(word(f.window()), 7u);
  EXPECT_EQ(f.call(CallKind::read, counter.address, 5).ok, 0u);
  EXPECT_EQ(f.call(call, "no such").bytes, 0u);
}

TEST_F(HardwareGpuTest, VariablesOfModulesCountLikeBlocks) {
  ServerFixture& f = start();
  const auto live = [&] { return f.call(CallKind::memory).bytes; };
  const auto module_of = [](std::uint64_t bytes) {
    return fmt::format(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b8 big[{}];\n",
        bytes);
  };
  const std::uint64_t before = live();
  f.load(module_of(1 << 20));
  EXPECT_EQ(live(), before + (1 << 20));
  EXPECT_EQ(f.stop().peak_bytes, 1u << 20);
  EXPECT_EQ(f.call(CallKind::allocate, 0, kBytes - (1 << 20)).address, 0u);
  f.start();
  f.load(module_of(kBytes));
  EXPECT_THAT(f.stop().invalid_ptx, HasSubstr("its variables take 67108864 bytes"));
  EXPECT_EQ(live(), before + (1 << 20));
}

// As on hardware, the launch succeeds, and the fault shows when something waits for it.
TEST_F(HardwareGpuTest, AFaultEndsTheGpuForGoodAndIsReported) {
  ServerFixture& f = start();
  const std::uint32_t put = f.kernel(f.load(), "put");
  f.launch(put, put_params(64, 1));
  EXPECT_EQ(f.call(CallKind::read, f.output(), 4).ok, 0u);
  f.launch(put, put_params(f.output(), 1));
  EXPECT_EQ(status(f), sim::LaunchStatus::illegal_address);
  const Report& report = f.stop();
  EXPECT_GT(report.findings, 0u);
  EXPECT_THAT(report.first_finding, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(HardwareGpuTest, LaunchesThatCannotBeAreRefusedAtOnce) {
  ServerFixture& f = start();
  const std::uint32_t put = f.kernel(f.load(), "put");
  for (const std::uint32_t threads : {0u, 1025u}) {
    f.launch(put, put_params(f.output(), 1), threads);
    EXPECT_EQ(status(f), sim::LaunchStatus::invalid_configuration) << threads;
  }
  f.launch(put, "too short");
  EXPECT_EQ(status(f), sim::LaunchStatus::invalid_configuration);
  Call call;
  call.kind = CallKind::launch;
  call.id = put;
  call.shape = {{1u << 20, 1, 1}, {1, 1, 1}, 0, 1};
  f.call(call, put_params(f.output(), 1));
  EXPECT_EQ(status(f), sim::LaunchStatus::too_large_cooperative);
  call.shape = {{1, 1, 1}, {1, 1, 1}, 300 << 10, 0};
  f.call(call, put_params(f.output(), 1));
  EXPECT_EQ(status(f), sim::LaunchStatus::invalid_configuration);
  EXPECT_EQ(f.stop().findings, 0u) << "the program was told";
}

TEST_F(HardwareGpuTest, ALaunchThatTheDriverRefusesLeavesTheGpuAlive) {
  ServerFixture& f = start();
  const std::uint32_t put = f.kernel(f.load(), "put");
  for (const auto& [code, told] : {std::pair{720, sim::LaunchStatus::too_large_cooperative},
                                   {701, sim::LaunchStatus::too_many_registers},
                                   {912, sim::LaunchStatus::invalid_configuration}}) {
    ASSERT_EQ(gpu::set_faults(fmt::format("cuLaunchKernel:{}@1", code).c_str()), 0);
    f.launch(put, put_params(f.output(), 1));
    EXPECT_EQ(status(f), told) << code;
    gpu::set_faults("");
  }
  f.launch(put, put_params(f.output(), 9));
  ASSERT_EQ(f.call(CallKind::read, f.output(), 4).ok, 1u);
  EXPECT_EQ(word(f.window()), 9u);
  EXPECT_EQ(f.stop().findings, 0u);
}

TEST_F(HardwareGpuTest, AFaultOfTheGpuIsNoProgramsFault) {
  for (const char* fault :
       {"cuEventQuery:214@1", "cuModuleLoadDataEx:46@1", "cuLaunchKernel:802@1"}) {
    ServerFixture& f = start();
    ASSERT_EQ(gpu::set_faults(fault), 0);
    EXPECT_THROW(
        {
          f.launch(f.kernel(f.load(), "put"), put_params(f.output(), 1));
          f.stop();
        },
        GpuFault)
        << fault;
    gpu::reset_double();
  }
}

TEST_F(HardwareGpuTest, LaunchesInClusters) {
  ServerFixture& f = start();
  Call call;
  call.kind = CallKind::launch;
  call.id = f.kernel(f.load(), "put");
  const auto status_of = [&](std::uint32_t blocks, std::uint32_t cluster) {
    call.shape = {.grid = {blocks, 1, 1}, .block = {1, 1, 1}, .cluster = {cluster, 1, 1}};
    f.call(call, put_params(f.output(), 7));
    return status(f);
  };
  EXPECT_EQ(status_of(4, 2), sim::LaunchStatus::ok);
  EXPECT_EQ(status_of(16, 16), sim::LaunchStatus::ok);
  EXPECT_EQ(status_of(3, 2), sim::LaunchStatus::invalid_configuration);
  EXPECT_EQ(status_of(32, 32), sim::LaunchStatus::invalid_configuration);
  EXPECT_EQ(status_of(4, 0), sim::LaunchStatus::invalid_configuration);
  ASSERT_EQ(f.call(CallKind::read, f.output(), 4).ok, 1u);
  EXPECT_EQ(word(f.window()), 7u);
  EXPECT_THAT(f.stop().refused, HasSubstr("in clusters of 2 x 1 x 1 blocks"));
}

TEST_F(HardwareGpuTest, PtxThatIsNoneIsTheSubmissionsFault) {
  ServerFixture& f = start();
  f.load("nonsense");
  EXPECT_THAT(f.stop().invalid_ptx, HasSubstr("CUDA_ERROR_INVALID_PTX"));
}

TEST_F(HardwareGpuTest, CodeThatItDoesNotTakeIsNobodysFaultYet) {
  ServerFixture& f = start();
  f.load(
      "\x7f"
      "ELF of another GPU");
  EXPECT_EQ(f.page().answer.code, 1u);
  EXPECT_STREQ(f.stop().invalid_ptx, "");
}

TEST_F(HardwareGpuTest, AGpuWithoutADriverOrWithAnotherCapabilityIsRefused) {
  EXPECT_THROW(HardwareGpu("/no/such/libcuda.so.1", kBytes), gpu::DriverError);
}

TEST_F(HardwareGpuTest, TellsWhatTheDriverSays) {
  const GpuFacts facts = HardwareGpu(double_path(), kBytes).facts();
  EXPECT_EQ(facts.name, "Simulated H200");
  EXPECT_EQ(facts.pci_bus_id, "0000:3b:00.0");
  EXPECT_EQ(facts.cuda, 13000);
  EXPECT_EQ(facts.major, 9);
  EXPECT_EQ(facts.minor, 0);
  EXPECT_EQ(facts.multiprocessors, 132u);
  EXPECT_EQ(facts.memory_bytes, std::uint64_t{64} << 30);
  EXPECT_TRUE(facts.ecc);
}

TEST_F(HardwareGpuTest, WhatTheDriverDoesNotSayIsNotInvented) {
  const HardwareGpu gpu(double_path(), kBytes);
  for (const char* name : {"cuDeviceGetName", "cuDeviceGetPCIBusId", "cuDriverGetVersion",
                           "cuDeviceTotalMem_v2", "cuDeviceGetAttribute"}) {
    ASSERT_EQ(gpu::set_faults((std::string(name) + ":719@1").c_str()), 0);
    EXPECT_THROW(gpu.facts(), gpu::DriverError) << name;
  }
}

// Whatever error a driver function returns, the first time or later: nothing hangs, no time is
// reported for work that was not done, and the failure is reported.
TEST_F(HardwareGpuTest, EachFailureOfTheDriverIsTold) {
  const auto use = [] {
    ServerFixture f(std::make_unique<HardwareGpu>(double_path(), kBytes));
    f.place();
    f.start();
    const std::uint32_t put = f.kernel(f.load(), "put");
    f.launch(put, put_params(f.output(), 5));
    f.launch(put, put_params(f.output(), 6));
    const bool read = f.call(CallKind::read, f.output(), 4).ok == 1 && word(f.window()) == 6;
    const Report& report = f.stop();
    return read && report.findings == 0 && report.seconds > 0;
  };
  ASSERT_TRUE(use());
  // Functions that are not called, or whose results do not matter: texts, names, and bounds of
  // parameters.
  const auto matters = [](std::string_view name) {
    for (const std::string_view other :
         {"cuGetErrorName", "cuGetErrorString", "cuDeviceGetName", "cuDeviceGetPCIBusId",
          "cuDeviceTotalMem_v2", "cuDriverGetVersion", "cuStreamSynchronize",
          "cuModuleGetGlobal_v2", "cuFuncSetAttribute", "cuFuncGetParamInfo",
          "cuMemcpyDtoDAsync_v2", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
          "cuLaunchCooperativeKernel", "cuLaunchKernelEx", "cuTensorMapEncodeTiled",
          "cuModuleUnload"})
      if (name == other) return false;
    return true;
  };
  const auto fails = [&](const char* name) {
    if (!matters(name)) return;
    gpu::reset_double();
    ASSERT_EQ(gpu::set_faults((std::string(name) + ":719@1").c_str()), 0);
    try {
      EXPECT_FALSE(use()) << name;
    } catch (const std::exception& e) {
      EXPECT_THAT(e.what(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED")) << name;
    }
  };
#define ASSAY_CHECK(member, name, parameters) fails(#name);
  ASSAY_DRIVER_FUNCTIONS(ASSAY_CHECK)
#undef ASSAY_CHECK
}

}  // namespace
}  // namespace assay::device
