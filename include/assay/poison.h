// The contents of outputs that nobody wrote. Before a call the harness fills outputs with poison,
// which is NaN in every float format. A check that passed is repeated with a finite number wherever
// poison is left, so an output that must be NaN has to be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace assay {

// Each 16-bit half of poison has these bits: NaN as f16, bf16, f32 and f64, a small negative number
// as an integer. No arithmetic makes such a NaN.
inline constexpr std::uint16_t kPoison = 0xfff1;

// Each 16-bit half of that finite number, which is large in every float format.
inline constexpr std::uint16_t kUnwritten = 0x7b7b;

// Whether `bytes` bytes, an even number, are as the harness left them.
inline bool is_unwritten(const void* data, std::size_t bytes) {
  const auto* const p = static_cast<const std::byte*>(data);
  for (std::size_t i = 0; i + 1 < bytes; i += 2) {
    std::uint16_t half;
    std::memcpy(&half, p + i, 2);
    if ((half & kPoison) != kPoison && half != kUnwritten) return false;
  }
  return true;
}

}  // namespace assay
