#include "device/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "assay/random.h"
#include "device/device_fixture.h"
#include "device/mock_gpu.h"

namespace assay::device {
namespace {

using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;
using ::testing::SaveArg;

constexpr std::string_view kPtxDeep = R"(
.version 8.0
.target sm_80
.address_size 64
.func down() { .local .align 4 .b8 a[400]; call.uni down, (); ret; }
.visible .entry deep() { call.uni down, (); ret; }
)";

std::uint32_t word(const std::byte* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

TEST(DeviceServer, BuffersGoInAndOutputsComeBack) {
  ServerFixture f;
  std::memset(f.arena() + 256, 7, 16);
  std::memset(f.arena() + 500, 9, 64);
  f.place();
  EXPECT_EQ(f.input() % 256, 0u);
  EXPECT_EQ(f.output() % 256, 4u);
  f.start();
  ASSERT_EQ(f.call(CallKind::read, f.input(), 16).ok, 1u);
  EXPECT_EQ(word(f.window()), 0x07070707u);
  EXPECT_EQ(f.launch(f.kernel(f.load(), "put"), put_params(f.output() + 4, 0x12345678)).ok, 1u);
  f.stop();
  std::memset(f.arena() + 500, 0, 64);
  f.order(Order::collect);
  EXPECT_EQ(word(f.arena() + 520), 0x12345678u);
  EXPECT_EQ(word(f.arena() + 516), 0x09090909u);
  EXPECT_EQ(word(f.arena() + 512), 0x09090909u) << "what stands before the output comes along";
  EXPECT_EQ(word(f.arena() + 508), 0u);
  EXPECT_EQ(f.control.changed, -1);
}

TEST(DeviceServer, WorkersAreToldWhatTheGpuIs) {
  EXPECT_EQ(ServerFixture().page().is_hardware, 0u) << "it takes machine code, and is none";
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  ON_CALL(*gpu, multiprocessors).WillByDefault(Return(114));
  EXPECT_EQ(ServerFixture(std::move(gpu)).page().multiprocessors, 114u);
}

// Copied from memory that was never written: reported when the output is collected.
TEST(DeviceServer, AnOutputOfUndefinedValuesIsNamed) {
  constexpr std::string_view kCopy = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 p, .param .u32 v) {
  .shared .align 4 .b8 s[4]; .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p]; ld.shared.u32 %r1, [s]; st.global.u32 [%rd1], %r1; ret; }
)";
  ServerFixture f;
  f.place();
  f.start();
  f.launch(f.kernel(f.load(kCopy), "copy"), put_params(f.output() + 4, 0));
  EXPECT_EQ(f.stop().findings, 0u);
  f.order(Order::collect);
  EXPECT_THAT(f.control.undefined, HasSubstr("uninitialised read in copy"));
  // The next case has no such values.
  f.place();
  f.start();
  f.stop();
  f.order(Order::collect);
  EXPECT_STREQ(f.control.undefined, "");
}

TEST(DeviceServer, AnInputThatWasWrittenToIsNamed) {
  ServerFixture f;
  f.place();
  f.start();
  f.launch(f.kernel(f.load(), "put"), put_params(f.input() + 8, 1));
  f.stop();
  f.order(Order::collect);
  EXPECT_EQ(f.control.changed, 0);
  EXPECT_EQ(f.control.changed_at, 8u);
}

TEST(DeviceServer, InputsOfALaterPhaseComeWithIt) {
  ServerFixture f;
  f.place(1);
  std::memset(f.arena() + 256, 7, 16);
  f.start(0);
  f.call(CallKind::read, f.input(), 4);
  EXPECT_EQ(word(f.window()), 0u);
  f.stop();
  f.start(1);
  f.call(CallKind::read, f.input(), 4);
  EXPECT_EQ(word(f.window()), 0x07070707u);
}

