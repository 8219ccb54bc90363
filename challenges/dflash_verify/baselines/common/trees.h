// Which arguments describe trees.
#pragma once

#include <algorithm>
#include <cstdint>

namespace {

bool valid_tree(std::int64_t n, const std::int32_t* parent) {
  if (n > 0 && parent == nullptr) return false;
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent[i] < -1 || parent[i] >= i) return false;
  }
  return true;
}

bool valid_cu(std::int32_t B, const std::int64_t* cu) {
  if (B < 0) return false;
  if (B == 0) return true;
  if (cu == nullptr || cu[0] != 0) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] < cu[b]) return false;
  }
  return true;
}

bool valid_trees(std::int32_t B, const std::int64_t* cu, const std::int32_t* parent) {
  if (!valid_cu(B, cu)) return false;
  if (B > 0 && cu[B] > 0 && parent == nullptr) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] > cu[b] && !valid_tree(cu[b + 1] - cu[b], parent + cu[b])) return false;
  }
  return true;
}

bool valid_prefixes(std::int32_t B, const std::int64_t* P) {
  if (B > 0 && P == nullptr) return false;
  return std::all_of(P, P + B, [](std::int64_t p) { return p >= 1; });
}

bool has_null(std::int64_t B, const void* const* pointers) {
  return B > 0 &&
         (pointers == nullptr || std::find(pointers, pointers + B, nullptr) != pointers + B);
}

}  // namespace
