// Kernels in PTX, launched on a Device that the fixture owns.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/device.h"

namespace assay::sim {

inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

// All threads of a cluster's blocks meet.
inline constexpr std::string_view kClusterBarrier = R"(
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
)";

// A module; `body` is everything below the three directives.
inline std::string module_around(std::string_view body, std::string_view target = "sm_90") {
  return ".version 9.0\n.target " + std::string(target) + "\n.address_size 64\n" +
         std::string(body);
}

// A module with a kernel k(u64 out) whose thread t has the address of out[t] (u32) in %out and its
// index in %t. Registers: %p, %h (b16), %r, %f, %rd, %fd and %q (b128), 0 to 63 each.
inline std::string kernel_around(std::string_view body, std::string_view before = {}) {
  return module_around(std::string(before) + R"(
.visible .entry k(.param .u64 out, .param .u64 in) {
  .reg .pred %p<64>; .reg .b16 %h<64>; .reg .b32 %r<64>; .reg .f32 %f<64>;
  .reg .b64 %rd<64>; .reg .f64 %fd<64>; .reg .b128 %q<8>;
  .reg .b32 %t; .reg .b64 %out, %in, %base;
  mov.u32 %t, %tid.x;
  ld.param.u64 %base, [out];
  ld.param.u64 %in, [in];
  mad.wide.u32 %out, %t, 4, %base;
)" + std::string(body) +
                       "\n  ret;\n}\n");
}

class DeviceTest : public testing::Test {
 protected:
  explicit DeviceTest(const DeviceOptions& options = small()) : device(options) {}

  static DeviceOptions small() {
    DeviceOptions o;
    o.memory_bytes = 64 << 20;
    o.instruction_limit = 20'000'000;
    return o;
  }

  // `body` is everything below the three directives.
  void load(std::string_view body, std::string_view target = "sm_90") {
    module = device.load_module(module_around(body, target));
  }
  // See kernel_around.
  void load_kernel(std::string_view body, std::string_view before = {}) {
    module = device.load_module(kernel_around(body, before));
  }

  template <class... Args>
  LaunchResult launch(const LaunchConfig& config, const std::string& name, Args... args) {
    const KernelId kernel = device.kernel(module, name);
    const KernelInfo& info = device.info(kernel);
    std::vector<std::byte> params(info.params_bytes);
    std::size_t i = 0;
    (std::memcpy(params.data() + info.param_offset.at(i++), &args, sizeof args), ...);
    return device.launch(kernel, config, params);
  }
  static LaunchConfig shape(std::uint32_t blocks, std::uint32_t threads,
                            std::uint64_t dynamic = 0) {
    LaunchConfig c;
    c.grid.x = blocks;
    c.block.x = threads;
    c.dynamic_shared_bytes = dynamic;
    return c;
  }

  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = device.allocate(values.size() * sizeof(T));
    EXPECT_TRUE(device.write(address, std::as_bytes(std::span(values))));
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(device.read(std::as_writable_bytes(std::span(values)), address));
    return values;
  }

  // Runs load_kernel()'s k with one block and returns out, which starts as zeros.
  template <class T = std::uint32_t>
  std::vector<T> run(std::uint32_t threads = 32, std::uint64_t in = 0, std::size_t count = 0) {
    if (count == 0) count = threads;
    const std::uint64_t out = upload(std::vector<T>(count));
    result = launch(shape(1, threads), "k", out, in);
    EXPECT_EQ(result.status, LaunchStatus::ok);
    for (const Finding& f : result.findings) ADD_FAILURE() << f.describe();
    return download<T>(out, count);
  }
  // The same for kernels with expected findings.
  LaunchResult run_faulty(std::uint32_t threads = 32, std::uint32_t blocks = 1) {
    const std::uint64_t out = upload(std::vector<std::uint32_t>(std::size_t{threads} * blocks));
    return launch(shape(blocks, threads), "k", out, std::uint64_t{0});
  }

  Device device;
  ModuleId module = 0;
  LaunchResult result;
};

inline std::vector<std::uint32_t> each_lane(std::uint32_t n, auto&& f) {
  std::vector<std::uint32_t> v(n);
  for (std::uint32_t l = 0; l < n; ++l) v[l] = static_cast<std::uint32_t>(f(l));
  return v;
}

inline std::vector<FindingKind> kinds(const LaunchResult& r) {
  std::vector<FindingKind> out;
  for (const Finding& f : r.findings) out.push_back(f.kind);
  return out;
}

}  // namespace assay::sim
