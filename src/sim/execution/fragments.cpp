#include "sim/execution/fragments.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "sim/execution/cluster_run.h"

namespace assay::sim {
namespace {

using State = Fragment::State;

// The usual one is the last.
void remove(WarpRun& w, Fragment& f) {
  Fragment& last = w.fragments[--w.fragment_count];
  if (&f != &last) f = last;
}

const Block& block_of(const Fragment& f) { return f.frame->code->blocks[f.block]; }

// The member mask that each lane of a waiting fragment names.
std::uint32_t member_mask(const Fragment& f, unsigned lane) {
  const std::uint32_t offset = block_of(f).mask_offset;
  if (offset == kFullWarp) return ~0u;
  return reinterpret_cast<const Lanes32*>(f.frame->regs.data() + offset)->v[lane];
}

// The lanes among `lanes` that name the same mask as lane `first`.
std::uint32_t group_of(const Fragment& f, std::uint32_t lanes, unsigned first) {
  const std::uint32_t offset = block_of(f).mask_offset;
  if (offset == kFullWarp) return lanes;
  const auto& masks = *reinterpret_cast<const Lanes32*>(f.frame->regs.data() + offset);
  std::uint32_t group = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    group |= static_cast<std::uint32_t>(masks.v[l] == masks.v[first]) << l;
  }
  return group & lanes;
}

// The lanes with these members that wait at the instruction of `f` (for bar.warp.sync: at any).
std::uint32_t present_lanes(const WarpRun& w, const Fragment& f, std::uint32_t members) {
  std::uint32_t present = 0;
  for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
    const Fragment& other = w.fragments[i];
    if (other.state != State::at_rendezvous) continue;
    if (!other.same_place(f) && !(block_of(f).any_place && block_of(other).any_place)) continue;
    for (std::uint32_t rest = other.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (member_mask(other, lane) == members) present |= 1u << lane;
    }
  }
  return present;
}

void order_memory(WarpRun& w, std::uint32_t lanes) {
  if (w.block->shared.size() != 0) w.block->checker.warp_sync(w.index, lanes);
}

// Whether these lanes are all that their masks name: cooperative groups' tiles, side by side.
bool groups_complete(WarpRun& w, const Fragment& f, std::uint32_t lanes) {
  for (std::uint32_t rest = lanes; rest != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t group = group_of(f, rest, first);
    if ((member_mask(f, first) & w.live) != group) return false;
    rest &= ~group;
  }
  for (std::uint32_t rest = lanes; rest != 0;) {
    const std::uint32_t group = group_of(f, rest, static_cast<unsigned>(std::countr_zero(rest)));
    order_memory(w, group);
    rest &= ~group;
  }
  return true;
}

void report_outsider(WarpRun& w, const Fragment& f, std::uint32_t lanes) {
  RawFinding finding;
  finding.kind = FindingKind::warp_sync;
  finding.pc = f.frame->code->first_pc + block_of(f).begin;
  finding.block = w.block->index;
  finding.thread = w.index * kWarpSize + static_cast<std::uint32_t>(std::countr_zero(lanes));
  w.block->checker.report(finding);
}

void merge_waiting(WarpRun& w) {
  for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
    Fragment& f = w.fragments[i];
    if (f.state != State::at_rendezvous) continue;
    for (std::uint32_t j = w.fragment_count; j-- > i + 1;) {
      Fragment& other = w.fragments[j];
      if (other.state != State::at_rendezvous || !other.same_place(f)) continue;
      f.mask |= other.mask;
      remove(w, other);
    }
  }
}

}  // namespace

Fragment* select_fragment(WarpRun& w) {
  Fragment* best = nullptr;
  std::uint64_t best_key = 0;
  w.limit = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t i = 0; i < w.fragment_count;) {
    Fragment& f = w.fragments[i];
    if (f.state != State::ready || f.yielded) {
      ++i;
      continue;
    }
    const std::uint64_t key = f.key();
    if (best != nullptr && f.same_place(*best) && !f.passed && !best->passed) {
      best->mask |= f.mask;
      best->polls = std::max(best->polls, f.polls);
      remove(w, f);
      continue;
    }
    if (best == nullptr || key < best_key) {
      if (best != nullptr) w.limit = std::min(w.limit, best_key);
      best = &f;
      best_key = key;
    } else {
      w.limit = std::min(w.limit, key);
    }
    ++i;
  }
  return best;
}

