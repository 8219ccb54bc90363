#include "sim/memory/shared_races.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/memory/shared_entry.h"

namespace assay::sim {
using namespace shared_entry;

SharedRaces::SharedRaces(std::uint32_t bytes, std::uint32_t warps, const std::byte* data)
    : bytes_((bytes + 31) / 32 * 32),
      warps_count_(warps),
      data_(data),
      writes_(bytes_ >> unit_shift_),
      lanes_(warps),
      time_(warps),
      last_act_(warps),
      last_meeting_(warps) {
  readers_.unit.resize(writes_.size());
  restart();
}

// Resets time. Also happens if time runs out within a block, after 2^26 meetings with accesses
// between them: races across that moment are missed.
void SharedRaces::restart() {
  std::fill(writes_.begin(), writes_.end(), 0);
  for (Holders* h : {&readers_, &atomics_}) {
    std::fill(h->unit.begin(), h->unit.end(), 0);
    if (h->by_warp.bytes() != 0) h->by_warp.clear(0, h->by_warp.bytes());
  }
  now_ = 0;
  begin_block();
}

void SharedRaces::begin_block() {
  if (now_ > kMaxTime / 2) return restart();
  warps_.reset(now_);
  for (auto& l : lanes_) l.reset(now_);
  std::fill(last_act_.begin(), last_act_.end(), now_);
  std::fill(last_meeting_.begin(), last_meeting_.end(), now_);
  std::fill(time_.begin(), time_.end(), now_ + 1);
  ++now_;
  arrivals_ = 0;
  mbarriers_.clear();
  flags_.clear();
  fenced_ = 0;
}

void SharedRaces::advance_time() {
  if (++now_ >= kMaxTime) restart();
}

void SharedRaces::barrier(std::uint32_t warps, std::uint32_t barrier) {
  const bool arrivals = ((arrivals_ >> barrier) & 1u) != 0;
  warps_.meet(warps, now_, arrivals ? &arrived_[barrier] : nullptr);
  arrivals_ &= ~(1u << barrier);
  // Includes warps that did nothing yet: their first accesses must not seem known.
  const std::uint32_t later = warps | ~warps_.acted();
  const std::uint32_t before = now_;
  advance_time();
  if (now_ < before) return;
  for (std::uint32_t w = 0; w < warps_count_; ++w) {
    if (((later >> w) & 1u) != 0) time_[w] = now_;
    if (((warps >> w) & 1u) == 0 || last_act_[w] <= last_meeting_[w]) continue;
    lanes_[w].reset(before);
    last_meeting_[w] = before;
  }
}

void SharedRaces::arrive(std::uint32_t warp, std::uint32_t barrier) {
  if (((arrivals_ >> barrier) & 1u) == 0) arrived_[barrier] = {};
  arrivals_ |= 1u << barrier;
  warps_.tell(warp, arrived_[barrier]);
  arrived_[barrier][warp] = now_;
  const std::uint32_t before = now_;
  advance_time();
  if (now_ > before) time_[warp] = now_;
}

void SharedRaces::warp_sync(std::uint32_t warp, std::uint32_t lanes) {
  // What some lane does not know happened up to `last`.
  const std::uint32_t last = last_act_[warp];
  if (last <= last_meeting_[warp]) return;
  lanes_[warp].meet(lanes, last);
  if (lanes == ~std::uint32_t{0}) last_meeting_[warp] = last;
  if (last < time_[warp]) return;
  advance_time();
  if (now_ > last) time_[warp] = now_;
}

// Joins what the warp knows and did into `to`, but not what it does next.
void SharedRaces::publish(std::uint32_t warp, GroupOrder::Row& to) {
  warps_.tell(warp, to);
  if (last_act_[warp] < time_[warp]) {
    to[warp] = std::max(to[warp], time_[warp] - 1);
    return;
  }
  to[warp] = now_;
  const std::uint32_t before = now_;
  advance_time();  // clears `to` if time is reset
  if (now_ > before) time_[warp] = now_;
}

void SharedRaces::learn(std::uint32_t warp, const GroupOrder::Row& from) {
  warps_.learn(warp, from);
  // The first accesses of the others must not seem known.
  for (std::uint32_t w = 0; w < warps_count_; ++w) {
    if (((warps_.acted() >> w) & 1u) == 0) time_[w] = now_;
  }
}

void SharedRaces::mbarrier_arrive(std::uint32_t warp, std::uint64_t object) {
  publish(warp, mbarriers_[object].arrived);
}

void SharedRaces::mbarrier_complete(std::uint64_t object) {
  Mbarrier& m = mbarriers_[object];
  m.complete = m.arrived;
}

void SharedRaces::mbarrier_wait(std::uint32_t warp, std::uint64_t object) {
  if (const auto m = mbarriers_.find(object); m != mbarriers_.end()) {
    learn(warp, m->second.complete);
  }
}

void SharedRaces::mbarrier_init(std::uint64_t object) { mbarriers_.erase(object); }

void SharedRaces::fence(std::uint32_t warp) {
  at_fence_[warp] = {};
  fenced_ |= 1u << warp;
  publish(warp, at_fence_[warp]);
}

void SharedRaces::release(std::uint32_t warp, std::uint64_t address) {
  GroupOrder::Row& flag = flags_[address];
  for (unsigned m = 0; m < GroupOrder::kMembers; ++m) {
    flag[m] = std::max(flag[m], at_fence_[warp][m]);
  }
}

void SharedRaces::acquire(std::uint32_t warp, std::uint64_t address) {
  if (const auto flag = flags_.find(address); flag != flags_.end()) learn(warp, flag->second);
}

void SharedRaces::make_holders(Holders& h) {
  h.unit.resize(writes_.size());
  h.used = true;
}

// Switches to smaller units, which inherit what is known of the unit that contained them.
void SharedRaces::refine(unsigned unit_shift) {
  const std::size_t parts = std::size_t{1} << (unit_shift_ - unit_shift);
  const auto split = [&](std::vector<Entry>& units) {
    std::vector<Entry> result(units.size() * parts);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = units[i / parts];
    units = std::move(result);
  };
  for (Holders* h : {&readers_, &atomics_}) {
    const std::size_t units = h->unit.size();
    split(h->unit);
    if (h->by_warp.bytes() == 0) continue;
    const LazyMap old = std::move(h->by_warp);
    h->by_warp = LazyMap(old.bytes() * parts, "the race check of shared memory");
    for (std::size_t i = 0; i < units * warps_count_; ++i) {
      const Entry e = old.as<Entry>()[i];
      if (e != 0) std::fill_n(h->by_warp.as<Entry>() + i * parts, parts, e);
    }
  }
  split(writes_);
  unit_shift_ = unit_shift;
}

// Whether, and in which lanes, a thread of `e` and one of the run are unordered.
std::optional<SharedRaces::Pair> SharedRaces::unordered(Entry e, const Run& r) const {
  const std::uint32_t time = time_of(e), other = warp_of(e);
  if (warps_.knows(warp_, other, time)) return std::nullopt;
  if (other != warp_) return Pair{r.first, first_of(e)};
  for (const std::uint32_t lane : {r.first, r.last}) {
    for (const std::uint32_t m : {first_of(e), last_of(e)}) {
      if (lane != m && !lanes_[warp_].knows(lane, m, time)) return Pair{lane, m};
    }
  }
  return std::nullopt;
}

namespace {

// Whether separate lanes read the same address, as far as the first lane tells.
bool repeats(const WarpAccess& a) {
  const std::uint32_t first = a.mask & -a.mask;
  const std::uint64_t address = a.address[std::countr_zero(a.mask)];
  return a.kind == AccessKind::load && (lanes_at(a, a.mask, address) & ~(first | first << 1)) != 0;
}

}  // namespace

// Records that lanes of the warp act now.
void SharedRaces::act(std::uint32_t warp, std::uint32_t lanes) {
  warp_ = warp;
  warps_.act(1u << warp);
  lanes_[warp].act(lanes);
  last_act_[warp] = time_[warp];
  floor_limit_ = limit(warps_.floor(warp));
  lane_limit_ = limit(std::max(lanes_[warp].common(), last_meeting_[warp]));
}

// An entry of the acting warp, without lanes.
SharedRaces::Entry SharedRaces::entry_now(std::uint32_t pc) const {
  return (Entry{time_[warp_]} << kTimeShift) | (Entry{std::min(pc, kMaxEntryPc)} << kEntryPcShift) |
         (Entry{warp_} << kWarpShift);
}

const std::vector<SharedRaces::Conflict>& SharedRaces::access(const WarpAccess& a,
                                                              const LanePattern& p,
                                                              const LaneShape* shape) {
  conflicts_.clear();
  const auto size = static_cast<unsigned>(std::countr_zero(a.bytes));
  if (size < unit_shift_) refine(size);
  if (is_read_modify_write(a.kind) || a.kind == AccessKind::atomic_store) {
    if (!atomics_.used) make_holders(atomics_);
  }
  act(a.warp, a.mask);
  const bool flag = a.kind == AccessKind::atomic_load || a.kind == AccessKind::atomic_store;
  const Entry own = entry_now(a.pc) | (flag ? kFlag : 0);
  if (p.contiguous && contiguous(a, p, own)) return conflicts_;
  if (shape != nullptr && a.kind == AccessKind::load && load_shape(*shape, p, own)) {
    return conflicts_;
  }
  // Not if neighbours share an address: such lanes are handled together below.
  const bool single_units = size == unit_shift_ && !p.uniform && !p.contiguous &&
                            a.address[0] != a.address[1] && a.address[30] != a.address[31];
  if (single_units && !atomics_.used &&
      (a.kind == AccessKind::load || (a.kind == AccessKind::store && p.distinct)) &&
      scattered(a, p, own)) {
    return conflicts_;
  }
  const auto run = [&](std::uint32_t first, std::uint32_t last, std::uint64_t address) {
    const std::size_t begin = address >> unit_shift_;
    single(a, {first, last, begin, begin + (std::size_t{a.bytes} >> unit_shift_),
               own | lanes(first, last)});
  };
  if (p.uniform) {
    run(p.first, last_lane(a.mask), p.low);
  } else if ((a.kind == AccessKind::store && !p.distinct) || repeats(a)) {
    // Lanes of one store do not conflict here, so those with the same address must be handled
    // together. For other accesses that saves work.
    for_addresses(a, [&](std::uint32_t lanes_there, std::uint64_t address) {
      run(static_cast<std::uint32_t>(std::countr_zero(lanes_there)), last_lane(lanes_there),
          address);
    });
  } else {
    for_runs(a, run);
  }
  return conflicts_;
}

// Whether the unit already holds what the lanes of a store write there.
bool SharedRaces::holds_value(const WarpAccess& a, const Run& r, std::size_t unit) const {
  if (a.kind != AccessKind::store || a.value == nullptr || data_ == nullptr) return false;
  const std::size_t size = std::size_t{1} << unit_shift_, at = (unit - r.begin) * size;
  const std::size_t lane = a.lane < kLanes ? 0 : r.first;
  const auto* const values = static_cast<const std::byte*>(a.value);
  return std::memcmp(values + lane * a.bytes + at, data_ + unit * size, size) == 0;
}

void SharedRaces::check(const WarpAccess& a, const Run& r, std::size_t unit, Entry e,
                        AccessKind plain, AccessKind flagged) {
  const auto pair = unordered(e, r);
  if (!pair) return;
  // A lane may read what it wrote together with others, if they wrote the same value.
  if (plain == AccessKind::store && !writes(a.kind) && warp_of(e) == warp_ &&
      first_of(e) <= r.first && r.last <= last_of(e)) {
    return;
  }
  Conflict c;
  c.lane = pair->lane;
  c.address = a.address[c.lane];
  c.other_pc = static_cast<std::uint32_t>(e >> kEntryPcShift) & kMaxEntryPc;
  c.other_thread = warp_of(e) * kLanes + pair->other;
  c.other_access = (e & kFlag) != 0 ? flagged : plain;
  c.equal = plain == AccessKind::store && holds_value(a, r, unit);
  // All units of a run have the same history, except for what they hold.
  for (Conflict& known : conflicts_) {
    if (known.address != c.address || known.other_access != c.other_access) continue;
    known.equal &= c.equal;
    return;
  }
  conflicts_.push_back(c);
}

void SharedRaces::check_holders(const WarpAccess& a, const Run& r, const Holders& h,
                                std::size_t unit, bool readers) {
  const Entry e = h.unit[unit];
  if (e < floor_limit_) return;
  const AccessKind plain = readers ? AccessKind::load : AccessKind::atomic;
  const AccessKind flagged = readers ? AccessKind::atomic_load : AccessKind::atomic_store;
  const auto one = [&](Entry held) {
    const bool both_atomic = readers && is_atomic(a.kind) && (held & kFlag) != 0;
    if (!both_atomic) check(a, r, unit, held, plain, flagged);
  };
  if ((e & kShared) == 0) return one(e);
  for (std::uint32_t w = 0; w < warps_count_; ++w) one(h.of_warp(w)[unit]);
}

void SharedRaces::add_holder(Entry own, Holders& h, std::size_t unit) {
  Entry& e = h.unit[unit];
  // The same warp: what it did before is ordered, or its lanes are joined. A plain read takes
  // precedence over an atomic one.
  const auto replace = [&](Entry& held) {
    const bool join = time_of(held) == time_of(own);
    const bool alike = &h == &atomics_ || ((held ^ own) & kFlag) == 0;
    held = join && alike ? with_lanes_of(own, held) : own;
  };
  const bool past = e < floor_limit_;
  if (!past && (e & kShared) != 0) {
    Entry& mine = h.of_warp(warp_)[unit];
    replace(mine);
    e = std::max(e, (own & ~kThreadMask) | kShared);
  } else if (!past && warp_of(e) == warp_) {
    replace(e);
  } else if (past || warps_.knows(warp_, warp_of(e), time_of(e))) {
    e = own;
  } else {
    if (h.by_warp.bytes() == 0) {
      h.by_warp =
          LazyMap(h.unit.size() * warps_count_ * sizeof(Entry), "the race check of shared memory");
    }
    h.of_warp(warp_of(e))[unit] = e;
    h.of_warp(warp_)[unit] = own;
    e = std::max(e, own) | kShared;
  }
}

bool SharedRaces::load_uniform(std::uint32_t warp, std::uint32_t pc, std::uint64_t address,
                               std::uint32_t bytes) {
  if (atomics_.used || bytes >> unit_shift_ == 0) return false;
  act(warp, ~std::uint32_t{0});
  const Entry floor = floor_limit_, own = entry_now(pc) | lanes(0, kLanes - 1);
  const std::size_t begin = address >> unit_shift_, end = (address + bytes) >> unit_shift_;
  const auto mine = [&](Entry held) { return ((held ^ own) & (kWarpMask | kShared)) == 0; };
  for (std::size_t u = begin; u < end; ++u) {
    const Entry held = readers_.unit[u];
    if (writes_[u] >= floor || !(held < floor || (held & kShared) != 0 || mine(held))) return false;
  }
  // With all lanes in it, the new entry makes the warp's previous one redundant: add_holder().
  for (std::size_t u = begin; u < end; ++u) {
    Entry& held = readers_.unit[u];
    if (held < floor || mine(held)) {
      held = own;
    } else {
      readers_.of_warp(warp)[u] = own;
      held = std::max(held, (own & ~kThreadMask) | kShared);
    }
  }
  return true;
}

const std::vector<SharedRaces::Conflict>& SharedRaces::range(const WarpAccess& a) {
  conflicts_.clear();
  act(a.warp, a.mask);
  const std::uint64_t begin = a.address[a.lane], end = begin + a.bytes;
  single(a, {a.lane, a.lane, begin >> unit_shift_, end >> unit_shift_,
             entry_now(a.pc) | lanes(a.lane, a.lane)});
  return conflicts_;
}

// Handles the lanes of one address.
void SharedRaces::single(const WarpAccess& a, const Run& r) {
  const Entry floor = floor_limit_;
  for (std::size_t u = r.begin; u < r.end; ++u) {
    if (writes_[u] >= floor) check(a, r, u, writes_[u], AccessKind::store, AccessKind::store);
    if (writes(a.kind)) check_holders(a, r, readers_, u, true);
    if (atomics_.used && !is_atomic(a.kind)) check_holders(a, r, atomics_, u, false);
    switch (a.kind) {
      case AccessKind::load:
        if (Entry& e = readers_.unit[u]; e < floor) {
          e = r.entry;
        } else {
          add_holder(r.entry, readers_, u);
        }
        break;
      case AccessKind::store: writes_[u] = r.entry; break;
      case AccessKind::atomic_load:
        // Unless that would hide a plain read.
        if (const Entry e = readers_.unit[u]; e < floor || (e & (kFlag | kShared)) == kFlag) {
          add_holder(r.entry, readers_, u);
        }
        break;
      default: add_holder(r.entry, atomics_, u);
    }
  }
}

}  // namespace assay::sim
