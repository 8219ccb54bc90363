// Finds accesses that conflict with nothing, which are most, with vector operations.
#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/memory/any_bits.h"
#include "sim/memory/shared_entry.h"
#include "sim/memory/shared_races.h"

namespace assay::sim {

using namespace shared_entry;

namespace {

// Calls f(i, entry) for consecutive units, 2^shift per lane; `own` is the entry of the first. One
// unit per lane is the usual case, for which compilers generate straight-line code.
template <class F>
void for_units(std::size_t count, Entry own, unsigned shift, F&& f) {
  if (shift == 0 && count == kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) f(i, own + i * kLane);
  } else {
    for (std::size_t i = 0; i < count; ++i) f(i, own + (i >> shift) * kLane);
  }
}

// The entries of several units in one vector.
template <std::size_t kCount>
using Units [[gnu::vector_size(kCount * sizeof(Entry))]] = Entry;

template <class T>
T get(const Entry* from) {
  T units;
  std::memcpy(&units, from, sizeof units);
  return units;
}
template <class T>
void put(Entry* to, const T& units) {
  std::memcpy(to, &units, sizeof units);
}

// Whether any of the highest bits is set, and whether all are.
bool any(Entry e) { return e != 0; }
bool all(Entry e) { return e != 0; }
template <class T>
bool any(const T& units) {
  Entry bits = 0;
  for (std::size_t i = 0; i < sizeof units / sizeof(Entry); ++i) bits |= units[i];
  return bits != 0;
}
template <class T>
bool all(const T& units) {
  Entry bits = ~Entry{0};
  for (std::size_t i = 0; i < sizeof units / sizeof(Entry); ++i) bits &= units[i];
  return bits != 0;
}

void fill(Entry* to, std::size_t count, Entry own, unsigned shift) {
  for_units(count, own, shift, [=](std::size_t i, Entry e) { to[i] = e; });
}

}  // namespace

// Whether all entries are from a time that every warp knows, as after a barrier of the block.
bool SharedRaces::all_past(const Entry* e, std::size_t count) const {
  const Entry floor = floor_limit_;
  return e[0] < floor && any_bits(e, count, [=](Entry x) { return not_below(x, floor); }) == 0;
}

// Whether entries of consecutive units, 2^shift per lane, are all ordered before an access by these
// lanes; `own` is the entry of the first. False may also mean that it takes a closer look.
bool SharedRaces::all_ordered(const Entry* e, std::size_t count, Entry own, unsigned shift) const {
  if (all_past(e, count)) return true;
  const Entry floor = floor_limit_, lane_floor = lane_limit_;
  Entry unordered = 0;
  for_units(count, own, shift, [&](std::size_t i, Entry own_i) {
    const Entry differs = e[i] ^ own_i;
    const Entry other_warp = is_nonzero(differs & (kWarpMask | kShared));
    const Entry other_thread = is_nonzero(differs & (kThreadMask | kShared));
    unordered |= not_below(e[i], floor) & (other_warp | not_below(e[i], lane_floor)) & other_thread;
  });
  return unordered == 0;
}

// Plain loads and stores that conflict with nothing. False: examine each lane.
bool SharedRaces::contiguous(const WarpAccess& a, const LanePattern& p, Entry own) {
  if (is_atomic(a.kind)) return false;
  const unsigned shift = static_cast<unsigned>(std::countr_zero(a.bytes)) - unit_shift_;
  const std::size_t begin = p.low >> unit_shift_, count = std::size_t{p.lanes} << shift;
  own |= lanes(p.first, p.first);
  if (!all_ordered(&writes_[begin], count, own, shift)) return false;
  if (atomics_.used && !all_ordered(&atomics_.unit[begin], count, own, shift)) return false;
  if (a.kind == AccessKind::load) return add_contiguous(readers_, begin, count, own, shift);
  if (!all_ordered(&readers_.unit[begin], count, own, shift)) return false;
  fill(&writes_[begin], count, own, shift);
  return true;
}