void split_off(WarpRun& w, Fragment& f, std::uint32_t lanes, std::uint32_t block) {
  Fragment& other = w.fragments[w.fragment_count++];
  other = f;
  other.mask = lanes;
  other.block = block;
  other.state = State::ready;
  other.passed = other.yielded = false;
  f.mask &= ~lanes;
  w.limit = std::min(w.limit, other.key());
}

void diverge(WarpRun& w, Fragment& f, std::uint32_t taken, std::uint32_t target,
             std::uint32_t next) {
  if (target < next) {
    split_off(w, f, f.mask & ~taken, next);
    f.block = target;
  } else {
    split_off(w, f, taken, target);
    f.block = next;
  }
}

bool exit_lanes(WarpRun& w, Fragment& f, std::uint32_t lanes) {
  w.live &= ~lanes;
  for (Frame* frame = f.frame; frame != nullptr; frame = frame->parent) {
    leave_frame(w, *frame, lanes);
  }
  f.mask &= ~lanes;
  const bool gone = f.mask == 0;
  if (gone) remove(w, f);
  w.block->barriers.lanes_exited(*w.block);
  if (w.block->cluster != nullptr) w.block->cluster->lanes_exited(*w.block);
  return gone;
}

bool meet(WarpRun& w, Fragment& f, const Block& block) {
  const Code& code = *f.frame->code;
  const std::uint32_t lanes = guarded(w, code.code[block.begin], f.mask);
  if (lanes == 0) return true;
  if (lanes == f.mask) {
    // Usually all lanes are here and name all lanes.
    std::uint32_t members = ~0u;
    bool complete = true;
    if (block.mask_offset != kFullWarp) {
      members = w.r32(block.mask_offset).v[std::countr_zero(lanes)];
      complete = group_of(f, lanes, static_cast<unsigned>(std::countr_zero(lanes))) == lanes;
    }
    if (complete && (members & w.live) == lanes) {
      order_memory(w, lanes);
      return true;
    }
    if (groups_complete(w, f, lanes)) return true;
  } else {
    split_off(w, f, f.mask & ~lanes, f.block + 1);
  }
  f.state = State::at_rendezvous;
  return false;
}

bool resolve_meetings(WarpRun& w) {
  merge_waiting(w);
  // First determines who may continue, then releases them, because each one's presence is what lets
  // the others continue.
  struct Release {
    std::uint32_t fragment, lanes;
  };
  std::array<Release, kWarpSize> releases;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
    const Fragment& f = w.fragments[i];
    if (f.state != State::at_rendezvous) continue;
    for (std::uint32_t rest = f.mask; rest != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(rest));
      const std::uint32_t group = group_of(f, rest, first), members = member_mask(f, first);
      rest &= ~group;
      const std::uint32_t present = present_lanes(w, f, members);
      if ((members & w.live & ~present) != 0) continue;
      if ((group & ~members) != 0) report_outsider(w, f, group & ~members);
      order_memory(w, present);
      releases[count++] = {i, group};
    }
  }
  for (std::size_t r = 0; r < count; ++r) {
    Fragment* f = &w.fragments[releases[r].fragment];
    if (releases[r].lanes != f->mask) {
      split_off(w, *f, releases[r].lanes, f->block);
      f = &w.fragments[w.fragment_count - 1];
    }
    f->state = State::ready;
    f->passed = true;
  }
  return count != 0;
}

std::uint32_t missing_lanes(WarpRun& w, const Fragment& f) {
  std::uint32_t missing = 0;
  for (std::uint32_t rest = f.mask; rest != 0; rest &= rest - 1) {
    const std::uint32_t members = member_mask(f, static_cast<unsigned>(std::countr_zero(rest)));
    missing |= members & w.live & ~present_lanes(w, f, members);
  }
  return missing;
}

}  // namespace assay::sim
