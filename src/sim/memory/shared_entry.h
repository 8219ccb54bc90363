// What the race check of shared memory remembers of one access of a unit.
#pragma once

#include <algorithm>
#include <cstdint>

namespace assay::sim::shared_entry {

// From the lowest bit: lanes (last 5, first 5 bits), warp 5, flag 1, shared 1, pc 20, time 26. The
// lanes are those that accessed the unit in one instruction, or since the warp last met.
using Entry = std::uint64_t;
inline constexpr unsigned kFirstShift = 5, kWarpShift = 10, kFlagShift = 15, kSharedShift = 16,
                          kEntryPcShift = 17, kTimeShift = 37;
inline constexpr Entry kOne = 1, kThreadMask = 0x7fff, kWarpMask = Entry{31} << kWarpShift;
// An atomic load or store.
inline constexpr Entry kFlag = kOne << kFlagShift;
// Several warps: see Holders::by_warp. The time is the latest of all of them.
inline constexpr Entry kShared = kOne << kSharedShift;
// The difference between a lane's entry and the next lane's.
inline constexpr Entry kLane = 1 + (kOne << kFirstShift);
inline constexpr std::uint32_t kMaxTime = (1u << 26) - 2;
inline constexpr std::uint32_t kMaxEntryPc = (1u << 20) - 1;

constexpr std::uint32_t time_of(Entry e) { return static_cast<std::uint32_t>(e >> kTimeShift); }
constexpr std::uint32_t warp_of(Entry e) { return (e >> kWarpShift) & 31; }
constexpr std::uint32_t first_of(Entry e) { return (e >> kFirstShift) & 31; }
constexpr std::uint32_t last_of(Entry e) { return e & 31; }
constexpr Entry lanes(std::uint32_t first, std::uint32_t last) {
  return Entry{last} | (Entry{first} << kFirstShift);
}
// Lower entries are from times up to `time`.
constexpr Entry limit(std::uint32_t time) { return (Entry{time} + 1) << kTimeShift; }

// `e` extended by the lanes of `old`, an entry of the same warp and time. T: Entry or a vector of
// it.
template <class T>
constexpr T with_lanes_of(const T& e, const T& old) {
  constexpr Entry kFirst = Entry{31} << kFirstShift, kLast = 31;
  const T first = (e & kFirst) < (old & kFirst) ? e & kFirst : old & kFirst;
  const T last = (e & kLast) > (old & kLast) ? e & kLast : old & kLast;
  return (e & ~(kFirst | kLast)) | first | last;
}

}  // namespace assay::sim::shared_entry
