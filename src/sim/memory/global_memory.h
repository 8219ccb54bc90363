// The global memory of a simulated GPU: allocations in kGlobalRange, their bytes stored elsewhere,
// and which bytes were ever written.
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
  std::uint64_t* initialised = nullptr;  // one bit per byte, bit 0 of word 0 is the first byte
  bool read_only = false;                // constants
  bool live = false;                     // false: freed; kept until its range is reused
  std::string name;                      // of a module variable, empty for cudaMalloc
};

class Footprint;
class RaceShadow;

// Addresses are aligned to 256 bytes, with at least 256 unused bytes between two allocations. A
// freed range is not reused before all others were, so that use after free is found. New memory
// reads as zero and is uninitialised. Not thread-safe, except find() and access to the bytes while
// nothing is allocated or freed.
//
// The first object of a process reserves kGlobalRange permanently. Throws std::runtime_error if
// something is there already, or if the operating system refuses address space.
class GlobalMemory {
 public:
  explicit GlobalMemory(std::uint64_t capacity_bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // nullopt: out of memory. bytes == 0 is not allowed; the caller must handle it.
  // `align`: a power of two; every address is aligned to 256 bytes anyway.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::string name = {},
                                        bool read_only = false, std::uint64_t align = 1);
  bool free(std::uint64_t address);  // false: not the start of a live allocation

  // The live or freed allocation that contains `address`; null if none ever did, or if its range
  // was reused. Valid until the next allocate() or free().
  const Allocation* find(std::uint64_t address) const;
  // The nearest live allocation, to describe an access outside all of them.
  const Allocation* nearest(std::uint64_t address) const;

  // Host memory of [address, address + bytes), null unless it is within one live allocation.
  std::byte* data(std::uint64_t address, std::uint64_t bytes) const;
  void mark_initialised(std::uint64_t address, std::uint64_t bytes);
  // Undefined values were stored in the bytes at address + i for each bit i, all by one aligned
  // access. Thread-safe.
  void mark_undefined(std::uint64_t address, std::uint32_t bits);
  // Whether the range holds more undefined stored values than padding would: all of it, or 16
  // adjacent bytes. `any`: whether any byte holds one or was never written. Between launches only.
  bool holds_undefined(std::uint64_t address, std::uint64_t bytes, bool any) const;
  // Makes bytes of `to` as initialised as those of `from`, from which they are copied. Between
  // launches only; the ranges may overlap.
  void copy_initialised(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);

  // Host memory of kGlobalRange.begin, whether or not it is allocated: an address's bytes are at a
  // constant distance. Likewise the initialised bits.
  std::byte* store() const;
  std::uint64_t* initialised_bits() const;
  // Made on first use; not thread-safe.
  RaceShadow& race_shadow() const;
  Footprint& footprint() const;

  std::uint64_t live_bytes() const;  // as requested, without padding
  std::uint64_t high_water() const;  // of live bytes, module variables included
  void reset_high_water();
  std::uint64_t capacity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
