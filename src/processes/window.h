// Opens the window of a sparse buffer, in the worker as in the harness: address space that cannot
// be accessed, into which pages of an arena are mapped once more. No page exists for the rest.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "wire/worker.h"

namespace assay::processes {

// `arena` is a shared mapping; what may be done to it may be done to the parts. Null where the
// kernel refuses. Closed by munmap(result, window.bytes).
inline std::byte* open_window(const wire::Window& window, const wire::WindowPart* all_parts,
                              std::byte* arena) {
  void* const base =
      ::mmap(nullptr, window.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  for (std::size_t i = 0; i < window.parts; ++i) {
    const wire::WindowPart& part = all_parts[window.first_part + i];
    void* const at = static_cast<std::byte*>(base) + part.at;
    // An old size of 0 leaves the old mapping and makes another of the same pages.
    const void* const mapped =
        ::mremap(arena + part.offset, 0, part.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    if (mapped == at) continue;
    ::munmap(base, window.bytes);
    return nullptr;
  }
  return static_cast<std::byte*>(base);
}

}  // namespace assay::processes
