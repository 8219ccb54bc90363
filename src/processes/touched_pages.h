// Pages of the shared memory that a worker has to touch for a case, whatever its submission does.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "processes/layout.h"

namespace assay::processes {

struct ByteRange {
  std::size_t begin = 0, end = 0;  // behind the last byte
  auto operator<=>(const ByteRange&) const = default;
};

// Bytes of the pages that the ranges touch, each page once.
std::uint64_t bytes_of_pages(std::vector<ByteRange> ranges);

// Of both arenas: header, descriptors and buffers; of sparse buffers their parts alone.
std::uint64_t bytes_of_case(const CasePlan&, const Layout&);

// Of one callback. `request` is in the output arena and `response` in the input arena.
std::uint64_t bytes_of_callback(ByteRange request, ByteRange response);

}  // namespace assay::processes
