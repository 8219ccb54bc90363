#include "run/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "assay/parallel.h"
#include "assay/random.h"

namespace assay::run {
namespace {

constexpr std::size_t kAlign = 256;

std::size_t round_up(std::size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

// 16-bit halves 0xfff1..0xffff: NaN as f16, bf16, f32 and f64, small negative as an integer.
std::uint64_t poison_word(std::uint64_t seed, std::uint64_t index) {
  return 0xfff1fff1fff1fff1ull |
         (mix64(seed + index * 0x9e3779b97f4a7c15ull) & 0x000e000e000e000eull);
}

std::byte poison_byte(std::uint64_t seed, std::size_t offset) {
  return static_cast<std::byte>(poison_word(seed, offset / 8) >> (offset % 8 * 8));
}

// The pattern is a function of the arena offset, so any range can be written or compared alone.
void write_poison(std::byte* arena, std::size_t begin, std::size_t end, std::uint64_t seed) {
  while (begin < end && begin % 8 != 0) arena[begin] = poison_byte(seed, begin), ++begin;
  const std::size_t words = (end - begin) / 8;
  parallel_for(static_cast<std::int64_t>(words), 1 << 17, [&](std::int64_t b, std::int64_t e) {
    auto* const out = reinterpret_cast<std::uint64_t*>(arena + begin);
    // Copies: for all the compiler knows the stores change what is captured.
    const std::uint64_t first = begin / 8, key = seed;
    for (std::int64_t i = b; i < e; ++i)
      out[i] = poison_word(key, first + static_cast<std::uint64_t>(i));
  });
  for (begin += words * 8; begin < end; ++begin) arena[begin] = poison_byte(seed, begin);
}

// Offset of the first byte of [begin, end) that is not poison, or `end`.
std::size_t first_difference(const std::byte* arena, std::size_t begin, std::size_t end,
                             std::uint64_t seed) {
  for (; begin < end; ++begin) {
    if (begin % 8 == 0 && begin + 8 <= end) {
      const std::uint64_t w = poison_word(seed, begin / 8);
      if (std::memcmp(arena + begin, &w, 8) == 0) {
        begin += 7;
        continue;
      }
    }
    if (arena[begin] != poison_byte(seed, begin)) return begin;
  }
  return end;
}

// What of a buffer the submission may write.
std::size_t usable_bytes(const CasePlan& plan, const Layout& layout, const void* output,
                         std::size_t buffer) {
  const std::size_t bytes = layout.slots[buffer].bytes;
  if (plan.buffers[buffer].sized_by < 0) return bytes;
  std::int64_t asked = 0;
  const auto size = static_cast<std::size_t>(plan.buffers[buffer].sized_by);
  if (layout.slots[size].null != 0) return bytes;
  std::memcpy(&asked, static_cast<const std::byte*>(output) + layout.slots[size].offset,
              sizeof asked);
  return asked < 0 ? bytes : std::min(bytes, static_cast<std::size_t>(asked));
}

}  // namespace

std::size_t misalignment(const CasePlan& plan, const BufferPlan& buffer, Memory memory) {
  const bool storage =
      buffer.sized_by >= 0 || (memory == Memory::device && buffer.dtype == Dtype::u8);
  return plan.aligned || storage ? 0 : size_of(buffer.dtype);
}

Layout make_layout(const CasePlan& plan, bool callbacks, Memory memory, std::size_t skew) {
  Layout layout;
  layout.slots_offset = round_up(sizeof(wire::Header));
  layout.params_offset =
      round_up(layout.slots_offset + plan.buffers.size() * sizeof(wire::BufferSlot));
  std::size_t input = round_up(layout.params_offset + plan.params.size()) + skew;
  std::size_t output = skew;
  layout.device_bytes = skew;
  for (const BufferPlan& b : plan.buffers) {
    const bool on_device = memory == Memory::device && !b.host && !b.null;
    wire::BufferSlot slot;
    slot.null = b.null;
    slot.in_output = b.role != Role::input;
    slot.bytes = b.null ? 0 : b.bytes();
    if (!b.null) {
      std::size_t& cursor = on_device ? layout.device_bytes : slot.in_output ? output : input;
      // Unaligned cases put every base one element behind a 256-byte boundary.
      slot.offset =
          cursor + kAlign + misalignment(plan, b, on_device ? Memory::device : Memory::host);
      cursor = round_up(slot.offset + slot.bytes + kCanaryBytes);
    }
    layout.slots.push_back(slot);
    layout.on_device.push_back(on_device);
  }
  if (callbacks) {
    layout.callback_response_offset = input;
    layout.callback_request_offset = output;
    input += kCallbackPayload;
    output += kCallbackPayload;
  }
  layout.input_bytes = input;
  layout.output_bytes = output + kAlign;
  return layout;
}

std::vector<BufferView> views(const Layout& layout, void* input, void* output, void* device) {
  std::vector<BufferView> result;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const auto& slot = layout.slots[i];
    if (slot.null) {
      result.push_back({});
    } else {
      auto* base = static_cast<std::byte*>(layout.on_device[i] ? device
                                           : slot.in_output    ? output
                                                               : input);
      result.push_back({base + slot.offset, slot.bytes});
    }
  }
  return result;
}

void poison(const CasePlan& plan, const Layout& layout, void* output, std::uint64_t seed,
            void* device) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    auto* arena = static_cast<std::byte*>(layout.on_device[i] ? device : output);
    const auto& slot = layout.slots[i];
    if (slot.null || !slot.in_output) continue;
    const std::size_t end = slot.offset + slot.bytes;
    if (plan.buffers[i].role == Role::output) {
      write_poison(arena, slot.offset - kCanaryBytes, end + kCanaryBytes, seed);
    } else {
      write_poison(arena, slot.offset - kCanaryBytes, slot.offset, seed);
      write_poison(arena, end, end + kCanaryBytes, seed);
    }
  }
}

