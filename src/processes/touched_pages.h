// Pages of shared memory that a worker has to touch for a case, whatever its submission does.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "processes/layout.h"

namespace assay::processes {

struct ByteRange {
  std::size_t begin = 0, end = 0;  // end: one past the last byte
  auto operator<=>(const ByteRange&) const = default;
};

// Bytes of the pages that the ranges touch, counting each page once.
std::uint64_t bytes_of_pages(std::vector<ByteRange> ranges);

// For both arenas: header, descriptors and buffers; of sparse buffers only their parts.
std::uint64_t bytes_of_case(const CasePlan&, const Layout&);

// For one callback. `request` is in the output arena, `response` in the input arena.
std::uint64_t bytes_of_callback(ByteRange request, ByteRange response);

}  // namespace assay::processes
