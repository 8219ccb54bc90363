#include "device/simulated_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_fixture.h"
#include "machine_code.h"

namespace assay::device {
namespace {

using sim::LaunchStatus;
using ::testing::HasSubstr;
using ::testing::StrEq;

class SimulatedGpuTest : public ::testing::Test {
 protected:
  sim::KernelId put() { return gpu_.kernel(gpu_.load_module(kPtx), "put"); }
  // A kernel that uses that many registers.
  sim::KernelId put_of(std::uint32_t registers) {
    EXPECT_THROW(gpu_.load_module(testing::machine_code({{"put", registers}})), InvalidModule);
    return put();
  }
  LaunchStatus launch(sim::KernelId kernel, std::uint32_t threads, std::uint32_t blocks = 1,
                      bool cooperative = false) {
    sim::LaunchConfig config;
    config.grid.x = blocks;
    config.block.x = threads;
    config.cooperative = cooperative;
    const std::string params = put_params(gpu_.allocate(4), 7);
    return gpu_.launch(kernel, config, std::as_bytes(std::span(params)), nullptr).status;
  }

  SimulatedGpu gpu_{{.memory_bytes = 64 << 20}};
};

TEST_F(SimulatedGpuTest, RegistersOfTheMachineCodeBoundBlocks) {
  const sim::KernelId kernel = put_of(84);
  EXPECT_EQ(gpu_.info(kernel).registers, 84u);
  EXPECT_EQ(gpu_.resident_blocks(kernel, 1024, 0), 0u);
  EXPECT_EQ(gpu_.resident_blocks(kernel, 640, 0), 1u) << "20 warps of 11 units of 256";
  EXPECT_EQ(gpu_.resident_blocks(kernel, 641, 0), 0u);
  EXPECT_EQ(gpu_.resident_blocks(kernel, 128, 0), 5u);
  EXPECT_EQ(gpu_.resident_blocks(kernel, 32, 0), 20u);
  EXPECT_EQ(gpu_.resident_blocks(kernel, 160, 0), 4u) << "of 5 warps each";
  EXPECT_EQ(launch(kernel, 1024), LaunchStatus::too_many_registers);
  EXPECT_EQ(launch(kernel, 640), LaunchStatus::ok);
  EXPECT_EQ(launch(kernel, 2048), LaunchStatus::invalid_configuration) << "whatever it takes";
}

TEST_F(SimulatedGpuTest, FewRegistersBoundNothing) {
  const sim::KernelId kernel = put_of(8);
  EXPECT_EQ(gpu_.resident_blocks(kernel, 128, 0), 16u) << "threads";
  EXPECT_EQ(gpu_.resident_blocks(kernel, 32, 99 << 10), 2u) << "shared memory";
  EXPECT_EQ(launch(kernel, 1024), LaunchStatus::ok);
}

TEST_F(SimulatedGpuTest, ACooperativeGridFitsAtOnce) {
  const sim::KernelId kernel = put_of(84);
  EXPECT_EQ(launch(kernel, 512, 132, true), LaunchStatus::ok);
  EXPECT_EQ(launch(kernel, 512, 133, true), LaunchStatus::too_large_cooperative);
  EXPECT_EQ(launch(kernel, 512, 133), LaunchStatus::ok);
}

TEST_F(SimulatedGpuTest, WithoutMachineCodeRegistersAreNotKnown) {
  put_of(84);
  const sim::KernelId kernel = put();  // another module, for which there was none
  EXPECT_EQ(gpu_.resident_blocks(kernel, 1024, 0), std::nullopt);
  EXPECT_EQ(launch(kernel, 1024), LaunchStatus::ok);
}

TEST(RegistersOfAModule, ALaunchThatDoesNotFitIsToldAndIsNoFinding) {
  ServerFixture f;
  f.start();
  EXPECT_EQ(f.load(testing::machine_code({{"put", 84}})), 0u);
  const std::uint32_t kernel = f.kernel(f.load(), "put");
  f.launch(kernel, put_params(0, 0), 1024);
  EXPECT_EQ(f.launched().status, static_cast<std::uint32_t>(LaunchStatus::too_many_registers));
  f.launch(kernel, put_params(0, 0), 2048);
  const Report& report = f.stop();
  EXPECT_THAT(report.refused, StrEq("the launch of put was refused: 1024 threads of 84 registers "
                                    "are more than a multiprocessor has"))
      << "the first of them";
  EXPECT_EQ(report.findings, 0u);
  EXPECT_THAT(report.invalid_ptx, StrEq("")) << "machine code is no PTX, and need not be";
  f.start();
  f.launch(kernel, put_params(0, 0), 2048);
  EXPECT_THAT(f.stop().refused, HasSubstr("1 x 1 x 1 blocks of 2048 x 1 x 1 threads"));
}

TEST(RegistersOfAModule, CodeTakesNoRoomFromModules) {
  ServerFixture f;
  f.start();
  std::string code = testing::machine_code({{"put", 84}});
  code.resize(kMaxModuleBytes / 2 + 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(f.call(CallKind::module_begin, 0, code.size()).ok, 1u);
    for (std::size_t at = 0; at < code.size(); at += kWindowBytes)
      f.call(CallKind::module_part, 0, 0, std::string_view(code).substr(at, kWindowBytes));
    EXPECT_EQ(f.call(CallKind::module_load).code, 1u);
  }
  f.launch(f.kernel(f.load(), "put"), put_params(0, 0), 1024);
  EXPECT_EQ(f.launched().status, static_cast<std::uint32_t>(LaunchStatus::too_many_registers));
}

}  // namespace
}  // namespace assay::device