TEST(DeviceServer, InputsOfAPhaseAloneGoWithIt) {
  ServerFixture f;
  std::memset(f.arena() + 256, 7, 16);
  f.place(0, 0);
  f.start(0);
  f.call(CallKind::read, f.input(), 4);
  EXPECT_EQ(word(f.window()), 0x07070707u);
  f.stop();
  std::memset(f.arena() + 256, 0, 16);
  f.start(1);
  f.call(CallKind::read, f.input(), 4);
  EXPECT_EQ(word(f.window()), 0u);
  f.stop();
  f.order(Order::collect);
  EXPECT_EQ(f.control.changed, -1);
}

TEST(DeviceServer, ListensOnlyFromStartToStop) {
  ServerFixture f;
  EXPECT_FALSE(f.server().listening());
  f.start();
  EXPECT_TRUE(f.server().listening());
  f.stop();
  EXPECT_FALSE(f.server().listening());
}

TEST(DeviceServer, TheReportCountsOnePhase) {
  ServerFixture f;
  f.place();
  f.start();
  const auto put = f.kernel(f.load(), "put");
  f.launch(put, put_params(f.output(), 1));
  f.launch(put, put_params(f.output(), 2));
  f.call(CallKind::write, f.output(), 0, "abcd");
  f.call(CallKind::read, f.output(), 8);
  f.call(CallKind::fill, f.output(), 12);
  const Report first = f.stop();
  EXPECT_EQ(f.counters().launches, 2u);
  EXPECT_EQ(f.counters().global_store_bytes, 8u);
  EXPECT_EQ(first.to_device_bytes, 4u + 2 * 12) << "parameters of launches go there too";
  EXPECT_EQ(first.to_host_bytes, 8u);
  EXPECT_EQ(first.within_bytes, 12u);
  EXPECT_EQ(first.transfers, 3u);
  EXPECT_EQ(first.findings, 0u);
  f.start(1);
  f.stop();
  EXPECT_EQ(f.counters().launches, 0u);
}

TEST(DeviceServer, TheRowsOfABoxAreOneTransferAndWhatOnlyClaimsToBeIsNot) {
  ServerFixture f;
  f.place();
  const auto transfers = [&](const std::vector<std::pair<std::uint32_t, std::uint64_t>>& rows,
                             bool launches = false) {
    f.start();
    const auto put = launches ? f.kernel(f.load(), "put") : sim::KernelId{};
    const std::uint64_t block = f.call(CallKind::allocate, 0, 64).address;
    for (const auto& [row, offset] : rows) {
      Call call;
      call.kind = CallKind::fill;
      call.row = row;
      call.address = block + offset;
      call.bytes = 4;
      f.call(call);
      if (launches) f.launch(put, put_params(f.output(), 1));
    }
    return f.stop().transfers;
  };
  EXPECT_EQ(transfers({{0, 0}, {1, 8}, {2, 16}}), 1u);
  EXPECT_EQ(transfers({{0, 0}, {1, 8}, {2, 16}, {0, 0}, {1, 8}}), 2u);
  EXPECT_EQ(transfers({{0, 0}, {0, 8}, {0, 16}}), 3u);
  EXPECT_EQ(transfers({{0, 0}, {1, 8}, {2, 12}}), 2u) << "at another distance";
  EXPECT_EQ(transfers({{0, 0}, {2, 8}, {3, 16}}), 3u) << "not the next";
  EXPECT_EQ(transfers({{0, 0}, {1, 0}, {2, 0}}), 3u) << "the same place";
  EXPECT_EQ(transfers({{0, 0}, {1, 8}, {2, 16}}, true), 3u) << "with launches in between";
}

TEST(DeviceServer, MemoryBesideTheBuffersIsMeasured) {
  ServerFixture f;
  f.place();
  f.start();
  const std::uint64_t a = f.call(CallKind::allocate, 0, 5000).address;
  ASSERT_NE(a, 0u);
  EXPECT_EQ(f.call(CallKind::free, a).ok, 1u);
  f.call(CallKind::allocate, 0, 3000);
  EXPECT_EQ(f.stop().peak_bytes, 5000u);
  f.start(1);
  EXPECT_EQ(f.stop().peak_bytes, 3000u) << "what is kept counts in every phase";
}