// Likewise for lanes that access one unit each, in any order. REQUIRES: a store's units are
// distinct.
bool SharedRaces::scattered(const WarpAccess& a, const LanePattern& p, Entry own) {
  const Entry floor = floor_limit_, warp = own & kWarpMask;
  const Entry now = (own >> kTimeShift) << kTimeShift;
  const bool store = a.kind == AccessKind::store;
  const LaneAddresses all(a);
  const Entry sample = readers_.unit[all.v[0] >> unit_shift_];
  if (sample >= floor && (sample & (kWarpMask | kShared)) != warp) return false;
  Entry entry[kLanes], unordered = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const std::uint64_t unit = all.v[i] >> unit_shift_;
    const Entry lane = ((a.mask >> i) & 1u) != 0 ? i : p.first, held = readers_.unit[unit];
    const bool own_warp = (held & (kWarpMask | kShared | kFlag)) == warp;
    unordered |= not_below(writes_[unit], floor);
    unordered |= !store && own_warp ? 0 : not_below(held, floor);
    const Entry e = own | lane * kLane;
    entry[i] = !store && own_warp && held >= now ? with_lanes_of(e, held) : e;
  }
  if (unordered != 0) return false;
  Entry* const to = store ? writes_.data() : readers_.unit.data();
  Entry repeated = 0;
  for (unsigned i = 0; i < kLanes; ++i) to[all.v[i] >> unit_shift_] = entry[i];
  for (unsigned i = 0; i < kLanes; ++i) repeated |= to[all.v[i] >> unit_shift_] ^ entry[i];
  if (repeated == 0) return true;
  for (unsigned i = 0; i < kLanes; ++i) {
    Entry& e = to[all.v[i] >> unit_shift_];
    e = with_lanes_of(entry[i], e);
  }
  return true;
}

// Plain loads of a shape that conflict with nothing. False: examine each lane.
bool SharedRaces::load_shape(const LaneShape& s, const LanePattern& p, Entry own) {
  if (atomics_.used) return false;
  switch (s.bytes >> unit_shift_) {
    case 1: return load_units<Entry>(s, p, own);
    case 2: return load_units<Units<2>>(s, p, own);
    case 4: return load_units<Units<4>>(s, p, own);
    case 8: return load_units<Units<8>>(s, p, own);
    case 16: return load_units<Units<16>>(s, p, own);
    default: return false;
  }
}

