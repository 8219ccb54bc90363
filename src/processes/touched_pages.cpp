#include "processes/touched_pages.h"

#include <algorithm>
#include <span>
#include <utility>

namespace assay::processes {

std::uint64_t bytes_of_pages(std::vector<ByteRange> ranges) {
  constexpr std::uint64_t kPageBytes = 4096;
  std::ranges::sort(ranges);
  std::size_t pages = 0, next = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin == end) continue;
    const std::size_t first = std::max(begin / kPageBytes, next), last = (end - 1) / kPageBytes;
    if (last >= first) pages += last + 1 - first;
    next = std::max(next, last + 1);
  }
  return pages * kPageBytes;
}

std::uint64_t bytes_of_case(const CasePlan& plan, const Layout& layout) {
  std::vector<ByteRange> input, output;
  input.push_back({0, layout.params_offset + plan.params.size()});
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const wire::BufferSlot& slot = layout.slots[i];
    if (slot.null != 0 || layout.on_device[i]) continue;
    auto& ranges = slot.in_output != 0 ? output : input;
    if (slot.window == 0) {
      ranges.push_back({slot.offset, slot.offset + slot.bytes});
      continue;
    }
    const wire::Window& window = layout.windows[slot.window - 1];
    for (const auto& part : std::span(layout.parts).subspan(window.first_part, window.parts))
      ranges.push_back({part.offset, part.offset + part.bytes});
  }
  return bytes_of_pages(std::move(input)) + bytes_of_pages(std::move(output));
}

std::uint64_t bytes_of_callback(ByteRange request, ByteRange response) {
  return bytes_of_pages({request}) + bytes_of_pages({response});
}

}  // namespace assay::processes
