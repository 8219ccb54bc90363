// Which keys a row sees.
#pragma once

#include <cstdint>

#include "abi.h"

namespace {

// What a row sees. Examples of mistakes replace parts of it.
struct Rules {
  // Of row i of `rows` on top of a history that ends with them.
  static std::int64_t position(std::int64_t length, std::int64_t rows, std::int64_t i) {
    return length - rows + i;
  }
  static std::int64_t key_head(const kvc_config& c, std::int64_t query_head) {
    return query_head / (c.n_q / c.n_kv);
  }
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return key <= position && (c.window < 0 || key > position - c.window || key < c.sinks);
  }
  // Of two nodes of a tree.
  static bool is_ancestor_or_self(const std::int32_t* parent, std::int64_t node, std::int64_t row) {
    while (row > node) row = parent[row];
    return row == node;
  }
  static std::int64_t position_of_node(const std::int32_t* parent, std::int64_t prefix,
                                       std::int64_t node) {
    while ((node = parent[node]) >= 0) ++prefix;
    return prefix;
  }
  // What is subtracted from the scores before they go into the exponential.
  static float subtracted(float largest_score) { return largest_score; }
};

// Which keys a node of a tree sees.
template <class R>
auto in_tree(const kvc_config& c, std::int64_t prefix, const std::int32_t* parent,
             std::int64_t row) {
  const std::int64_t position = R::position_of_node(parent, prefix, row);
  return [&c, prefix, parent, row, position](std::int64_t key) {
    const std::int64_t node = key - prefix;
    if (node < 0) return R::visible(c, key, position);
    return R::is_ancestor_or_self(parent, node, row) &&
           R::visible(c, R::position_of_node(parent, prefix, node), position);
  };
}

}  // namespace