// Units: the entries of one address, a word or a vector.
template <class Units>
bool SharedRaces::load_units(const LaneShape& s, const LanePattern& p, Entry own) {
  const unsigned shift = unit_shift_;
  const std::size_t begin = p.low >> shift;
  const auto at = [&](std::uint32_t i) { return begin + (s.offset[i] >> shift); };
  const auto entry = [&](std::uint32_t i) { return Units{} + (own | s.lanes[i]); };

  const Entry floor = floor_limit_;
  const Entry* const written = writes_.data();
  Entry* const read = readers_.unit.data();
  Units writes{}, reads{}, shared = ~Units{};
  for (std::uint32_t i = 0; i < s.addresses; ++i) {
    const Units held = get<Units>(read + at(i)), recent = not_below(held, floor);
    writes |= not_below(get<Units>(written + at(i)), floor);
    reads |= recent;
    shared &= recent & (held << (63 - kSharedShift));
  }
  if (any(writes)) {
    // What the warp wrote before its lanes met may be ordered too.
    const Entry lane_floor = lane_limit_;
    writes = Units{};
    for (std::uint32_t i = 0; i < s.addresses; ++i) {
      const Units e = get<Units>(written + at(i)), other_warp = is_nonzero((e ^ own) & kWarpMask);
      writes |= not_below(e, floor) & (other_warp | not_below(e, lane_floor));
    }
    if (any(writes)) return false;
  }
  if (!any(reads)) {
    for (std::uint32_t i = 0; i < s.addresses; ++i) put(read + at(i), entry(i));
    return true;
  }
  // From here on, the same as add_holder().
  Entry* const mine = readers_.by_warp.bytes() != 0 ? readers_.of_warp(warp_) : nullptr;
  if (all(shared)) {
    const Entry now = (own >> kTimeShift) << kTimeShift, latest = own | kShared;
    for (std::uint32_t i = 0; i < s.addresses; ++i) {
      const Units held = get<Units>(mine + at(i)), e = get<Units>(read + at(i));
      const auto join = (held >= now) & ((held & kFlag) == 0);
      put(mine + at(i), join ? with_lanes_of(entry(i), held) : entry(i));
      put(read + at(i), e < latest ? Units{} + latest : e);
    }
    return true;
  }
  Units foreign = ~Units{};
  for (std::uint32_t i = 0; i < s.addresses; ++i) {
    const Units e = get<Units>(read + at(i));
    foreign &=
        not_below(e, floor) & is_nonzero((e ^ own) & kWarpMask) & ~(e << (63 - kSharedShift));
  }
  constexpr std::size_t kParts = sizeof(Units) / sizeof(Entry);
  const bool simply = all(foreign) && warps_.simple() && mine != nullptr;
  for (std::uint32_t i = 0; i < s.addresses; ++i) {
    for (std::size_t unit = at(i); unit < at(i) + kParts; ++unit) {
      const Entry e = read[unit], e_own = own | s.lanes[i];
      if (!simply) {
        add_holder(e_own, readers_, unit);
        continue;
      }
      readers_.of_warp(warp_of(e))[unit] = e;
      mine[unit] = e_own;
      read[unit] = std::max(e, own) | kShared;
    }
  }
  return true;
}

// Puts plain reads into `to`. True if its entries are all ordered or of this warp.
bool SharedRaces::hold_contiguous(Entry* to, std::size_t count, Entry own, unsigned shift) const {
  if (all_past(to, count)) {
    fill(to, count, own, shift);
    return true;
  }
  const Entry floor = floor_limit_, warp = own & kWarpMask;
  const auto is_foreign = [=](Entry x) {
    return not_below(x, floor) & is_nonzero((x ^ warp) & (kWarpMask | kShared));
  };
  if (any_bits(to, count, is_foreign) != 0) return false;
  const Entry now = (own >> kTimeShift) << kTimeShift;
  for_units(count, own, shift, [=](std::size_t i, Entry e) {
    const bool join = (to[i] >= now) & ((to[i] & (kWarpMask | kShared | kFlag)) == warp);
    to[i] = join ? with_lanes_of(e, to[i]) : e;
  });
  return true;
}

bool SharedRaces::add_contiguous(Holders& h, std::size_t begin, std::size_t count, Entry own,
                                 unsigned shift) {
  Entry* const unit = &h.unit[begin];
  if (hold_contiguous(unit, count, own, shift)) return true;
  // All already shared, or all of one other warp that this one knows nothing of.
  const Entry like = unit[0] & (kShared | kWarpMask);
  const bool shared = (like & kShared) != 0;
  const Entry mask = shared ? kShared : kShared | kWarpMask;
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < count; ++i) {
    others += (unit[i] < floor_limit_) | ((unit[i] & mask) != (like & mask)) ? 1u : 0u;
  }
  if (others != 0 || h.by_warp.bytes() == 0 || (!shared && !warps_.simple())) return false;
  if (!shared) std::copy_n(unit, count, h.of_warp(warp_of(like)) + begin);
  if (!hold_contiguous(h.of_warp(warp_) + begin, count, own, shift)) return false;
  const Entry latest = (own & ~kThreadMask) | kShared;
  for (std::size_t i = 0; i < count; ++i) unit[i] = std::max(unit[i], latest) | kShared;
  return true;
}

}  // namespace assay::sim
