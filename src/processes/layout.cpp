#include "processes/layout.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/poison.h"
#include "assay/random.h"
#include "processes/window.h"
#include "util/transient_fault.h"

namespace assay::processes {
namespace {

constexpr std::size_t kAlign = 256, kPage = 4096;

std::size_t round_up(std::size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

// The same half in all four positions.
constexpr std::uint64_t repeated(std::uint16_t half) { return half * 0x0001000100010001ull; }

// The halves 0xfff1, 0xfff5, 0xfff9 and 0xfffd. All bits set is not among them, since a submission
// may write that as NaN.
std::uint64_t poison_word(std::uint64_t seed, std::uint64_t index) {
  return repeated(kPoison) |
         (mix64(seed + index * 0x9e3779b97f4a7c15ull) & repeated(std::uint16_t{0x000c}));
}

// The poison of an element at an offset that is a multiple of its size.
template <class T>
T poison_at(std::uint64_t seed, std::size_t offset) {
  return static_cast<T>(poison_word(seed, offset / 8) >> (offset % 8 * 8));
}

std::byte poison_byte(std::uint64_t seed, std::size_t offset) {
  return static_cast<std::byte>(poison_at<std::uint8_t>(seed, offset));
}

// The pattern is a function of the arena offset, so any range can be written or compared alone.
void write_poison(std::byte* arena, std::size_t begin, std::size_t end, std::uint64_t seed) {
  while (begin < end && begin % 8 != 0) arena[begin] = poison_byte(seed, begin), ++begin;
  const std::size_t words = (end - begin) / 8;
  parallel_for(static_cast<std::int64_t>(words), 1 << 17, [&](std::int64_t b, std::int64_t e) {
    auto* const out = reinterpret_cast<std::uint64_t*>(arena + begin);
    // Local copies: the compiler must assume that the stores change captured variables.
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

// Replaces every T-sized element (T is an unsigned integer) that still holds its poison with a
// number. `offset`: the first element's place in the arena.
template <class T>
bool replace_poison(std::byte* data, std::size_t bytes, std::size_t offset, std::uint64_t seed) {
  constexpr T kBits = static_cast<T>(repeated(kPoison)),
              kNumber = static_cast<T>(repeated(kUnwritten));
  std::atomic<bool> any = false;
  parallel_for(static_cast<std::int64_t>(bytes / sizeof(T)), 1 << 18,
               [&](std::int64_t begin, std::int64_t end) {
                 bool found = false;
                 for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                      ++i) {
                   T value;
                   std::memcpy(&value, data + i * sizeof(T), sizeof(T));
                   if ((value & kBits) != kBits) continue;
                   if (value != poison_at<T>(seed, offset + i * sizeof(T))) continue;
                   std::memcpy(data + i * sizeof(T), &kNumber, sizeof(T));
                   found = true;
                 }
                 if (found) any = true;
               });
  return any;
}

bool replace_poison(Dtype dtype, std::byte* data, std::size_t bytes, std::size_t offset,
                    std::uint64_t seed) {
  switch (dtype) {
    case Dtype::bf16:
    case Dtype::f16: return replace_poison<std::uint16_t>(data, bytes, offset, seed);
    case Dtype::f32: return replace_poison<std::uint32_t>(data, bytes, offset, seed);
    case Dtype::f64: return replace_poison<std::uint64_t>(data, bytes, offset, seed);
    default: return false;  // in an integer, poison is a number that is never expected
  }
}

// A range of an arena.
struct Extent {
  std::size_t begin = 0, end = 0;
  std::size_t in_buffer = 0;  // offset of its first byte in the buffer
};

// The pages of a sparse buffer, as ordered ranges of pieces and of gaps.
struct SparseExtents {
  std::vector<Extent> pieces, gaps;
};

SparseExtents sparse_extents(const CasePlan& plan, const Layout& layout, std::size_t buffer) {
  SparseExtents all;
  const wire::BufferSlot& slot = layout.slots[buffer];
  const BufferPlan& b = plan.buffers[buffer];
  const wire::Window& window = layout.windows[slot.window - 1];
  const std::size_t size = size_of(b.dtype);
  auto piece = b.pieces.begin();
  for (std::size_t i = 0; i < window.parts; ++i) {
    const wire::WindowPart& part = layout.parts[window.first_part + i];
    const auto extent = [&](std::size_t begin, std::size_t end) {  // from offsets in the window
      return Extent{begin - part.at + part.offset, end - part.at + part.offset,
                    begin - slot.offset};
    };
    std::size_t at = part.at;
    for (; piece != b.pieces.end(); ++piece) {
      const std::size_t begin = slot.offset + static_cast<std::size_t>(piece->first) * size;
      if (begin >= part.at + part.bytes) break;
      const std::size_t end = begin + static_cast<std::size_t>(piece->count) * size;
      all.gaps.push_back(extent(at, begin));
      all.pieces.push_back(extent(begin, end));
      at = end;
    }
    all.gaps.push_back(extent(at, part.at + part.bytes));
  }
  return all;
}

// The ranges that hold a buffer's elements.
std::vector<Extent> extents(const CasePlan& plan, const Layout& layout, std::size_t buffer) {
  const wire::BufferSlot& slot = layout.slots[buffer];
  if (slot.window != 0) return sparse_extents(plan, layout, buffer).pieces;
  return {{slot.offset, slot.offset + slot.bytes, 0}};
}

// Says which gap around the pieces of a sparse output was written to, or "".
std::string find_written_gap(const CasePlan& plan, const Layout& layout, const std::byte* arena,
                             std::size_t buffer, std::uint64_t seed) {
  for (const Extent& gap : sparse_extents(plan, layout, buffer).gaps) {
    const std::size_t at = first_difference(arena, gap.begin, gap.end, seed);
    if (at == gap.end) continue;
    return fmt::format("wrote around the rows of {}, at byte {}", plan.buffers[buffer].name,
                       static_cast<std::int64_t>(gap.in_buffer + (at - gap.begin)));
  }
  return {};
}

// The first byte of an element of an output that was written to.
std::optional<std::size_t> find_written(const CasePlan& plan, const Layout& layout,
                                        const std::byte* arena, std::size_t buffer,
                                        std::uint64_t seed) {
  for (const Extent& piece : extents(plan, layout, buffer)) {
    const std::size_t at = first_difference(arena, piece.begin, piece.end, seed);
    if (at != piece.end) return piece.in_buffer + (at - piece.begin);
  }
  return std::nullopt;
}

// The first byte of an inout buffer that differs from `first`.
std::optional<std::size_t> find_changed(const BufferView& first, const wire::BufferSlot& slot,
                                        const std::byte* arena) {
  const std::span<const std::byte> before(static_cast<const std::byte*>(first.data), first.bytes);
  const std::span<const std::byte> after(arena + slot.offset, slot.bytes);
  const auto at = std::ranges::mismatch(after, before).in1;
  if (at == after.end()) return std::nullopt;
  return static_cast<std::size_t>(at - after.begin());
}

void write_poison_to_parts(const Layout& layout, const wire::BufferSlot& slot, std::byte* arena,
                           std::uint64_t seed) {
  const wire::Window& window = layout.windows[slot.window - 1];
  for (const auto& part : std::span(layout.parts).subspan(window.first_part, window.parts))
    write_poison(arena, part.offset, part.offset + part.bytes, seed);
}

void require_sparse(const BufferPlan& b, int phases, Memory memory) {
  const auto wrong = [&](const char* why) {
    throw ChallengeError(fmt::format("the sparse buffer {} {}", b.name, why));
  };
  if (memory == Memory::device && !b.host) wrong("cannot go to a device");
  if (b.role == Role::inout || b.phase != 0 || b.until >= 0)
    wrong("needs its contents from the start");
  if (b.sized_by >= 0) wrong("has no size that is asked for");
  if (b.role == Role::output && phases > 1) wrong("is due in a case of one phase only");
  std::int64_t end = 0;
  for (const Piece& piece : b.pieces) {
    if (piece.first < end || piece.count <= 0) wrong("needs pieces in ascending order");
    end = piece.first + piece.count;
  }
  if (end > b.elements()) wrong("has pieces behind its end");
}

// The window of a sparse buffer that begins `begin` bytes after the window's start. Places its
// pages in the arena at the cursor.
wire::Window add_window(const BufferPlan& b, std::size_t begin, std::size_t& cursor,
                        std::vector<wire::WindowPart>& parts) {
  wire::Window window{.in_output = b.role != Role::input, .first_part = parts.size()};
  const std::size_t size = size_of(b.dtype);
  cursor = (cursor + kPage - 1) / kPage * kPage;
  for (const Piece& piece : b.pieces) {
    const std::size_t first = begin + static_cast<std::size_t>(piece.first) * size;
    const std::size_t end = first + static_cast<std::size_t>(piece.count) * size;
    const std::size_t from = (first - kCanaryBytes) / kPage * kPage;
    const std::size_t to = (end + kCanaryBytes + kPage - 1) / kPage * kPage;
    if (window.parts == 0 || from > parts.back().at + parts.back().bytes) {
      parts.push_back({.at = from, .offset = cursor, .bytes = 0});
      ++window.parts;
    }
    wire::WindowPart& part = parts.back();
    const std::size_t bytes = std::max<std::size_t>(part.bytes, to - part.at);
    cursor += bytes - part.bytes;
    part.bytes = bytes;
    window.bytes = part.at + part.bytes + kPage;
  }
  return window;
}

// Bytes of a buffer that the submission may write.
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
  layout.windows_offset = round_up(layout.params_offset + plan.params.size());
  std::size_t sparse = 0, pieces = 0;
  for (const BufferPlan& b : plan.buffers) {
    sparse += b.pieces.empty() ? 0 : 1;
    pieces += b.pieces.size();
  }
  std::size_t input = round_up(layout.windows_offset + sparse * sizeof(wire::Window) +
                               pieces * sizeof(wire::WindowPart)) +
                      skew;
  std::size_t output = skew;
  layout.device_bytes = skew;
  for (const BufferPlan& b : plan.buffers) {
    const bool on_device = memory == Memory::device && !b.host && !b.null;
    wire::BufferSlot slot;
    slot.null = b.null;
    slot.in_output = b.role != Role::input;
    slot.bytes = b.null ? 0 : b.bytes();
    if (!b.null && !b.pieces.empty()) {
      require_sparse(b, plan.phases, memory);
      slot.offset = kAlign + misalignment(plan, b, Memory::host);
      layout.windows.push_back(
          add_window(b, slot.offset, slot.in_output ? output : input, layout.parts));
      slot.window = layout.windows.size();
    } else if (!b.null) {
      std::size_t& cursor = on_device ? layout.device_bytes : slot.in_output ? output : input;
      // Unaligned cases put every base one element after a 256-byte boundary.
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

std::uint64_t Layout::window_bytes() const {
  std::uint64_t sum = 0;
  for (const wire::Window& window : windows) sum += window.bytes;
  return sum;
}

Windows::Windows(const Layout& layout, std::byte* input, std::byte* output) {
  for (const wire::Window& window : layout.windows) {
    std::byte* const arena = window.in_output != 0 ? output : input;
    open_.push_back({nullptr, window.bytes});
    if (arena == nullptr) continue;
    open_.back().data = open_window(window, layout.parts.data(), arena);
    if (open_.back().data == nullptr)
      throw_errno(fmt::format("cannot reserve {} bytes of address space", window.bytes));
  }
}

Windows::~Windows() {
  for (const Open& window : open_) {
    if (window.data != nullptr) ::munmap(window.data, window.bytes);
  }
}

std::vector<BufferView> views(const Layout& layout, void* input, void* output, void* device,
                              const Windows* windows) {
  std::vector<BufferView> result;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const auto& slot = layout.slots[i];
    if (slot.null) {
      result.push_back({});
    } else if (slot.window != 0) {
      result.push_back({windows->data(slot) + slot.offset, slot.bytes});
    } else {
      auto* base = static_cast<std::byte*>(layout.on_device[i] ? device
                                           : slot.in_output    ? output
                                                               : input);
      result.push_back({base + slot.offset, slot.bytes});
    }
  }
  return result;
}

void poison_gaps(const CasePlan& plan, const Layout& layout, void* input, std::uint64_t seed) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto& slot = layout.slots[i];
    if (slot.window != 0 && slot.in_output == 0)
      write_poison_to_parts(layout, slot, static_cast<std::byte*>(input), seed);
  }
}

void poison(const CasePlan& plan, const Layout& layout, void* output, std::uint64_t seed,
            void* device) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    auto* arena = static_cast<std::byte*>(layout.on_device[i] ? device : output);
    const auto& slot = layout.slots[i];
    if (slot.null || !slot.in_output) continue;
    if (slot.window != 0) {
      write_poison_to_parts(layout, slot, arena, seed);
      continue;
    }
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
    if (slot.window != 0) {
      if (std::string gap = find_written_gap(plan, layout, arena, i, seed); !gap.empty())
        return gap;
      continue;
    }
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

std::string find_touched(const CasePlan& plan, const Layout& layout, BufferViews first,
                         const void* output, std::uint64_t seed, const void* device) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto* arena = static_cast<const std::byte*>(layout.on_device[i] ? device : output);
    if (layout.slots[i].null || !layout.slots[i].in_output) continue;
    const std::optional<std::size_t> at =
        plan.buffers[i].role == Role::output
            ? find_written(plan, layout, arena, i, seed)
            : find_changed(i < first.size() ? first[i] : BufferView{}, layout.slots[i], arena);
    if (at)
      return fmt::format("{} was written at byte {} although the call had to fail",
                         plan.buffers[i].name, *at);
  }
  return {};
}

bool replace_unwritten(const CasePlan& plan, const Layout& layout, BufferViews outputs,
                       std::uint64_t seed) {
  bool any = false;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferPlan& buffer = plan.buffers[i];
    if (layout.slots[i].null || buffer.role != Role::output) continue;
    auto* const data = static_cast<std::byte*>(outputs[i].data);
    for (const Extent& part : extents(plan, layout, i)) {
      any |= replace_poison(buffer.dtype, data + part.in_buffer, part.end - part.begin, part.begin,
                            seed);
    }
  }
  return any;
}

}  // namespace assay::processes
