// One operation of a device, a launch, a copy or a fill, as seen by the order between operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::sim {

// When something happened: for each stream, how many of its operations came before. For streams
// beyond the vector's end: none.
using Clock = std::vector<std::uint32_t>;

// Whether the operation with this number in the stream happened before the clock's moment.
inline bool knows(const Clock& clock, std::uint32_t stream, std::uint32_t time) {
  return stream < clock.size() && clock[stream] >= time;
}

// The most streams that are distinguished; see sim/runtime/stream_order.h.
inline constexpr std::uint32_t kMaxStreams = 1024;

struct Operation {
  std::uint32_t stream = 0;  // index in clocks
  std::uint32_t time = 0;    // its own number in the stream, from 1
  Clock clock;               // what happened before it; for its own stream: `time`
  std::string call;          // "cudaMemcpyAsync"; for a launch the kernel's name is shown instead
  std::string stream_name;   // "stream 3", "the default stream"

  // Whether that operation of that stream happened before this one, or is this one.
  bool knows(std::uint32_t other_stream, std::uint32_t other_time) const {
    return sim::knows(clock, other_stream, other_time);
  }
};

}  // namespace assay::sim
