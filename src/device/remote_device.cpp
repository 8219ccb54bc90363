#include "device/remote_device.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace assay::device {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Call call_of(CallKind kind, std::uint64_t address = 0, std::uint64_t bytes = 0) {
  Call call;
  call.kind = kind;
  call.address = address;
  call.bytes = bytes;
  return call;
}

}  // namespace

RemoteDevice::RemoteDevice(std::byte* link, int line)
    : page_(*reinterpret_cast<LinkPage*>(link)), window_(link + kWindowOffset), line_(line) {}

Answer RemoteDevice::ask(const Call& call) {
  std::memcpy(&page_.call, &call, sizeof call);
  char token = 1;
  if (::write(line_, &token, sizeof token) != sizeof token) std::_Exit(80);
  pollfd entry{line_, POLLIN, 0};
  brief_wait_.until([&] { return ::poll(&entry, 1, 0) != 0; });
  while (::read(line_, &token, sizeof token) != sizeof token) {
    if (errno != EINTR) std::_Exit(81);
  }
  Answer answer;
  std::memcpy(&answer, &page_.answer, sizeof answer);
  return answer;
}

wire::PayloadReader RemoteDevice::payload_of(const Answer& answer) const {
  return {std::span(window_, kWindowBytes), answer.payload};
}

Answer RemoteDevice::ask(Call call, std::span<const std::byte> payload) {
  if (payload.size() > kWindowBytes) return {};
  std::memcpy(window_, payload.data(), payload.size());
  call.payload = payload.size();
  return ask(call);
}

sim::ModuleReply RemoteDevice::load_module(std::string_view image) {
  using Status = sim::ModuleReply::Status;
  if (ask(call_of(CallKind::module_begin, 0, image.size())).ok == 0) {
    return {Status::unsupported, "modules of more than 32 MiB", 0};
  }
  for (std::size_t at = 0; at < image.size(); at += kWindowBytes) {
    ask(call_of(CallKind::module_part), bytes_of(image.substr(at, kWindowBytes)));
  }
  const Answer answer = ask(call_of(CallKind::module_load));
  wire::PayloadReader payload = payload_of(answer);
  return {static_cast<Status>(std::min(answer.code, 2u)), payload.text(answer.payload), answer.id};
}

sim::KernelReply RemoteDevice::kernel(sim::ModuleId module, std::string_view name) {
  Call call = call_of(CallKind::kernel);
  call.id = module;
  const Answer answer = ask(call, bytes_of(name));
  wire::PayloadReader payload = payload_of(answer);
  sim::KernelReply reply;
  reply.status = static_cast<sim::KernelReply::Status>(std::min(answer.code, 2u));
  reply.id = answer.id;
  if (reply.status != sim::KernelReply::Status::ok) {
    reply.message = payload.text(answer.payload);
    return reply;
  }
  const auto wire = payload.value<KernelWire>();
  sim::KernelInfo& info = reply.info;
  info.name = payload.text(wire.name_bytes);
  for (std::uint32_t i = 0; i < wire.params; ++i) {
    info.param_bytes.push_back(payload.value<std::uint32_t>());
    info.param_offset.push_back(payload.value<std::uint32_t>());
  }
  info.params_bytes = wire.params_bytes;
  info.static_shared_bytes = wire.static_shared_bytes;
  info.local_bytes = wire.local_bytes;
  info.registers = wire.registers;
  info.max_threads = wire.max_threads;
  info.required_cluster = {wire.required_cluster[0], wire.required_cluster[1],
                           wire.required_cluster[2]};
  return reply;
}

sim::VariableInfo RemoteDevice::variable(sim::ModuleId module, std::string_view name) {
  Call call = call_of(CallKind::variable);
  call.id = module;
  const Answer answer = ask(call, bytes_of(name));
  return {.address = answer.address, .bytes = answer.bytes};
}

// Makes a call; `write` puts its payload into the window.
template <class Write>
void RemoteDevice::send(CallKind kind, Write&& write) {
  wire::PayloadWriter payload(std::span(window_, kWindowBytes));
  write(payload);
  Call call = call_of(kind);
  call.payload = payload.size();
  ask(call);
}

void RemoteDevice::order(const sim::Operation& o) {
  send(CallKind::order, [&](wire::PayloadWriter& payload) {
    payload.value(OrderWire{o.stream, o.time, static_cast<std::uint32_t>(o.clock.size()),
                            static_cast<std::uint32_t>(o.call.size()),
                            static_cast<std::uint32_t>(o.stream_name.size())});
    for (const std::uint32_t time : o.clock) payload.value(time);
    payload.text(o.call);
    payload.text(o.stream_name);
  });
}

void RemoteDevice::touch(std::uint64_t address) { ask(call_of(CallKind::touch, address)); }

void RemoteDevice::report(const sim::Finding& f) {
  send(CallKind::finding, [&](wire::PayloadWriter& payload) {
    payload.value(FindingWire{static_cast<std::uint32_t>(f.kernel.size()),
                              static_cast<std::uint32_t>(f.where.size()),
                              static_cast<std::uint32_t>(f.text.size())});
    for (const std::string* text : {&f.kernel, &f.where, &f.text}) payload.text(*text);
  });
}

