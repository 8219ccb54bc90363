// Records which bytes of global memory a launch read, updated and wrote, and where in the code.
// Exact to the byte, for the races between operations (stream_races.h).
//
// A bitmap for each kind of access, and for each 64 bytes the lowest instruction that made one. The
// instruction is thus an example: neighbouring bytes may have another.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "sim/memory/access.h"
#include "sim/memory/lane_pattern.h"
#include "sim/memory/lazy_map.h"

namespace assay::sim {

// What an operation did to a byte; if several things, the later enumerator wins. A read next to an
// atomic update counts as part of it, because a compare-and-swap loop begins with such a read.
enum class TouchKind : std::uint8_t { read, atomic, write };

class Footprint {
 public:
  // For `span` bytes from kGlobalRange.begin. Throws std::runtime_error if there is no address
  // space.
  explicit Footprint(std::uint64_t span);

  // Thread-safe. The result does not depend on the order of the calls.
  void add(const WarpAccess&, const LanePattern&);

  struct Run {
    std::uint64_t begin = 0, end = 0;  // addresses
    TouchKind kind{};
    std::uint32_t pc = 0;
  };
  // Calls f for runs of bytes with the same kind and instruction, ascending, and forgets them. Not
  // thread-safe.
  void take(const std::function<void(const Run&)>& f);
  // Returns the memory behind the range to the system. Only when everything was taken.
  void forget(std::uint64_t address, std::uint64_t bytes);

 private:
  static constexpr std::uint64_t kPage = 4096, kGranule = 64, kGroup = 64 * kPage;

  void mark(std::uint64_t offset);
  // Whether this is the first access of the launch there.
  bool note(std::uint32_t* places, std::uint64_t granule, std::uint32_t place);
  void take_page(std::uint64_t page, const std::function<void(const Run&)>& f);

  std::array<LazyMap, 3> bits_, places_;  // by TouchKind; a place is pc + 1, 0: none
  LazyMap pages_, groups_;                // bits: what take() must look at
  std::uint64_t groups_count_;
};

}  // namespace assay::sim
