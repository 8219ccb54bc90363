// Slot allocation by linear scan (Poletto and Sarkar, TOPLAS 1999) over live ranges found by
// walking backwards from each use (Appel and Palsberg, "Modern Compiler Implementation", 19.6):
// most virtual registers of nvcc's PTX live in one basic block, and only the others need a walk.
//
// A range is the span of instructions, in program order, from the first to the last at which the
// value is needed. Lanes in different fragments do not disturb each other: a handler writes only
// its own lanes, and each lane by itself follows a path of the control-flow graph.
#include <algorithm>
#include <limits>
#include <queue>

#include "sim/decode/function_draft.h"
#include "sim/math/lanes.h"

namespace assay::sim {
namespace {

// Positions: 2 i is when instruction i reads, 2 i + 1 when it writes.
struct Range {
  std::uint32_t begin = std::numeric_limits<std::uint32_t>::max(), end = 0;
  bool used() const { return begin <= end; }
  void include(std::uint32_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

// For each value, the blocks that read it before writing it, and the blocks that overwrite it in
// all lanes that get there.
struct BlockSets {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> exposed, killed;  // (value, block), sorted
};

class RangeFinder {
 public:
  RangeFinder(const FunctionDraft& draft, const std::vector<DraftBlock>& blocks)
      : draft_(draft), blocks_(blocks), ranges_(draft.values.size()) {
    predecessors_.resize(blocks.size());
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      for (const std::uint32_t s : blocks[b].successors) predecessors_[s].push_back(b);
    }
  }

  std::vector<Range> find(std::vector<std::uint32_t>& undefined) {
    scan_blocks();
    walk(undefined);
    return std::move(ranges_);
  }

 private:
  void scan_blocks() {
    const std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> killed_in(draft_.values.size(), never),
        exposed_in(draft_.values.size(), never);
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      const auto read = [&](std::uint32_t v, std::uint32_t at) {
        ranges_[v].include(at);
        if (killed_in[v] == b || exposed_in[v] == b) return;
        exposed_in[v] = b;
        sets_.exposed.emplace_back(v, b);
      };
      for (std::uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
        const DraftInstr& in = draft_.instrs[i];
        const DraftOperand* operands = draft_.operands.data() + in.first_operand;
        const std::uint32_t read_at = in.may_overlap ? 2 * i : 2 * i + 1;
        if (in.guard >= 0) read(static_cast<std::uint32_t>(in.guard), read_at);
        if (in.mask_value >= 0) read(static_cast<std::uint32_t>(in.mask_value), read_at);
        for (std::uint32_t o = 0; o < in.operands; ++o) {
          if (!operands[o].written) read(operands[o].value, read_at);
        }
        for (std::uint32_t o = 0; o < in.operands; ++o) {
          const std::uint32_t v = operands[o].value;
          if (!operands[o].written) continue;
          ranges_[v].include(2 * i + 1);
          // A guarded write keeps some lanes' old values.
          if (in.guard >= 0 && !draft_.values[v].temporary) {
            read(v, 2 * i + 1);
          } else if (killed_in[v] != b) {
            killed_in[v] = b;
            sets_.killed.emplace_back(v, b);
          }
        }
      }
    }
    std::sort(sets_.exposed.begin(), sets_.exposed.end());
    std::sort(sets_.killed.begin(), sets_.killed.end());
  }

  // Walks from the blocks that need a value back to those that define it.
  void walk(std::vector<std::uint32_t>& undefined) {
    const std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> live_in(blocks_.size(), never), kills(blocks_.size(), never), work;
    std::size_t k = 0;
    for (std::size_t e = 0; e < sets_.exposed.size();) {
      const std::uint32_t v = sets_.exposed[e].first;
      if (draft_.values[v].fixed) {
        ++e;
        continue;
      }
      for (; k < sets_.killed.size() && sets_.killed[k].first <= v; ++k) {
        if (sets_.killed[k].first == v) kills[sets_.killed[k].second] = v;
      }
      for (; e < sets_.exposed.size() && sets_.exposed[e].first == v; ++e) {
        live_in[sets_.exposed[e].second] = v;
        work.push_back(sets_.exposed[e].second);
      }
      while (!work.empty()) {
        const std::uint32_t b = work.back();
        work.pop_back();
        ranges_[v].include(2 * blocks_[b].begin);
        if (b == 0) undefined.push_back(v);
        for (const std::uint32_t p : predecessors_[b]) {
          ranges_[v].include(2 * blocks_[p].end - 1);
          if (kills[p] == v || live_in[p] == v) continue;
          live_in[p] = v;
          work.push_back(p);
        }
      }
    }
  }