std::string find_overrun(const CasePlan& plan, const Layout& layout, const void* output,
                         std::uint64_t seed, const void* device) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto* arena = static_cast<const std::byte*>(layout.on_device[i] ? device : output);
    const auto& slot = layout.slots[i];
    if (slot.null || !slot.in_output || !plan.buffers[i].canary) continue;
    const std::size_t begin = slot.offset, usable = usable_bytes(plan, layout, output, i);
    const std::size_t end = begin + usable, guarded = begin + slot.bytes + kCanaryBytes;
    const std::size_t before = first_difference(arena, begin - kCanaryBytes, begin, seed);
    if (before < begin) {
      return fmt::format("wrote {} bytes before the start of {}", begin - before,
                         plan.buffers[i].name);
    }
    const std::size_t after = first_difference(arena, end, guarded, seed);
    if (after == guarded) continue;
    return usable == slot.bytes ? fmt::format("wrote {} bytes past the end of {}", after - end + 1,
                                              plan.buffers[i].name)
                                : fmt::format("wrote byte {} of {}, for which it had asked for {}",
                                              after - begin, plan.buffers[i].name, usable);
  }
  return {};
}

std::string find_touched(const CasePlan& plan, const Layout& layout, const void* output,
                         std::uint64_t seed, const void* device) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto* arena = static_cast<const std::byte*>(layout.on_device[i] ? device : output);
    const auto& slot = layout.slots[i];
    if (slot.null || plan.buffers[i].role != Role::output) continue;
    const std::size_t end = slot.offset + slot.bytes;
    const std::size_t at = first_difference(arena, slot.offset, end, seed);
    if (at < end) {
      return fmt::format("{} was written at byte {} although the call had to fail",
                         plan.buffers[i].name, at - slot.offset);
    }
  }
  return {};
}

}  // namespace assay::run
