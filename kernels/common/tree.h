// A tree of tokens as intervals: descendants of a node are an interval of the depth-first order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

// A node's place in the depth-first order of its tree, and how many nodes its subtree has.
struct Span {
  std::int32_t order, size;
  __host__ __device__ bool holds(Span node) const {
    return static_cast<std::uint32_t>(node.order - order) < static_cast<std::uint32_t>(size);
  }
};

// Parents come before their children: sizes are summed from the back, places given from the front.
void add_spans(std::int64_t n, const std::int32_t* parent, std::vector<Span>& spans) {
  const std::size_t first = spans.size();
  spans.resize(first + static_cast<std::size_t>(n), {0, 1});
  Span* span = spans.data() + first;
  for (std::int64_t i = n - 1; i >= 0; --i) {
    if (parent[i] >= 0) span[parent[i]].size += span[i].size;
  }
  std::vector<std::int32_t> next(static_cast<std::size_t>(n) + 1);  // of the children of i - 1
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t& place = next[static_cast<std::size_t>(parent[i] + 1)];
    span[i].order = place;
    place += span[i].size;
    next[static_cast<std::size_t>(i) + 1] = span[i].order + 1;
  }
}

}  // namespace
