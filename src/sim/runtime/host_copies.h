// Copies between page-locked host memory and the device for which the host has not waited yet.
//
// To the host: the bytes are held back here until the host waits for the copy, so a program that
// reads them too early finds the old contents. To the device: the device reads the source at once,
// although the real copy may read it as late as when the host waits for it. Kernels run at once, so
// that moment cannot be awaited. Instead, the source's contents at that moment are compared with
// what was read, and a change is a fault of the program. A host that writes the same bytes again
// does no harm.
//
// Limit: kMaxLateBytes are held back at a time; beyond that, the oldest arrive early.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "sim/runtime/stream_order.h"

namespace assay::sim::cuda {

class HostCopies {
 public:
  static constexpr std::size_t kMaxLateBytes = std::size_t{1} << 30;

  // A change of data that a copy to the device may still have had to read.
  struct Change {
    std::string call, stream_name;
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
  };

  // Where to put the bytes that arrive at `to` once the host has waited for the operation. Valid
  // until the next call.
  std::span<std::byte> receive(void* to, std::size_t bytes, const Operation&);
  // The operation reads these bytes of host memory, which hold what contents() returned.
  void send(std::span<const std::byte> from, std::span<const std::byte> read, const Operation&);
  // What an operation with that clock reads there, including bytes that arrive before it. `buffer`
  // holds them if they differ from what the host sees.
  std::span<const std::byte> contents(std::span<const std::byte> from, const Clock&,
                                      std::vector<std::byte>& buffer) const;
  // The host has waited for something.
  std::vector<Change> settle(const StreamOrder&);

 private:
  struct Copy {
    bool to_host = false;
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::vector<std::byte> data;  // to the host
    std::size_t hash = 0;         // of what was read
    std::uint32_t stream = 0, time = 0;
    std::string call, stream_name;
  };
  static void deliver(const Copy&);

  std::deque<Copy> copies_;  // in the order of issue
  std::size_t late_bytes_ = 0;
};

}  // namespace assay::sim::cuda
