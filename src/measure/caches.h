// The processor's caches, and memory that they cannot hold.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace assay {

// The last-level cache that a core shares, 0 if unknown. Prefers the kernel's number to the C
// library's, which sums over the whole processor even if each die has its own cache.
std::int64_t last_level_cache_bytes();

// Calls body with memory of which each half is four times as large as the last-level cache, but at
// least 64 and at most 256 MiB, for one caller at a time. Its contents are arbitrary. It is made
// once, by all cores, and kept: its pages are resident when body runs. Throws std::bad_alloc.
void with_memory_beyond_caches(const std::function<void(std::span<std::uint64_t>)>& body);

// Reads and writes memory twice as large as the last-level cache, but at least 32 and at most
// 160 MiB, on all cores. Throws std::bad_alloc.
void flush_caches();

}  // namespace assay
