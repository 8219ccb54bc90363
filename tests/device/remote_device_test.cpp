#include "device/remote_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "device/device_fixture.h"

namespace assay::device {
namespace {

using ::testing::HasSubstr;
using Status = sim::ModuleReply::Status;

// The server answers in a separate thread until the end.
class RemoteDeviceTest : public ::testing::Test {
 protected:
  RemoteDeviceTest() : line_(pair()), remote_(fixture_.link(), line_[0]) {
    fixture_.start();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      char token = 0;
      while (::read(line_[1], &token, 1) == 1 && !stop.stop_requested()) {
        fixture_.server().serve();
        if (::write(line_[1], &token, 1) != 1) return;
      }
    });
  }
  ~RemoteDeviceTest() override {
    thread_.request_stop();
    EXPECT_EQ(::write(line_[0], "", 1), 1);
    thread_.join();
    ::close(line_[0]);
    ::close(line_[1]);
  }

  static std::array<int, 2> pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    return ends;
  }

  ServerFixture fixture_;
  const std::array<int, 2> line_;
  RemoteDevice remote_;
  std::jthread thread_;
};

TEST_F(RemoteDeviceTest, LaunchesAKernel) {
  const sim::ModuleReply module = remote_.load_module(kPtx);
  ASSERT_EQ(module.status, Status::ok) << module.message;
  EXPECT_EQ(remote_.kernel(module.module, "nothing of the kind").status,
            sim::KernelReply::Status::unknown);
  const sim::KernelReply kernel = remote_.kernel(module.module, "put");
  ASSERT_EQ(kernel.status, sim::KernelReply::Status::ok);
  EXPECT_EQ(kernel.info.name, "put");
  EXPECT_EQ(kernel.info.param_bytes, (std::vector<std::uint32_t>{8, 4}));
  EXPECT_EQ(kernel.info.param_offset, (std::vector<std::uint32_t>{0, 8}));
  const std::uint64_t memory = remote_.allocate(64);
  const std::string params = put_params(memory, 0xabcd);
  const sim::LaunchReply reply = remote_.launch(kernel.id, {}, std::as_bytes(std::span(params)));
  EXPECT_EQ(reply.status, sim::LaunchStatus::ok) << reply.message;
  EXPECT_GT(reply.instructions, 0u);
  std::uint32_t value = 0;
  EXPECT_TRUE(remote_.read(std::as_writable_bytes(std::span(&value, 1)), memory));
  EXPECT_EQ(value, 0xabcdu);
}

TEST_F(RemoteDeviceTest, TensorMapsComeFromTheDevice) {
  using Map = sim::TensorMapReply::Status;
  sim::TensorMapRequest request{.element = 7, .rank = 2, .address = 4096};
  request.size = {64, 32};
  request.stride_bytes = {256};
  request.box = {32, 16};
  request.step = {1, 1};
  sim::TensorMapReply reply = remote_.tensor_map(request);
  EXPECT_EQ(reply.status, Map::ok);
  EXPECT_EQ(reply.map, sim::encode(request).map);
  EXPECT_NE(reply.map, sim::TensorMapBytes{});
  request.stride_bytes = {250};
  EXPECT_EQ(remote_.tensor_map(request).status, Map::invalid);
  request.element = 11;
  reply = remote_.tensor_map(request);
  EXPECT_EQ(reply.status, Map::unsupported);
  EXPECT_EQ(reply.message, "of type TFLOAT32");
}

TEST_F(RemoteDeviceTest, LargeCopiesTravelInPieces) {
  const std::size_t bytes = 2 * kWindowBytes + 12345;
  std::vector<std::byte> out(bytes), back(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 >> 3);
  const std::uint64_t a = remote_.allocate(bytes), b = remote_.allocate(bytes);
  EXPECT_TRUE(remote_.write(a, out));
  EXPECT_TRUE(remote_.copy(b, a, bytes));
  EXPECT_TRUE(remote_.read(back, b));
  EXPECT_EQ(out, back);
  EXPECT_TRUE(remote_.fill(b + 1, std::byte{5}, bytes - 1));
  EXPECT_TRUE(remote_.read(back, b));
  EXPECT_EQ(back[0], out[0]);
  EXPECT_EQ(back[bytes - 1], std::byte{5});
}

TEST_F(RemoteDeviceTest, ACopyThatDoesNotFitChangesNothing) {
  const std::size_t bytes = 2 * kWindowBytes;
  const std::uint64_t a = remote_.allocate(bytes);
  std::vector<std::byte> out(bytes + 1, std::byte{1}), back(bytes);
  EXPECT_FALSE(remote_.write(a, out));
  EXPECT_TRUE(remote_.read(back, a));
  EXPECT_EQ(back, std::vector<std::byte>(bytes));
  EXPECT_FALSE(remote_.read(out, a));
}

