// Opens the window of a sparse buffer, in the worker as in the harness: inaccessible address space
// into which pages of an arena are mapped a second time. The rest has no pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "wire/worker.h"

namespace assay::processes {

// `arena` is a shared mapping; the parts have its access rights. Null if the kernel refuses. Close
// it with munmap(result, window.bytes).
inline std::byte* open_window(const wire::Window& window, const wire::WindowPart* all_parts,
                              std::byte* arena) {
  void* const base =
      ::mmap(nullptr, window.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  for (std::size_t i = 0; i < window.parts; ++i) {
    const wire::WindowPart& part = all_parts[window.first_part + i];
    void* const at = static_cast<std::byte*>(base) + part.at;
    // An old size of 0 keeps the old mapping and makes a second one of the same pages.
    const void* const mapped =
        ::mremap(arena + part.offset, 0, part.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    if (mapped == at) continue;
    ::munmap(base, window.bytes);
    return nullptr;
  }
  return static_cast<std::byte*>(base);
}

}  // namespace assay::processes