  const FunctionDraft& draft_;
  const std::vector<DraftBlock>& blocks_;
  std::vector<Range> ranges_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  BlockSets sets_;
};

std::uint32_t bytes_of(ValueClass c) {
  switch (c) {
    case ValueClass::b32: return sizeof(Lanes32);
    case ValueClass::b64: return sizeof(Lanes64);
    case ValueClass::b128: return 2 * sizeof(Lanes64);
    default: return 0;
  }
}

// Slots of one class. The most recently freed slot is reused first, since it is the most likely to
// be in cache.
class Pool {
 public:
  std::uint32_t take(std::uint32_t from, std::uint32_t until) {
    while (!busy_.empty() && busy_.top().first < from) {
      free_.push_back(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t slot = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    busy_.emplace(until, slot);
    return slot;
  }
  std::uint32_t count() const { return count_; }

 private:
  using Busy = std::pair<std::uint32_t, std::uint32_t>;  // until, slot
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::vector<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

}  // namespace

FrameLayout lay_out_frame(const FunctionDraft& draft, const std::vector<DraftBlock>& blocks) {
  FrameLayout out;
  const std::vector<Range> ranges = RangeFinder(draft, blocks).find(out.undefined);
  std::vector<std::uint32_t> by_begin;
  for (std::uint32_t v = 0; v < draft.values.size(); ++v) {
    if (draft.values[v].fixed || ranges[v].used()) by_begin.push_back(v);
  }
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](std::uint32_t x, std::uint32_t y) {
    return ranges[x].begin < ranges[y].begin;
  });

  out.offset.assign(draft.values.size(), 0);
  std::uint32_t fixed_end = draft.rows_end;
  Pool pools[4];
  const auto pool_of = [&](const Value& v) -> Pool& {
    return pools[static_cast<std::size_t>(v.cls)];
  };
  for (const std::uint32_t v : by_begin) {
    const Value& value = draft.values[v];
    if (!value.fixed) continue;
    if (value.cls == ValueClass::predicate) {
      out.offset[v] = pool_of(value).take(0, std::numeric_limits<std::uint32_t>::max());
    } else {
      out.offset[v] = fixed_end;
      fixed_end += bytes_of(value.cls);
    }
  }
  for (const std::uint32_t v : by_begin) {
    const Value& value = draft.values[v];
    if (!value.fixed) out.offset[v] = pool_of(value).take(ranges[v].begin, ranges[v].end);
  }
  const std::uint32_t n32 = pools[1].count(), n64 = pools[2].count(), n128 = pools[3].count();
  const std::uint32_t begin64 = fixed_end, begin128 = begin64 + n64 * bytes_of(ValueClass::b64),
                      begin32 = begin128 + n128 * bytes_of(ValueClass::b128);
  const std::uint32_t begin[4] = {0, begin32, begin64, begin128};
  for (const std::uint32_t v : by_begin) {
    const Value& value = draft.values[v];
    if (value.fixed || value.cls == ValueClass::predicate) continue;
    out.offset[v] =
        begin[static_cast<std::size_t>(value.cls)] + out.offset[v] * bytes_of(value.cls);
  }
  out.frame_bytes = begin32 + n32 * bytes_of(ValueClass::b32);
  out.predicates = pools[0].count();
  out.register_words = n32 + 2 * n64 + 4 * n128;
  return out;
}

}  // namespace assay::sim