// The first operation of a stream, which knows of no other stream.
sim::Operation first_in(std::uint32_t stream, const char* call) {
  sim::Operation o{stream, 1, sim::Clock(stream + 1), call, "stream " + std::to_string(stream)};
  o.clock[stream] = 1;
  return o;
}

TEST_F(RemoteDeviceTest, OperationsThatNothingOrdersRace) {
  const sim::KernelReply kernel = remote_.kernel(remote_.load_module(kPtx).module, "put");
  const std::uint64_t memory = remote_.allocate(64);
  const std::string params = put_params(memory + 4, 1);
  remote_.fill(memory, std::byte{1}, 64);
  remote_.order(first_in(1, "cudaMemsetAsync"));
  remote_.fill(memory, std::byte{2}, 64);
  remote_.order(first_in(2, "a launch"));
  remote_.launch(kernel.id, {}, std::as_bytes(std::span(params)));
  sim::Operation after = first_in(3, "cudaMemcpyAsync");
  after.clock = {0, 1, 1, 1};
  remote_.order(after);
  std::array<std::byte, 64> back{};
  remote_.read(back, memory);
  const Report& report = fixture_.stop();
  EXPECT_EQ(report.findings, 1u);
  EXPECT_THAT(report.first_finding, HasSubstr("race between streams in put: "));
  EXPECT_THAT(report.first_finding, HasSubstr(": writes 4 bytes at "));
  EXPECT_THAT(report.first_finding, HasSubstr("cudaMemsetAsync writes them in stream 1"));
}

TEST_F(RemoteDeviceTest, APeekRacesWithNothing) {
  const std::uint64_t memory = remote_.allocate(64);
  remote_.order(first_in(1, "cudaMemsetAsync"));
  remote_.fill(memory, std::byte{2}, 64);
  remote_.order(first_in(2, "cudaMemcpyAsync"));
  std::array<std::byte, 64> back{};
  EXPECT_TRUE(remote_.peek(back, memory));
  EXPECT_EQ(back[63], std::byte{2});
  EXPECT_FALSE(remote_.peek(back, memory + 1));
  remote_.read(back, memory);
  const Report& report = fixture_.stop();
  EXPECT_EQ(report.findings, 1u) << "of the read";
  EXPECT_EQ(report.to_host_bytes, 128u) << "both count";
}

TEST_F(RemoteDeviceTest, AllocationsInAStreamRaceToo) {
  const std::uint64_t memory = remote_.allocate(64);
  remote_.order(first_in(1, "cudaMallocAsync"));
  remote_.touch(memory);
  remote_.order(first_in(2, "cudaMemsetAsync"));
  remote_.fill(memory + 60, std::byte{2}, 4);
  EXPECT_THAT(fixture_.stop().first_finding, HasSubstr("cudaMallocAsync writes them"));
}

// The next owner of freed memory, in another stream, does not race with the previous one.
TEST_F(RemoteDeviceTest, FreedMemoryHasNoHistory) {
  constexpr std::uint64_t kHalf = ServerFixture::kMemory / 2 + 4096;
  for (std::uint32_t stream = 1; stream < 4; ++stream) {
    const std::uint64_t memory = remote_.allocate(kHalf);
    remote_.order(first_in(stream, "cudaMemsetAsync"));
    remote_.fill(memory, std::byte{2}, kHalf);
    EXPECT_TRUE(remote_.free(memory));
  }
  EXPECT_EQ(fixture_.stop().findings, 0u);
}

TEST_F(RemoteDeviceTest, FindingsOfTheRuntimeCount) {
  sim::Finding f;
  f.kind = sim::FindingKind::late_change;
  f.kernel = "cudaMemcpyAsync";
  f.where = "the host";
  f.text = "changed";
  remote_.report(f);
  const Report& report = fixture_.stop();
  EXPECT_EQ(report.findings, 1u);
  EXPECT_STREQ(report.first_finding,
               "change before a copy is done in cudaMemcpyAsync: the host: changed");
}

TEST_F(RemoteDeviceTest, KnowsAllocations) {
  const std::uint64_t a = remote_.allocate(1000);
  const sim::VariableInfo found = remote_.allocation(a + 500);
  EXPECT_EQ(found.address, a);
  EXPECT_EQ(found.bytes, 1000u);
  EXPECT_EQ(remote_.memory().live, 1000u);
  EXPECT_TRUE(remote_.free(a));
  EXPECT_FALSE(remote_.free(a));
  EXPECT_EQ(remote_.allocation(a).bytes, 0u);
}

TEST_F(RemoteDeviceTest, SaysWhyAModuleIsRefused) {
  const sim::ModuleReply bad = remote_.load_module("no PTX at all");
  EXPECT_EQ(bad.status, Status::invalid_ptx);
  EXPECT_THAT(bad.message, HasSubstr("line 1"));
}

}  // namespace
}  // namespace assay::device