constexpr std::string_view kPtxLocal = R"(
.version 8.0
.target sm_80
.address_size 64
.func inner() { .local .align 4 .b8 b[1000]; ret; }
.visible .entry small() { .local .align 4 .b8 a[1024]; ret; }
.visible .entry large() { .local .align 4 .b8 a[1504]; call.uni inner, (); ret; }
)";

TEST(DeviceServer, LargeArraysOfThreadsAreMemory) {
  ServerFixture f;
  f.place();
  f.start();
  const std::uint32_t module = f.load(kPtxLocal);
  f.launch(f.kernel(module, "small"), "", 64);
  EXPECT_EQ(f.stop().peak_bytes, 0u) << "room for spilled registers";
  f.start();
  f.call(CallKind::allocate, 0, 5000);
  f.launch(f.kernel(module, "large"), "", 64);
  f.launch(f.kernel(module, "small"), "", 64);
  EXPECT_EQ(f.stop().peak_bytes, 5000u + 64 * (1504 + 1008 - 1024)) << "those of callees too";
  f.start();
  EXPECT_EQ(f.stop().peak_bytes, 5000u);
}

TEST(DeviceServer, ArraysCountForThreadsThatRunAtOnce) {
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  ON_CALL(*gpu, multiprocessors).WillByDefault(Return(2));
  sim::LaunchResult result;
  result.local_bytes = 1024 + 16;
  ON_CALL(*gpu, launch).WillByDefault(Return(result));
  ServerFixture f(std::move(gpu));
  f.place();
  f.start();
  const std::uint32_t kernel = f.kernel(f.load(), "put");
  const auto launch = [&](std::uint32_t blocks) {
    Call c;
    c.kind = CallKind::launch;
    c.id = kernel;
    c.shape = {{blocks, blocks, blocks}, {1024, 1, 1}, 0, 0};
    f.call(c);
  };
  launch(1);
  EXPECT_EQ(f.stop().peak_bytes, 1024u * 16);
  f.start();
  launch(1'000'000);
  EXPECT_EQ(f.stop().peak_bytes, 2u * 2048 * 16);
}

TEST(DeviceServer, ACopyWithinReadsAndWrites) {
  ServerFixture f;
  f.place();
  f.start();
  Call copy;
  copy.kind = CallKind::copy;
  copy.address = f.output();
  copy.from = f.input();
  copy.bytes = 16;
  EXPECT_EQ(f.call(copy).ok, 1u);
  EXPECT_EQ(f.stop().within_bytes, 32u);
}

TEST(DeviceServer, AfterItsLimitAPhaseLaunchesNothingMore) {
  ServerFixture f;
  f.place();
  f.start();
  const auto module = f.load();
  f.launch(f.kernel(module, "forever"), "");
  const auto put = f.kernel(module, "put");
  f.launch(put, put_params(f.output(), 1));
  EXPECT_EQ(f.launched().status, static_cast<std::uint32_t>(sim::LaunchStatus::timeout));
  f.stop();
  EXPECT_EQ(f.counters().launches, 1u);
  f.start(1);
  f.launch(put, put_params(f.output(), 1));
  EXPECT_EQ(f.launched().status, static_cast<std::uint32_t>(sim::LaunchStatus::ok));
}

TEST(DeviceServer, AllModulesTogetherHaveALimit) {
  ServerFixture f;
  f.start();
  std::size_t taken = 0;
  for (; f.call(CallKind::module_begin, 0, kMaxModuleBytes / 4).ok != 0 && taken < 100; ++taken) {
    std::size_t sent = 0;
    while (sent < kMaxModuleBytes / 4) {
      const std::string piece(std::min(kWindowBytes, kMaxModuleBytes / 4 - sent),
                              sent == 0 ? '/' : ' ');
      f.call(CallKind::module_part, 0, 0, piece);
      sent += piece.size();
    }
    f.call(CallKind::module_load);
  }
  EXPECT_EQ(taken, 4u);
}

