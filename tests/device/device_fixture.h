// A device server in this process, with kernels written in PTX.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/server.h"
#include "device/simulated_gpu.h"

namespace assay::device {

inline constexpr std::string_view kPtx = R"(
.version 8.0
.target sm_80
.address_size 64

// *p = v
.visible .entry put(.param .u64 p, .param .u32 v)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}

.visible .entry forever()
{
L:
  bra.uni L;
}
)";

class ServerFixture {
 public:
  static constexpr std::uint64_t kMemory = 64 << 20;

  explicit ServerFixture(std::uint64_t instruction_limit = 1'000'000)
      : ServerFixture(simulated(), instruction_limit) {}
  explicit ServerFixture(std::unique_ptr<Gpu> gpu, std::uint64_t instruction_limit = 1'000'000)
      : arena_(1 << 16), link_(kLinkBytes), gpu_(std::move(gpu)) {
    control.instruction_limit = instruction_limit;
    server_ = std::make_unique<Server>(control, arena_, link_.data(), *gpu_);
  }

  void order(Order what) {
    control.order = what;
    server_->obey();
  }
  void start(int phase = 0) {
    control.phase = phase;
    order(Order::start);
  }
  const Report& stop() {
    order(Order::stop);
    return control.report;
  }
  sim::Counters counters() const { return std::bit_cast<sim::Counters>(control.report.counters); }
  // Places two buffers of 16 bytes: an input of the phase, and an output that is off by one
  // element.
  void place(int input_phase = 0, int until = -1) {
    control.buffers = 2;
    control.buffer[0] = {256, 16, 0, input_phase, false, 0, until};
    control.buffer[1] = {516, 16, 4, 0, true, 0};
    order(Order::place);
  }
  std::uint64_t input() const { return control.buffer[0].address; }
  std::uint64_t output() const { return control.buffer[1].address; }

  Answer call(const Call& c, std::string_view payload = {}) {
    page().call = c;
    page().call.payload = payload.size();
    std::memcpy(window(), payload.data(), payload.size());
    server_->serve();
    return page().answer;
  }
  Answer call(CallKind kind, std::uint64_t address = 0, std::uint64_t bytes = 0,
              std::string_view payload = {}) {
    Call c;
    c.kind = kind;
    c.address = address;
    c.bytes = bytes;
    return call(c, payload);
  }
  std::uint32_t load(std::string_view ptx = kPtx) {
    call(CallKind::module_begin, 0, ptx.size());
    call(CallKind::module_part, 0, 0, ptx);
    return call(CallKind::module_load).id;
  }
  std::uint32_t kernel(std::uint32_t module, std::string_view name) {
    Call c;
    c.kind = CallKind::kernel;
    c.id = module;
    return call(c, name).id;
  }
  Answer launch(std::uint32_t kernel_id, std::string_view params, std::uint32_t threads = 1) {
    Call c;
    c.kind = CallKind::launch;
    c.id = kernel_id;
    c.shape = {{1, 1, 1}, {threads, 1, 1}, 0, 0};
    return call(c, params);
  }
  LaunchWire launched() {
    LaunchWire wire;
    std::memcpy(&wire, window(), sizeof wire);
    return wire;
  }

  std::byte* arena() { return arena_.data(); }
  std::byte* link() { return link_.data(); }
  LinkPage& page() { return *reinterpret_cast<LinkPage*>(link_.data()); }
  std::byte* window() { return link_.data() + kWindowOffset; }
  Server& server() { return *server_; }

  Control control;

 private:
  static std::unique_ptr<Gpu> simulated() {
    sim::DeviceOptions options;
    options.memory_bytes = kMemory;
    return std::make_unique<SimulatedGpu>(options);
  }

  std::vector<std::byte> arena_, link_;
  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<Server> server_;
};

// The parameter block of `put`.
inline std::string put_params(std::uint64_t address, std::uint32_t value) {
  std::string params(12, '\0');
  std::memcpy(params.data(), &address, 8);
  std::memcpy(params.data() + 8, &value, 4);
  return params;
}

}  // namespace assay::device
