// Managed memory: allocations of the device that the host reads and writes at the same addresses.
//
// Host and device may be different processes, so each has bytes of its own. What the host changed
// goes to the device before each operation, byte by byte; all bytes come back when the host has
// waited for work that may have changed them. The host's are therefore as of its last wait, which
// is all that a GPU promises.
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

  // An allocation of zeros, of which the host knows nothing so far. False: no memory.
  bool add(std::uint64_t address, std::uint64_t bytes);
  // The host can no longer access it, but for what shares a page with another.
  void remove(std::uint64_t address);
  void clear();
  bool empty() const { return allocations_.empty(); }
  bool contains(std::uint64_t address, std::uint64_t bytes = 1) const;

  // Calls `write` for each run of bytes that the host changed. Unless `exactly`, runs also take in
  // bytes between that did not change, which is right while the device's are the same.
  void send_changes(bool exactly, const Write& write);
  // Takes the bytes of the device.
  void fetch(const Read& read);

 private:
  bool open_pages(std::uint64_t address, std::uint64_t bytes);
  void close_pages(std::uint64_t address, std::uint64_t bytes);

  std::map<std::uint64_t, std::vector<std::byte>> allocations_;  // what both sides had last
  std::map<std::uint64_t, std::size_t> pages_;  // accessible ones: of how many allocations
};

}  // namespace assay::sim::cuda