// The verdict is not "needs a GPU", which would be no failure: no GPU could run it.
TEST(DeviceServer, WhatNoGpuHasRoomForIsAFinding) {
  ServerFixture f;
  f.start();
  std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.const .align 4 .b8 c[70000];\n";
  f.load(ptx);
  EXPECT_THAT(f.stop().invalid_ptx, HasSubstr("64 KiB of constants"));
  f.start();
  f.load(".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .b8 g[99999999];\n");
  EXPECT_THAT(f.stop().invalid_ptx, HasSubstr("no room"));
  EXPECT_STREQ(f.control.report.unsupported, "");
  f.start();
  // Calls itself with many live values.
  f.launch(f.kernel(f.load(kPtxDeep), "deep"), "");
  EXPECT_THAT(f.stop().first_finding, HasSubstr("call stack"));
}

TEST(DeviceServer, FindingsAreToldInWords) {
  ServerFixture f;
  f.place();
  f.start();
  f.launch(f.kernel(f.load(), "put"), put_params(f.output() + 16, 1));
  const Report& report = f.stop();
  EXPECT_EQ(report.findings, 1u);
  EXPECT_THAT(report.first_finding, HasSubstr("out of bounds in put"));
  EXPECT_EQ(f.launched().status, static_cast<std::uint32_t>(sim::LaunchStatus::illegal_address));
}

TEST(DeviceServer, EndlessKernelsReachTheLimit) {
  ServerFixture f;
  f.start();
  const auto forever = f.kernel(f.load(), "forever");
  f.launch(forever, "");
  EXPECT_EQ(f.launched().status, static_cast<std::uint32_t>(sim::LaunchStatus::timeout));
  f.launch(forever, "");
  const Report& report = f.stop();
  EXPECT_EQ(report.over_limit, 1u);
  EXPECT_EQ(report.findings, 0u) << "a limit is no finding";
}

TEST(DeviceServer, LaunchesOfAPhaseShareItsInstructionLimit) {
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  std::vector<std::uint64_t> limits;
  ON_CALL(*gpu, set_instruction_limit).WillByDefault([&](std::uint64_t n) { limits.push_back(n); });
  sim::LaunchResult ended;
  ended.counters.instructions = 7;
  ON_CALL(*gpu, launch).WillByDefault(Return(ended));
  ServerFixture f(std::move(gpu), 20);
  f.start();
  const auto kernel = f.kernel(f.load(), "k");
  for (int i = 0; i < 4; ++i) f.launch(kernel, "");
  EXPECT_THAT(limits, ::testing::ElementsAre(20, 13, 6)) << "the fourth is refused";
  EXPECT_EQ(f.stop().over_limit, 1u);
  f.start();
  f.launch(kernel, "");
  EXPECT_EQ(limits.back(), 20u);
  EXPECT_EQ(f.stop().over_limit, 0u);
}

TEST(DeviceServer, WaitingIsNotTheWorkOfAPhase) {
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  std::uint64_t deadline = 0;
  ON_CALL(*gpu, set_processor_deadline).WillByDefault(SaveArg<0>(&deadline));
  ServerFixture f(std::move(gpu));
  f.start();
  const std::uint64_t before = deadline;
  EXPECT_GT(before, sim::processor_ns());
  f.server().waited(1000);
  f.server().waited(7);
  EXPECT_EQ(deadline, before + 1007);
}

