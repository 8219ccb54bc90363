// The worker's end of the link to the device process: see wire/device.h.
#pragma once

#include "device/brief_wait.h"
#include "sim/runtime/device_link.h"
#include "wire/device.h"
#include "wire/payload.h"

namespace assay::device {

class RemoteDevice final : public sim::DeviceLink {
 public:
  // `link` is kLinkBytes of shared memory. A call sends a byte on the line and waits for one.
  RemoteDevice(std::byte* link, int line);

  std::uint32_t architecture() const override { return page_.architecture; }
  std::uint32_t multiprocessors() const override { return page_.multiprocessors; }
  bool is_hardware() const override { return page_.is_hardware != 0; }
  sim::ModuleReply load_module(std::string_view image) override;
  sim::KernelReply kernel(sim::ModuleId, std::string_view name) override;
  sim::VariableInfo variable(sim::ModuleId, std::string_view name) override;
  void order(const sim::Operation&) override;
  void touch(std::uint64_t address) override;
  void report(const sim::Finding&) override;
  std::uint64_t allocate(std::uint64_t bytes) override;
  bool free(std::uint64_t address) override;
  bool write(std::uint64_t to, std::span<const std::byte> from) override;
  bool read(std::span<std::byte> to, std::uint64_t from) override;
  bool peek(std::span<std::byte> to, std::uint64_t from) override;
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override;
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes) override;
  void set_row(std::uint32_t n) override { row_ = n; }
  sim::VariableInfo allocation(std::uint64_t address) override;
  sim::MemoryInfo memory() override;
  std::optional<std::uint32_t> resident_blocks(sim::KernelId, std::uint32_t threads,
                                               std::uint64_t dynamic_shared_bytes) override;
  sim::TensorMapReply tensor_map(const sim::TensorMapRequest&) override;
  sim::LaunchReply launch(sim::KernelId, const sim::LaunchConfig&,
                          std::span<const std::byte> params) override;

 private:
  template <class Write>
  void send(CallKind, Write&&);
  Answer ask(const Call&);
  Answer ask(Call, std::span<const std::byte> payload);
  wire::PayloadReader payload_of(const Answer&) const;
  bool read_as(CallKind, std::span<std::byte> to, std::uint64_t from);
  Call transfer(CallKind, std::uint64_t address, std::uint64_t bytes = 0) const;
  bool inside(std::uint64_t address, std::uint64_t bytes);

  LinkPage& page_;
  std::byte* window_;
  int line_;
  BriefWait brief_wait_;
  std::uint32_t row_ = 0;
};

}  // namespace assay::device
