// Streams, events and the simulated time of the double.
#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

class DoubleStream : public ContextTest {
 protected:
  CUevent event(unsigned flags = 0) {
    CUevent made = nullptr;
    EXPECT_EQ(cu.event_create(&made, flags), kSuccess);
    return made;
  }
  // Simulated time of `action`, in ms.
  template <class Action>
  float time_of(Action action) {
    const CUevent begin = event(), end = event();
    EXPECT_EQ(cu.event_record(begin, nullptr), kSuccess);
    action();
    EXPECT_EQ(cu.event_record(end, nullptr), kSuccess);
    float milliseconds = -1;
    EXPECT_EQ(cu.event_elapsed(&milliseconds, begin, end), kSuccess);
    return milliseconds;
  }
};

TEST_F(DoubleStream, Streams) {
  CUstream stream = nullptr;
  EXPECT_EQ(cu.stream_create(&stream, kNonBlockingStream), kSuccess);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(cu.stream_synchronize(stream), kSuccess);
  EXPECT_EQ(cu.stream_create(&stream, 2), kInvalidValue);
  int none = 0;
  EXPECT_EQ(cu.stream_synchronize(reinterpret_cast<CUstream>(&none)), kInvalidHandle);
}

TEST_F(DoubleStream, WaitsOnMemoryOnly) {
  void* host = nullptr;
  ASSERT_EQ(cu.host_alloc(&host, 64, kHostAllocDeviceMap), kSuccess);
  CUdeviceptr flag = 0;
  ASSERT_EQ(cu.host_device_pointer(&flag, host, 0), kSuccess);
  EXPECT_EQ(cu.stream_wait_value(nullptr, flag, 1, kWaitValueGeq), kSuccess);
  EXPECT_EQ(cu.stream_wait_value(nullptr, memory(), 1, kWaitValueGeq), kSuccess);
  EXPECT_EQ(cu.stream_wait_value(nullptr, flag + 2, 1, kWaitValueGeq), kInvalidValue);
  EXPECT_EQ(cu.stream_wait_value(nullptr, flag + 64, 1, kWaitValueGeq), kInvalidValue);
  EXPECT_EQ(cu.stream_wait_value(nullptr, flag, 1, 0x10), kInvalidValue);
}

TEST_F(DoubleStream, CopiesTakeTheTimeOfTheirBytes) {
  const CUdeviceptr at = memory(64 << 20);
  const std::vector<char> values(32 << 20);
  const double bytes = 32 << 20;
  EXPECT_FLOAT_EQ(time_of([&] { upload(at, values); }), bytes / 64e9 * 1e3);
  EXPECT_FLOAT_EQ(time_of([&] { download<char>(at, values.size()); }), bytes / 64e9 * 1e3);
  EXPECT_FLOAT_EQ(time_of([&] { cu.copy_within(at + values.size(), at, values.size(), nullptr); }),
                  bytes / 4.8e12 * 1e3);
  EXPECT_FLOAT_EQ(time_of([&] { cu.fill(at, 1, values.size(), nullptr); }), bytes / 4.8e12 * 1e3);
  EXPECT_EQ(time_of([&] { cu.fill(64, 1, 4, nullptr); }), 0);  // the fill fails
}

TEST_F(DoubleStream, LaunchesTakeTheTimeOfTheirInstructions) {
  // One warp, one instruction.
  EXPECT_FLOAT_EQ(time_of([&] { launch(kernel("nothing"), 32); }),
                  (3e-6 + 1 / (132 * 4 * 1.98e9)) * 1e3);
}

TEST_F(DoubleStream, EventsThatHaveNoTime) {
  const CUevent recorded = event(), never = event(), untimed = event(kEventDisableTiming);
  ASSERT_EQ(cu.event_record(recorded, nullptr), kSuccess);
  ASSERT_EQ(cu.event_record(untimed, nullptr), kSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cu.event_elapsed(&milliseconds, recorded, never), kInvalidHandle);
  EXPECT_EQ(cu.event_elapsed(&milliseconds, untimed, recorded), kInvalidHandle);
  EXPECT_EQ(cu.event_elapsed(nullptr, recorded, recorded), kInvalidValue);
  EXPECT_EQ(cu.event_query(recorded), kSuccess);
  EXPECT_EQ(cu.event_query(never), kSuccess);
  EXPECT_EQ(cu.event_query(nullptr), kInvalidHandle);
  EXPECT_EQ(cu.event_record(nullptr, nullptr), kInvalidHandle);
  CUevent wrong = nullptr;
  EXPECT_EQ(cu.event_create(&wrong, 0x10), kInvalidValue);
}

}  // namespace
}  // namespace assay::gpu