// It must not be taken for something that the GPU lacks.
TEST(DeviceServer, WorkThatNeverEndsEndsTheProcess) {
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  ON_CALL(*gpu, launch).WillByDefault([](auto, auto&, auto, auto) -> sim::LaunchResult {
    throw NeverEnds{"kernels did not end"};
  });
  ON_CALL(*gpu, load_module).WillByDefault([](auto) -> sim::ModuleId { throw GpuFault{"lost"}; });
  ServerFixture f(std::move(gpu));
  f.start();
  EXPECT_THROW(f.launch(f.kernel(0, "k"), ""), NeverEnds);
  EXPECT_THROW(f.load(), GpuFault);
}

TEST(DeviceServer, WhatADriverRefusesIsNothingThatAGpuLacks) {
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  const auto refuse = [] { throw std::runtime_error("loading a module: out of memory"); };
  ON_CALL(*gpu, load_module).WillByDefault([&](auto) {
    refuse();
    return sim::ModuleId{};
  });
  ON_CALL(*gpu, launch).WillByDefault([&](auto, auto&, auto, auto) {
    refuse();
    return sim::LaunchResult{};
  });
  ServerFixture f(std::move(gpu));
  f.start();
  f.load();
  EXPECT_STREQ(f.stop().unsupported, "");
  EXPECT_THAT(f.stop().first_finding, HasSubstr("out of memory"));
  f.start();
  f.launch(f.kernel(0, "k"), "");
  EXPECT_EQ(f.launched().unsupported, 0u);
  EXPECT_GT(f.stop().findings, 0u);
}

// A simulated GPU finds accesses outside a block by itself.
TEST(DeviceServer, OnHardwareCanariesLieAroundOutputs) {
  auto gpu = std::make_unique<NiceMock<MockGpu>>();
  constexpr std::uint64_t kBlock = 1 << 20;
  ON_CALL(*gpu, is_hardware).WillByDefault(Return(true));
  std::map<std::uint64_t, std::uint64_t> allocated, written;
  ON_CALL(*gpu, allocate).WillByDefault([&](std::uint64_t bytes) {
    const std::uint64_t address = kBlock * (allocated.size() + 1);
    allocated[address] = bytes;
    return address;
  });
  ON_CALL(*gpu, write).WillByDefault([&](std::uint64_t to, std::span<const std::byte> from, auto) {
    written[to] = from.size();
    return true;
  });
  std::uint64_t read_at = 0, read_bytes = 0;
  ON_CALL(*gpu, read)
      .WillByDefault([&](std::span<std::byte> to, std::uint64_t from, bool strictly, auto) {
        if (strictly) read_at = from, read_bytes = to.size();
        return true;
      });
  ServerFixture f(std::move(gpu));
  f.place();
  EXPECT_EQ(f.output() % 512, 4u);
  EXPECT_EQ(written[f.input()], 16u);
  EXPECT_EQ(written[f.output() - kGuardBytes], 16 + 2 * kGuardBytes);
  EXPECT_GE(f.output() - kGuardBytes, 2 * kBlock);
  EXPECT_LE(f.output() + 16 + kGuardBytes, 2 * kBlock + allocated[2 * kBlock]);
  f.start();
  f.stop();
  f.order(Order::collect);
  EXPECT_EQ(read_at, f.output() - kGuardBytes);
  EXPECT_EQ(read_bytes, 16 + 2 * kGuardBytes);
  EXPECT_EQ(f.call(CallKind::free, 2 * kBlock).ok, 0u) << "the case's";
}

