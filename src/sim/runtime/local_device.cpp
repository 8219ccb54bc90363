#include "sim/runtime/local_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/ptx/parser.h"

namespace assay::sim {
namespace {

// "kernel.cu:12: f(int*): block: [0,0,0], thread: [3,0,0] Assertion `i < n` failed.", as CUDA
// prints it.
std::string assertion_line(const Finding& f) {
  const auto& b = f.thread.block;
  const auto& t = f.thread.thread;
  return fmt::format("{}: {}: block: [{},{},{}], thread: [{},{},{}] {}\n", f.where, f.kernel, b[0],
                     b[1], b[2], t[0], t[1], t[2], f.text);
}

ModuleReply reply_of(const std::function<ModuleId()>& load) {
  try {
    return {ModuleReply::Status::ok, {}, load()};
  } catch (const ptx::ParseError& e) {
    return {ModuleReply::Status::invalid_ptx, e.what(), 0};
  } catch (const std::exception& e) {
    return {ModuleReply::Status::unsupported, e.what(), 0};
  }
}

}  // namespace

ModuleReply LocalDevice::load_module(std::string_view ptx) {
  return reply_of([&] { return device_.load_module(ptx); });
}

ModuleReply LocalDevice::load_linked(std::span<const std::string_view> ptx) {
  return reply_of([&] { return device_.load_linked(ptx); });
}

KernelReply LocalDevice::kernel(ModuleId module, std::string_view name) {
  KernelReply reply;
  try {
    reply.id = device_.kernel(module, name);
  } catch (const std::out_of_range&) {
    reply.status = KernelReply::Status::unknown;
    return reply;
  }
  try {
    reply.info = device_.info(reply.id);
  } catch (const std::exception& e) {
    reply.status = KernelReply::Status::unsupported;
    reply.message = e.what();
  }
  return reply;
}

VariableInfo LocalDevice::variable(ModuleId module, std::string_view name) {
  try {
    return device_.variable(module, name);
  } catch (const std::out_of_range&) {
    return {};
  }
}

bool LocalDevice::log_findings(bool done) {
  for (const Finding& f : device_.take_findings()) log_.finding(f);
  return done;
}

void LocalDevice::touch(std::uint64_t address) {
  if (!operation_) return;
  device_.touch(address, *operation_);
  log_findings(true);
}

bool LocalDevice::write(std::uint64_t to, std::span<const std::byte> from) {
  return log_findings(device_.write(to, from, operation()));
}

bool LocalDevice::read(std::span<std::byte> to, std::uint64_t from) {
  return log_findings(device_.read(to, from, false, operation()));
}

bool LocalDevice::peek(std::span<std::byte> to, std::uint64_t from) {
  return log_findings(device_.read(to, from));
}

bool LocalDevice::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  return log_findings(device_.copy(to, from, bytes, operation()));
}

bool LocalDevice::fill(std::uint64_t to, std::byte value, std::uint64_t bytes) {
  return log_findings(device_.fill(to, value, bytes, operation()));
}

LaunchReply LocalDevice::launch(KernelId kernel, const LaunchConfig& config,
                                std::span<const std::byte> params) {
  LaunchReply reply;
  try {
    LaunchResult result = device_.launch(kernel, config, params, operation());
    for (const Finding& f : result.findings) {
      if (f.kind == FindingKind::assertion) reply.error_output += assertion_line(f);
    }
    reply.status = result.status;
    reply.output = std::move(result.output);
    reply.instructions = result.counters.instructions;
    for (const Finding& f : result.notes) log_.note(f.describe());
    const KernelInfo& info = device_.info(kernel);
    const auto threads = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(config.block.count(), kMaxThreadsPerBlock + 1));
    log_.launch({info.name, residency_of(info, threads, config.dynamic_shared_bytes),
                 result.counters, std::move(result.findings), std::move(result.replays),
                 std::move(result.lines)});
  } catch (const std::exception& e) {  // Unsupported, or the host is out of memory
    reply.unsupported = true;
    reply.message = e.what();
  }
  return reply;
}

}  // namespace assay::sim