std::uint64_t RemoteDevice::allocate(std::uint64_t bytes) {
  return ask(call_of(CallKind::allocate, 0, bytes)).address;
}

bool RemoteDevice::free(std::uint64_t address) {
  return ask(call_of(CallKind::free, address)).ok != 0;
}

// Whether the range lies within one live allocation.
bool RemoteDevice::inside(std::uint64_t address, std::uint64_t bytes) {
  const sim::VariableInfo a = allocation(address);
  return a.bytes > 0 && address - a.address <= a.bytes && bytes <= a.bytes - (address - a.address);
}

Call RemoteDevice::transfer(CallKind kind, std::uint64_t address, std::uint64_t bytes) const {
  Call call = call_of(kind, address, bytes);
  call.row = row_;
  return call;
}

bool RemoteDevice::write(std::uint64_t to, std::span<const std::byte> from) {
  if (from.size() > kWindowBytes && !inside(to, from.size())) return false;
  do {
    const std::size_t n = std::min(from.size(), kWindowBytes);
    if (ask(transfer(CallKind::write, to), from.first(n)).ok == 0) return false;
    to += n;
    from = from.subspan(n);
  } while (!from.empty());
  return true;
}

bool RemoteDevice::read(std::span<std::byte> to, std::uint64_t from) {
  return read_as(CallKind::read, to, from);
}

bool RemoteDevice::peek(std::span<std::byte> to, std::uint64_t from) {
  return read_as(CallKind::peek, to, from);
}

bool RemoteDevice::read_as(CallKind kind, std::span<std::byte> to, std::uint64_t from) {
  if (to.size() > kWindowBytes && !inside(from, to.size())) return false;
  do {
    const std::size_t n = std::min(to.size(), kWindowBytes);
    if (ask(transfer(kind, from, n)).ok == 0) return false;
    std::memcpy(to.data(), window_, n);
    from += n;
    to = to.subspan(n);
  } while (!to.empty());
  return true;
}

bool RemoteDevice::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  Call call = transfer(CallKind::copy, to, bytes);
  call.from = from;
  return ask(call).ok != 0;
}

bool RemoteDevice::fill(std::uint64_t to, std::byte value, std::uint64_t bytes) {
  Call call = transfer(CallKind::fill, to, bytes);
  call.value = static_cast<std::uint32_t>(value);
  return ask(call).ok != 0;
}

sim::VariableInfo RemoteDevice::allocation(std::uint64_t address) {
  const Answer answer = ask(call_of(CallKind::allocation, address));
  return {.address = answer.address, .bytes = answer.bytes};
}

sim::MemoryInfo RemoteDevice::memory() {
  const Answer answer = ask(call_of(CallKind::memory));
  return {.capacity = answer.address, .live = answer.bytes};
}

std::optional<std::uint32_t> RemoteDevice::resident_blocks(sim::KernelId kernel,
                                                           std::uint32_t threads,
                                                           std::uint64_t dynamic_shared_bytes) {
  if (page_.architecture == 0) return std::nullopt;
  Call call = call_of(CallKind::occupancy, dynamic_shared_bytes, threads);
  call.id = kernel;
  const Answer answer = ask(call);
  if (answer.ok == 0) return std::nullopt;
  return static_cast<std::uint32_t>(answer.bytes);
}

sim::TensorMapReply RemoteDevice::tensor_map(const sim::TensorMapRequest& request) {
  const Answer answer =
      ask(call_of(CallKind::tensor_map), std::as_bytes(std::span(&request, std::size_t{1})));
  wire::PayloadReader payload = payload_of(answer);
  sim::TensorMapReply reply;
  reply.status = static_cast<sim::TensorMapReply::Status>(std::min(answer.code, 2u));
  if (reply.status == sim::TensorMapReply::Status::ok) {
    reply.map = payload.value<sim::TensorMapBytes>();
  } else {
    reply.message = payload.text(answer.payload);
  }
  return reply;
}

sim::LaunchReply RemoteDevice::launch(sim::KernelId kernel, const sim::LaunchConfig& config,
                                      std::span<const std::byte> params) {
  Call call = call_of(CallKind::launch);
  call.id = kernel;
  call.shape = {.grid = {config.grid.x, config.grid.y, config.grid.z},
                .block = {config.block.x, config.block.y, config.block.z},
                .dynamic_shared_bytes = config.dynamic_shared_bytes,
                .cooperative = config.cooperative ? 1u : 0u,
                .cluster = {config.cluster.x, config.cluster.y, config.cluster.z}};
  const Answer answer = ask(call, params);
  wire::PayloadReader payload = payload_of(answer);
  const auto wire = payload.value<LaunchWire>();
  sim::LaunchReply reply;
  reply.status = static_cast<sim::LaunchStatus>(wire.status);
  reply.unsupported = wire.unsupported != 0;
  reply.instructions = wire.instructions;
  reply.message = payload.text(wire.message_bytes);
  reply.output = payload.text(wire.output_bytes);
  reply.error_output = payload.text(wire.error_bytes);
  return reply;
}

}  // namespace assay::device
