// Races in the shared memory of one block. The rules are in checker.h.
//
// Each unit of memory (4 bytes, or the smallest access seen) remembers its last plain write, and
// its readers and atomic writers since an access before which they were all ordered. One reader is
// stored in place. When a second comes that is not ordered after the first, the unit becomes
// "shared", and the last read of each warp is stored separately, as in FastTrack. Everything is
// stamped with the warp's time (GroupOrder). Time continues from block to block, so nothing is
// cleared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/memory/access.h"
#include "sim/memory/group_order.h"
#include "sim/memory/lane_pattern.h"
#include "sim/memory/lane_shapes.h"
#include "sim/memory/lazy_map.h"

namespace assay::sim {

class SharedRaces {
 public:
  struct Conflict {
    std::uint32_t lane = 0;     // of the access
    std::uint64_t address = 0;  // of the lane
    std::uint32_t other_pc = 0;
    std::uint32_t other_thread = 0;
    AccessKind other_access{};
    bool equal = false;  // two stores, and the later one writes what the earlier one left
  };

  // `data`: the memory's contents before each access; null if unknown.
  SharedRaces(std::uint32_t bytes, std::uint32_t warps, const std::byte* data = nullptr);

  void begin_block();
  void barrier(std::uint32_t warps, std::uint32_t barrier);
  void arrive(std::uint32_t warp, std::uint32_t barrier);
  void warp_sync(std::uint32_t warp, std::uint32_t lanes);

  // Order by objects in shared memory, by address. What a warp did before mbarrier_arrive is
  // ordered before what follows a wait for the phase that the arrival helped to complete.
  void mbarrier_arrive(std::uint32_t warp, std::uint64_t object);
  void mbarrier_complete(std::uint64_t object);
  void mbarrier_wait(std::uint32_t warp, std::uint64_t object);
  void mbarrier_init(std::uint64_t object);
  // Likewise for flags and locks: a warp's later atomic or volatile writes release what precedes
  // its fence, and such reads of their address acquire it.
  void fence(std::uint32_t warp);
  void release(std::uint32_t warp, std::uint64_t address);
  void acquire(std::uint32_t warp, std::uint64_t address);
  bool releases(std::uint32_t warp) const { return ((fenced_ >> warp) & 1u) != 0; }
  bool acquires() const { return !flags_.empty(); }

  // Records the access and returns what it conflicts with: at most one read, one write and one
  // atomic operation for lanes with the same address. Valid until the next call. REQUIRES: inside
  // the memory, aligned. The shape is that of the access, or null; it saves work.
  const std::vector<Conflict>& access(const WarpAccess&, const LanePattern&,
                                      const LaneShape* = nullptr);
  // access() by one lane, of any number of bytes.
  const std::vector<Conflict>& range(const WarpAccess&);
  // access() for a plain load of one address by all lanes of a warp, if a quick look shows that it
  // conflicts with nothing. Otherwise false, and nothing is recorded.
  bool load_uniform(std::uint32_t warp, std::uint32_t pc, std::uint64_t address,
                    std::uint32_t bytes);

 private:
  using Entry = std::uint64_t;

  // Readers or atomic writers.
  struct Holders {
    std::vector<Entry> unit;
    LazyMap by_warp;  // [warp][unit], of shared units
    bool used = false;
    Entry* of_warp(std::uint32_t warp) const { return by_warp.as<Entry>() + warp * unit.size(); }
  };

  // The units of the lanes first to last, which access the same address.
  struct Run {
    std::uint32_t first = 0, last = 0;
    std::size_t begin = 0, end = 0;  // units
    Entry entry = 0;
  };

  struct Pair {
    std::uint32_t lane, other;  // of the access, of the entry
  };

  // Up to when the warps' acts are known: to those who arrived, over all phases, and to those who
  // wait.
  struct Mbarrier {
    GroupOrder::Row arrived{}, complete{};
  };

  void restart();
  void act(std::uint32_t warp, std::uint32_t lanes);
  Entry entry_now(std::uint32_t pc) const;
  void publish(std::uint32_t warp, GroupOrder::Row& to);
  void learn(std::uint32_t warp, const GroupOrder::Row& from);
  void advance_time();
  void refine(unsigned unit_shift);
  void make_holders(Holders&);
  std::optional<Pair> unordered(Entry, const Run&) const;
  bool all_past(const Entry*, std::size_t count) const;
  bool all_ordered(const Entry*, std::size_t count, Entry own, unsigned shift) const;
  bool contiguous(const WarpAccess&, const LanePattern&, Entry own);
  bool scattered(const WarpAccess&, const LanePattern&, Entry own);
  bool load_shape(const LaneShape&, const LanePattern&, Entry own);
  template <class Units>
  bool load_units(const LaneShape&, const LanePattern&, Entry own);
  bool hold_contiguous(Entry* to, std::size_t count, Entry own, unsigned shift) const;
  bool add_contiguous(Holders&, std::size_t begin, std::size_t count, Entry own, unsigned shift);
  void single(const WarpAccess&, const Run&);
  void check(const WarpAccess&, const Run&, std::size_t unit, Entry, AccessKind plain,
             AccessKind flagged);
  bool holds_value(const WarpAccess&, const Run&, std::size_t unit) const;
  void check_holders(const WarpAccess&, const Run&, const Holders&, std::size_t unit, bool readers);
  void add_holder(Entry own, Holders&, std::size_t unit);

  std::uint32_t bytes_, warps_count_;
  const std::byte* data_;
  unsigned unit_shift_ = 2;
  std::vector<Entry> writes_;
  Holders readers_, atomics_;

  GroupOrder warps_;
  std::vector<GroupOrder> lanes_;            // by warp
  std::vector<std::uint32_t> time_;          // by warp
  std::vector<std::uint32_t> last_act_;      // time of the last access, by warp
  std::vector<std::uint32_t> last_meeting_;  // all lanes know all accesses up to then
  std::uint32_t now_ = 0;                    // the latest time of any warp
  std::array<GroupOrder::Row, 16> arrived_{};
  std::uint32_t arrivals_ = 0;  // barriers at which some warp arrived
  std::map<std::uint64_t, Mbarrier> mbarriers_;
  std::map<std::uint64_t, GroupOrder::Row> flags_;
  std::array<GroupOrder::Row, GroupOrder::kMembers> at_fence_{};
  std::uint32_t fenced_ = 0;  // warps that have executed a fence

  std::uint32_t warp_ = 0;  // of the current access
  Entry floor_limit_ = 0, lane_limit_ = 0;
  std::vector<Conflict> conflicts_;
};

}  // namespace assay::sim
