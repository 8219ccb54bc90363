// Scratch that an attack holds where nobody looks, window by window.
#pragma once

#include <cstddef>
#include <cstdint>

// Fills the pool, then reads it back: whether it does hold what was written. `leave(window)` is
// called when a window has been filled or read.
template <class Leave>
bool use_pool(char* pool, std::size_t bytes, std::size_t window_bytes, Leave leave) {
  bool kept = true;
  for (const bool writes : {true, false}) {
    for (std::size_t at = 0; at < bytes; at += window_bytes) {
      auto* window = reinterpret_cast<std::uint64_t*>(pool + at);
      for (std::size_t i = 0; i < window_bytes / 8; ++i) {
        const std::uint64_t value = (at + i) * 0x9e3779b97f4a7c15u;
        if (writes) window[i] = value;
        kept = kept && window[i] == value;
      }
      leave(pool + at);
    }
  }
  return kept;
}
