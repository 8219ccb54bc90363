// A device that stores bytes and remembers launches, in place of the simulator.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/address_map.h"
#include "sim/runtime/device_link.h"

namespace assay::sim {

// The state that a test reads and sets; the link itself belongs to the runtime.
struct FakeState {
  struct Launch {
    KernelId kernel;
    LaunchConfig config;
    std::vector<std::byte> params;
  };
  std::map<std::uint64_t, std::vector<std::byte>> memory;  // by address
  std::vector<Launch> launches;
  std::vector<std::string> modules;  // the PTX of each
  std::map<std::string, KernelInfo> kernels;
  std::map<std::string, std::uint64_t> variables;  // bytes
  std::string kernel_problem;                      // what the simulator lacks, for every kernel
  ModuleReply module_reply;
  LaunchReply launch_reply;
  std::vector<Operation> operations;   // what the runtime reported for the calls that followed
  std::vector<std::uint64_t> touched;  // addresses of allocations
  std::vector<Finding> findings;       // findings of the runtime itself
  std::vector<TensorMapRequest> tensors;
  TensorMapReply tensor_reply;
  std::size_t peeks = 0;
  std::size_t writes = 0;
  std::uint64_t capacity = 1 << 20;
};

class FakeDevice final : public DeviceLink {
 public:
  explicit FakeDevice(FakeState& state) : s_(state) {}

  ModuleReply load_module(std::string_view ptx) override {
    s_.modules.emplace_back(ptx);
    variables_.clear();
    return s_.module_reply;
  }
  KernelReply kernel(ModuleId, std::string_view name) override {
    const auto found = s_.kernels.find(std::string(name));
    if (found == s_.kernels.end()) return {KernelReply::Status::unknown, {}, 0, {}};
    if (!s_.kernel_problem.empty()) {
      return {KernelReply::Status::unsupported, s_.kernel_problem, 0, {}};
    }
    return {KernelReply::Status::ok, {}, 7, found->second};
  }
  VariableInfo variable(ModuleId, std::string_view name) override {
    const auto found = s_.variables.find(std::string(name));
    if (found == s_.variables.end()) return {};
    auto [at, fresh] = variables_.try_emplace(found->first, 0);
    if (fresh) at->second = allocate(found->second);
    return {at->second, found->second};
  }
  void order(const Operation& o) override { s_.operations.push_back(o); }
  void touch(std::uint64_t address) override { s_.touched.push_back(address); }
  void report(const Finding& f) override { s_.findings.push_back(f); }
  std::uint64_t allocate(std::uint64_t bytes) override {
    if (bytes > s_.capacity - memory().live) return 0;
    const std::uint64_t address = next_;
    next_ += (bytes + 511) / 256 * 256;
    s_.memory[address].resize(bytes);
    return address;
  }
  bool free(std::uint64_t address) override { return s_.memory.erase(address) > 0; }
  bool write(std::uint64_t to, std::span<const std::byte> from) override {
    std::byte* p = find(to, from.size());
    ++s_.writes;
    if (p != nullptr) std::memcpy(p, from.data(), from.size());
    return p != nullptr;
  }
  bool read(std::span<std::byte> to, std::uint64_t from) override {
    const std::byte* p = find(from, to.size());
    if (p != nullptr) std::memcpy(to.data(), p, to.size());
    return p != nullptr;
  }
  bool peek(std::span<std::byte> to, std::uint64_t from) override {
    ++s_.peeks;
    return read(to, from);
  }
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override {
    std::byte *p = find(to, bytes), *q = find(from, bytes);
    if (p == nullptr || q == nullptr) return false;
    std::memmove(p, q, bytes);
    return true;
  }
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes) override {
    std::byte* p = find(to, bytes);
    if (p != nullptr) std::memset(p, static_cast<int>(value), bytes);
    return p != nullptr;
  }
  VariableInfo allocation(std::uint64_t address) override {
    const auto at = holder(address);
    return at == s_.memory.end() ? VariableInfo{} : VariableInfo{at->first, at->second.size()};
  }
  MemoryInfo memory() override {
    std::uint64_t live = 0;
    for (const auto& [address, bytes] : s_.memory) live += bytes.size();
    return {s_.capacity, live};
  }
  TensorMapReply tensor_map(const TensorMapRequest& request) override {
    s_.tensors.push_back(request);
    return s_.tensor_reply;
  }
  LaunchReply launch(KernelId kernel, const LaunchConfig& config,
                     std::span<const std::byte> params) override {
    s_.launches.push_back({kernel, config, {params.begin(), params.end()}});
    return s_.launch_reply;
  }

 private:
  using Memory = std::map<std::uint64_t, std::vector<std::byte>>;
  Memory::iterator holder(std::uint64_t address) {
    auto after = s_.memory.upper_bound(address);
    if (after == s_.memory.begin()) return s_.memory.end();
    --after;
    return address - after->first < after->second.size() ? after : s_.memory.end();
  }
  std::byte* find(std::uint64_t address, std::uint64_t bytes) {
    const auto at = holder(address);
    if (at == s_.memory.end() || address - at->first + bytes > at->second.size()) return nullptr;
    return at->second.data() + (address - at->first);
  }

  FakeState& s_;
  std::map<std::string, std::uint64_t> variables_;
  std::uint64_t next_ = kGlobalRange.begin + 256;
};

}  // namespace assay::sim
