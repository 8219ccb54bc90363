// What a call attends to: its rows, split into tasks, and which keys a row sees.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "storage.h"

namespace {

constexpr std::int64_t kTaskRows = 256;  // most rows of a task

// Some rows of one entry and one key head on some of its tiles (a page's keys each). Row r is query
// r / group of the entry and head r % group of the key head's group.
struct Task {
  std::int32_t entry, head;
  std::int64_t row, rows;
  std::int64_t sinks;       // tiles [0, sinks) come first,
  std::int64_t skipped;     // then those from sinks + skipped on
  std::int64_t begin, end;  // of that sequence
  std::int64_t length;      // keys that any row sees end here
  float* partial;  // NULL, or room for rows * (Dv + 2): the rows are shared with other tasks
  // NULL, or the entries whose rows these are, one after the other, in place of `entry` alone: they
  // have the pages of these tiles in common, and all rows see all of them.
  const std::vector<std::int32_t>* members = nullptr;
};

struct Job {
  Storage* cache;
  std::int32_t layer;
  const std::int32_t* slots;
  const std::int64_t* cu;
  const void* q;
  float scale;
  void* o;
  float* lse;
  // Of draft trees, else NULL: each row's parent and how many ancestors it has.
  const std::int32_t *parent = nullptr, *depth = nullptr;

  const kvc_config& c() const { return cache->c; }
  std::int64_t group() const { return c().n_q / c().n_kv; }
  const Layer& history(std::int32_t entry) const { return cache->layer_of(slots[entry], layer); }
  std::int64_t rows(std::int32_t entry) const { return (cu[entry + 1] - cu[entry]) * group(); }
  // The tokens before an entry's rows.
  std::int64_t prefix(std::int32_t entry) const {
    return history(entry).length - (cu[entry + 1] - cu[entry]);
  }
  std::int64_t position(const Task& t, std::int64_t row) const {
    if (t.members != nullptr) return t.length - 1;
    const std::int64_t i = (t.row + row) / group();
    return prefix(t.entry) + (parent == nullptr ? i : depth[cu[t.entry] + i]);
  }
  // Bounds of what a row and all that follow it in the task, or that come before it, have in
  // common: these see every key up to `lowest`, those none beyond `highest`, and windows begin
  // between the two. In a tree they are the same for all rows.
  std::int64_t lowest(const Task& t, std::int64_t row) const {
    const bool tree = parent != nullptr && t.members == nullptr;
    return tree ? prefix(t.entry) - 1 : position(t, row);
  }
  std::int64_t highest(const Task& t, std::int64_t row) const {
    const bool tree = parent != nullptr && t.members == nullptr;
    return tree ? history(t.entry).length - 1 : position(t, row);
  }
  bool sees(const Task& t, std::int64_t row, std::int64_t key, std::int64_t position) const {
    if (parent != nullptr && t.members == nullptr && key >= prefix(t.entry)) {
      std::int64_t i = (t.row + row) / group();
      const std::int32_t* mine = parent + cu[t.entry];
      const std::int64_t node = key - prefix(t.entry);
      while (i > node) i = mine[i];
      if (i != node) return false;
      key = prefix(t.entry) + depth[cu[t.entry] + node];
    }
    return key <= position && (c().window < 0 || key > position - c().window || key < c().sinks);
  }
  // Of q and o in rows of heads, and of lse.
  std::int64_t index(const Task& t, std::int64_t row) const {
    std::int64_t r = t.row + row;
    std::int32_t entry = t.entry;
    for (std::size_t i = 0; t.members != nullptr; ++i) {
      entry = (*t.members)[i];
      if (r < rows(entry)) break;
      r -= rows(entry);
    }
    return (cu[entry] + r / group()) * c().n_q + t.head * group() + r % group();
  }

  void load_query(const Task& t, std::int64_t row, float* to) const {
    const std::int64_t at = index(t, row) * c().D;
    for (std::int64_t d = 0; d < c().D; ++d) {
      const float x = c().dtype == ASSAY_BF16 ? widen(static_cast<const std::uint16_t*>(q)[at + d])
                                              : static_cast<const float*>(q)[at + d];
      to[d] = x * scale;
    }
  }

  // sum is relative to max; values are not divided yet.
  void finish(std::int64_t index, float max, float sum, const float* values,
              std::int64_t stride) const {
    const float inverse = sum > 0 ? 1 / sum : 0;
    for (std::int64_t d = 0; d < c().Dv; ++d) {
      const float x = sum > 0 ? values[d * stride] * inverse : 0;
      if (c().dtype == ASSAY_BF16) {
        static_cast<std::uint16_t*>(o)[index * c().Dv + d] = narrow(x);
      } else {
        static_cast<float*>(o)[index * c().Dv + d] = x;
      }
    }
    if (lse != nullptr) lse[index] = sum > 0 ? max + std::log(sum) : -kInf;
  }

  // Hands one row over: to the outputs, or to the merge.
  void deliver(const Task& t, std::int64_t row, float max, float sum, const float* values,
               std::int64_t stride) const {
    if (t.partial == nullptr) return finish(index(t, row), max, sum, values, stride);
    float* p = t.partial + row * (c().Dv + 2);
    p[0] = max;
    p[1] = sum;
    for (std::int64_t d = 0; d < c().Dv; ++d) p[2 + d] = values[d * stride];
  }
};

}  // namespace
