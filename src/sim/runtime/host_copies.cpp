#include "sim/runtime/host_copies.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

namespace assay::sim::cuda {
namespace {

std::size_t hash_of(std::span<const std::byte> bytes) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::uintptr_t host_address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

void HostCopies::deliver(const Copy& c) {
  std::memcpy(reinterpret_cast<void*>(c.address), c.data.data(), c.bytes);  // NOLINT: the host's
}

std::span<std::byte> HostCopies::receive(void* to, std::size_t bytes, const Operation& o) {
  const std::uintptr_t address = host_address(to);
  // What the operation overwrites can no longer be observed.
  std::erase_if(copies_, [&](const Copy& c) {
    const bool covered = c.to_host && knows(o.clock, c.stream, c.time) && c.address >= address &&
                         c.address + c.bytes <= address + bytes;
    if (covered) late_bytes_ -= c.bytes;
    return covered;
  });
  Copy& c = copies_.emplace_back();
  c.to_host = true;
  c.address = address;
  c.bytes = bytes;
  c.data.resize(bytes);
  c.stream = o.stream;
  c.time = o.time;
  late_bytes_ += bytes;
  while (late_bytes_ > kMaxLateBytes && copies_.size() > 1) {
    const auto oldest = std::ranges::find_if(copies_, &Copy::to_host);
    if (&*oldest == &copies_.back()) break;
    deliver(*oldest);
    late_bytes_ -= oldest->bytes;
    copies_.erase(oldest);
  }
  return copies_.back().data;
}

void HostCopies::send(std::span<const std::byte> from, std::span<const std::byte> read,
                      const Operation& o) {
  Copy& c = copies_.emplace_back();
  c.address = host_address(from.data());
  c.bytes = from.size();
  c.hash = hash_of(read);
  c.stream = o.stream;
  c.time = o.time;
  c.call = o.call;
  c.stream_name = o.stream_name;
}

std::span<const std::byte> HostCopies::contents(std::span<const std::byte> from, const Clock& clock,
                                                std::vector<std::byte>& buffer) const {
  const std::uintptr_t begin = host_address(from.data()), end = begin + from.size();
  std::span<const std::byte> now = from;
  for (const Copy& c : copies_) {
    const std::uintptr_t first = std::max(begin, c.address),
                         last = std::min(end, c.address + c.bytes);
    if (!c.to_host || first >= last || !knows(clock, c.stream, c.time)) continue;
    if (buffer.empty()) buffer.assign(from.begin(), from.end());
    std::memcpy(buffer.data() + (first - begin), c.data.data() + (first - c.address), last - first);
    now = buffer;
  }
  return now;
}

std::vector<HostCopies::Change> HostCopies::settle(const StreamOrder& order) {
  std::vector<Change> changes;
  std::erase_if(copies_, [&](const Copy& c) {
    if (!order.host_knows(c.stream, c.time)) return false;
    if (c.to_host) {
      deliver(c);
      late_bytes_ -= c.bytes;
      return true;
    }
    const auto* source = reinterpret_cast<const std::byte*>(c.address);  // NOLINT: the host's
    if (hash_of({source, c.bytes}) != c.hash)
      changes.push_back({c.call, c.stream_name, c.address, c.bytes});
    return true;
  });
  return changes;
}

}  // namespace assay::sim::cuda