TEST(DeviceServer, SaysWhatTheSimulatorLacks) {
  ServerFixture f;
  f.start();
  const auto module = f.load(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { "
      ".reg .b64 %rd1; stacksave.u64 %rd1; ret; }\n");
  const auto kernel = f.kernel(module, "k");
  EXPECT_STREQ(f.stop().unsupported, "") << "to ask about a kernel costs nothing";
  f.start();
  f.launch(kernel, "");
  EXPECT_THAT(f.stop().unsupported, ::testing::StartsWith("stacksave"));
  f.start();
  f.load(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( {\n");
  EXPECT_THAT(f.stop().invalid_ptx, HasSubstr("line"));
}

TEST(DeviceServer, PlacedBuffersBelongToTheHarness) {
  ServerFixture f;
  f.place();
  f.start();
  EXPECT_EQ(f.call(CallKind::free, f.input()).ok, 0u);
  EXPECT_EQ(f.call(CallKind::free, f.output() - 4).ok, 0u);
  EXPECT_EQ(f.call(CallKind::free, f.output()).ok, 0u);
}

TEST(DeviceServer, PlacingNeedsRoom) {
  ServerFixture f;
  f.start();
  ASSERT_NE(f.call(CallKind::allocate, 0, ServerFixture::kMemory - 8).address, 0u);
  f.stop();
  f.place();
  EXPECT_EQ(f.control.ok, 0u);
}

TEST(DeviceServer, WrongMessagesAreRefused) {
  ServerFixture f;
  f.place();
  f.start();
  const auto put = f.kernel(f.load(), "put");
  EXPECT_EQ(f.call(CallKind::read, f.input(), kWindowBytes + 1).ok, 0u);
  EXPECT_EQ(f.call(CallKind::read, f.input(), 17).ok, 0u);
  EXPECT_EQ(f.call(CallKind::read, ~0ull, 16).ok, 0u);
  EXPECT_EQ(f.call(CallKind::write, f.output() + 14, 0, "abcd").ok, 0u);
  EXPECT_EQ(f.call(CallKind::fill, f.output(), ~0ull).ok, 0u);
  EXPECT_EQ(f.call(CallKind::allocate, 0, ~0ull).address, 0u);
  EXPECT_EQ(f.call(CallKind::allocate, 0, 0).address, 0u);
  EXPECT_EQ(f.call(CallKind::module_begin, 0, kMaxModuleBytes + 1).ok, 0u);
  EXPECT_EQ(f.call(CallKind::module_part, 0, 0, "more than was announced").ok, 0u);
  EXPECT_EQ(f.call(CallKind::module_load).code, 1u);
  Call call;
  call.kind = static_cast<CallKind>(77);
  EXPECT_EQ(f.call(call).ok, 0u);
  f.launch(put + 1000, "");
  EXPECT_NE(f.launched().status, 0u);
  f.launch(put, "short");
  EXPECT_NE(f.launched().status, 0u);
  call.kind = CallKind::read;
  f.page().call = call;
  f.page().call.payload = ~0ull;
  f.server().serve();
  EXPECT_EQ(f.page().answer.ok, 0u);
}

// Whatever comes over the link, the server answers, and the case's buffers stay readable.
TEST(DeviceServer, SurvivesAnyMessage) {
  ServerFixture f(20'000);
  f.place();
  f.start();
  f.load();
  Random random(3);
  const std::uint64_t addresses[] = {0, f.input(), f.output(), f.input() + 4096, ~0ull, 1};
  const std::uint64_t sizes[] = {
      0, 1, 16, 100, 4096, kWindowBytes, kWindowBytes + 1, std::uint64_t{1} << 40, ~0ull};
  const auto any_of = [&](const auto& list) { return list[random.below(std::ssize(list))]; };
  for (int i = 0; i < 20'000; ++i) {
    Call c;
    c.kind = static_cast<CallKind>(random.below(18));
    c.id = static_cast<std::uint32_t>(random.below(4));
    c.address = any_of(addresses);
    c.from = any_of(addresses);
    c.bytes = any_of(sizes);
    c.payload = any_of(sizes);
    for (auto* side : {c.shape.grid, c.shape.block}) {
      for (int d = 0; d < 3; ++d) side[d] = static_cast<std::uint32_t>(random.below(3));
    }
    c.shape.dynamic_shared_bytes = any_of(sizes);
    for (int b = 0; b < 64; ++b) f.window()[b] = static_cast<std::byte>(random.next());
    f.page().call = c;
    f.server().serve();
  }
  f.stop();
  f.order(Order::collect);
  EXPECT_EQ(f.control.ok, 1u);
}

}  // namespace
}  // namespace assay::device
