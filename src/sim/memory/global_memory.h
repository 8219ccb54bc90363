// The global memory of a simulated GPU: allocations in kGlobalRange, their bytes elsewhere, and
// which bytes were ever written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/address_map.h"

namespace assay::sim {

struct Allocation {
  std::uint64_t address = 0, bytes = 0;
  std::byte* data = nullptr;             // host memory of the first byte
  std::uint64_t* initialised = nullptr;  // one bit a byte, bit 0 of word 0 is the first byte
  bool read_only = false;                // constants
  bool live = false;                     // false: freed; kept while its range is not used again
  std::string name;                      // of a module variable, empty for cudaMalloc
};

class Footprint;
class RaceShadow;

// Addresses are aligned to 256 bytes, and at least 256 unused bytes lie between two allocations. A
// freed range is not used again before all others were, so that use after free is found. New memory
// reads as zero and is uninitialised. Not thread-safe, but for find() and the bytes while nothing
// is allocated or freed.
//
// The first object of a process reserves kGlobalRange, for good; std::runtime_error when something
// lies there already, or when the operating system refuses address space.
class GlobalMemory {
 public:
  explicit GlobalMemory(std::uint64_t capacity_bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // nullopt: out of memory. bytes == 0 is the caller's affair (not allowed here).
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::string name = {},
                                        bool read_only = false);
  bool free(std::uint64_t address);  // false: not the begin of a live allocation

  // The live or freed allocation that holds `address`; null: none ever did, or its range was
  // reused. The pointer stays valid until the next allocate() or free().
  const Allocation* find(std::uint64_t address) const;
  // The nearest live allocation, to describe an access outside of all.
  const Allocation* nearest(std::uint64_t address) const;

  // Host memory of [address, address + bytes), null unless it lies in one live allocation.
  std::byte* data(std::uint64_t address, std::uint64_t bytes) const;
  void mark_initialised(std::uint64_t address, std::uint64_t bytes);
  // Undefined values were stored in the bytes at address + i for each bit i, all of one aligned
  // access. Thread-safe.
  void mark_undefined(std::uint64_t address, std::uint32_t bits);
  // Whether the range holds such values, more than padding would: all of it, or 16 bytes side by
  // side. `any`: whether any byte does, or was never written. Between launches.
  bool holds_undefined(std::uint64_t address, std::uint64_t bytes, bool any) const;
  // Bytes of `to` become as initialised as those of `from`, whose values they take. Between
  // launches; the ranges may overlap.
  void copy_initialised(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);

  // Host memory of kGlobalRange.begin, whether or not it is allocated: the bytes of an address lie
  // at a constant distance. Likewise the initialised bits.
  std::byte* store() const;
  std::uint64_t* initialised_bits() const;
  // Made when first asked for; not thread-safe.
  RaceShadow& race_shadow() const;
  Footprint& footprint() const;

  std::uint64_t live_bytes() const;  // as asked for, without padding
  std::uint64_t high_water() const;  // of live bytes, module variables included
  void reset_high_water();
  std::uint64_t capacity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
