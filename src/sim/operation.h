// One operation of a device, a launch, a copy or a fill, as the order between operations sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::sim {

// When something happened: for each stream how many of its operations came before. Streams beyond
// the end of the vector: none.
using Clock = std::vector<std::uint32_t>;

// Whether the operation of this number in the stream happened before what the clock stands for.
inline bool knows(const Clock& clock, std::uint32_t stream, std::uint32_t time) {
  return stream < clock.size() && clock[stream] >= time;
}

// Streams that are told apart; see sim/runtime/stream_order.h.
inline constexpr std::uint32_t kMaxStreams = 1024;

struct Operation {
  std::uint32_t stream = 0;  // index in clocks
  std::uint32_t time = 0;    // its own number in the stream, from 1
  Clock clock;               // what happened before it; of its own stream: `time`
  std::string call;          // "cudaMemcpyAsync"; of a launch the kernel's name is told instead
  std::string stream_name;   // "stream 3", "the default stream"

  // Whether that operation of that stream happened before this one, or is this one.
  bool knows(std::uint32_t other_stream, std::uint32_t other_time) const {
    return sim::knows(clock, other_stream, other_time);
  }
};

}  // namespace assay::sim
