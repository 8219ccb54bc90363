// Memory that host and device share: managed memory, which both read and write at the same
// addresses, and mapped memory of the host.
//
// Host and device may be different processes, so each has its own copy of the bytes. The host's
// changes go to the device before each operation and before the host waits, byte by byte. What the
// device changed comes back when the host has waited for it. The host's copy is therefore as of its
// last wait, which is all that a GPU guarantees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace assay::sim::cuda {

class ManagedMemory {
 public:
  using Write = std::function<void(std::uint64_t to, std::span<const std::byte> from)>;
  using Read = std::function<void(std::span<std::byte> to, std::uint64_t from)>;

  ManagedMemory() = default;
  ManagedMemory(const ManagedMemory&) = delete;
  ManagedMemory& operator=(const ManagedMemory&) = delete;
  ~ManagedMemory() { clear(); }

  // Adds an allocation of zeros that the host has not written yet. False: out of memory.
  bool add(std::uint64_t address, std::uint64_t bytes);
  // Adds a copy of host memory, as which the device's copy will be sent; it is zeros as yet.
  void mirror(std::uint64_t address, std::byte* host, std::uint64_t bytes);
  // The host can no longer access it, except for pages shared with another allocation. Memory that
  // was mirrored is left alone.
  void remove(std::uint64_t address);
  void clear();
  bool empty() const { return allocations_.empty(); }
  // Whether both sides have it at these addresses.
  bool contains(std::uint64_t address, std::uint64_t bytes = 1) const;

  // Calls `write` for each run of bytes that the host changed. Unless `exactly`, runs may include
  // unchanged bytes in between, which is correct while the device's bytes are the same.
  void send_changes(bool exactly, const Write& write);
  // Fetches the bytes that the device changed.
  void fetch(const Read& read);

 private:
  bool open_pages(std::uint64_t address, std::uint64_t bytes);
  void close_pages(std::uint64_t address, std::uint64_t bytes);

  struct Allocation {
    std::byte* host;
    std::vector<std::byte> known;  // the contents that both sides had last
  };
  std::map<std::uint64_t, Allocation> allocations_;  // by the device's address
  std::map<std::uint64_t, std::size_t> pages_;  // accessible pages: number of allocations on each
};

}  // namespace assay::sim::cuda
