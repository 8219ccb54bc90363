#include "sim/memory/checker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "sim/memory/finding_table.h"
#include "sim/memory/footprint.h"
#include "sim/memory/global_races.h"
#include "sim/memory/initialised.h"
#include "sim/memory/lane_shapes.h"
#include "sim/memory/race_shadow.h"
#include "sim/memory/shared_races.h"
#include "sim/memory/store_conflicts.h"
#include "sim/memory/traffic.h"

namespace assay::sim {

struct LaunchChecker::State {
  GlobalMemory& memory;
  CheckOptions options;
  FindingTable findings;
  std::optional<GridRaces> races;
  std::mutex mutex;
  std::map<std::uint32_t, UndefinedStores> undefined_stores;  // by pc

  State(GlobalMemory& m, CheckOptions o) : memory(m), options(o) {}

  void add(const RawFinding& f) {
    const std::lock_guard lock(mutex);
    const auto [at, fresh] =
        undefined_stores.try_emplace(f.pc, UndefinedStores{f, f.address, f.address + f.bytes});
    if (fresh) return;
    UndefinedStores& known = at->second;
    known.begin = std::min(known.begin, f.address);
    known.end = std::max(known.end, f.address + f.bytes);
    const std::uint64_t count = known.first.count + f.count;
    if (std::tie(f.block, f.thread) < std::tie(known.first.block, known.first.thread)) {
      known.first = f;
    }
    known.first.count = count;
  }
};

LaunchChecker::LaunchChecker(GlobalMemory& memory, std::uint64_t blocks, CheckOptions options)
    : state_(std::make_unique<State>(memory, options)) {
  if (!options.races) return;
  if (blocks > kMaxCheckedBlocks) throw std::length_error("too many blocks to check for races");
  state_->races.emplace(memory.race_shadow(), blocks, options.concurrent, state_->findings);
}

LaunchChecker::~LaunchChecker() = default;

std::vector<RawFinding> LaunchChecker::findings() const {
  if (state_->races) state_->races->settle();
  return state_->findings.sorted();
}

std::vector<UndefinedStores> LaunchChecker::undefined_stores() const {
  std::vector<UndefinedStores> all;
  for (const auto& [pc, stores] : state_->undefined_stores) all.push_back(stores);
  return all;
}

struct BlockChecker::State {
  LaunchChecker::State& launch;
  GlobalMemory& memory;
  std::byte* const store;
  std::uint64_t* const global_bits;
  std::uint64_t block = 0;
  std::uint64_t owner = 0;  // whose shared memory is being accessed
  std::uint32_t rank = 0;
  ClusterRaces* cluster = nullptr;
  Counters counters;
  SlicePasses slices{};

  std::uint64_t shared_bytes;
  const std::byte* const shared_data;
  std::vector<std::uint64_t> shared_bits;
  std::optional<SharedRaces> shared_races;
  std::optional<BlockRaces> races;
  LaneShapes shared_shapes;

  // The allocations of recent accesses, by instruction, since each mostly stays within one.
  static constexpr std::size_t kRemembered = 16;
  std::array<const Allocation*, kRemembered> remembered{};

  State(LaunchChecker::State& l, std::uint32_t bytes, std::uint32_t warps, const std::byte* shared)
      : launch(l),
        memory(l.memory),
        store(memory.store()),
        global_bits(memory.initialised_bits()),
        shared_bytes(bytes),
        shared_data(shared),
        shared_bits((bytes + 63) / 64) {
    if (!launch.races) return;
    races.emplace(*launch.races);
    if (bytes != 0) shared_races.emplace(bytes, warps, shared);
  }

  RawFinding finding(FindingKind kind, const WarpAccess& a, std::uint32_t lane) const {
    RawFinding f;
    f.kind = kind;
    f.pc = a.pc;
    f.block = block;
    f.thread = a.thread_of(lane);
    f.access = a.kind;
    f.address = a.address[lane];
    f.bytes = a.bytes;
    f.owner = owner;
    return f;
  }
  bool refuse(FindingKind kind, const WarpAccess& a, std::uint32_t lane, bool shared) {
    RawFinding f = finding(kind, a, lane);
    f.shared = shared;
    launch.findings.add(f);
    return false;
  }
  void report_uninitialised(const WarpAccess& a, std::uint32_t lanes, bool shared) {
    RawFinding f =
        finding(FindingKind::uninitialised, a, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    f.shared = shared;
    f.count = static_cast<std::uint64_t>(std::popcount(lanes));
    launch.findings.add(f);
  }
  // For an exchange, only the first lane at each address reads memory; each other lane reads what
  // the lane before it stored.
  static std::uint32_t who_reads_first(const WarpAccess& a, std::uint32_t lanes) {
    if (a.kind != AccessKind::exchange) return lanes;
    std::uint32_t first = 0;
    for_addresses(a, [&](std::uint32_t there, std::uint64_t) { first |= there & -there; });
    return lanes & first;
  }
  // Checks the lanes of one store against one another.
  void check_store(const WarpAccess& a, const LanePattern& p, bool shared) {
    if (p.distinct || a.kind != AccessKind::store) return;
    const auto conflict = find_store_conflict(a);
    if (!conflict) return;
    RawFinding f =
        finding(shared ? FindingKind::shared_race : FindingKind::global_race, a, conflict->lane);
    f.shared = shared;
    f.other_pc = a.pc;
    f.other_block = block;
    f.other_thread = a.warp * kLanes + conflict->other_lane;
    f.other_access = a.kind;
    launch.findings.add(f);
  }

  void report_races(const WarpAccess& a, const std::vector<SharedRaces::Conflict>& conflicts) {
    for (const SharedRaces::Conflict& c : conflicts) {
      RawFinding f =
          finding(c.equal ? FindingKind::equal_stores : FindingKind::shared_race, a, c.lane);
      f.shared = true;
      f.other_pc = c.other_pc;
      f.other_block = block;
      f.other_thread = c.other_thread;
      f.other_access = c.other_access;
      launch.findings.add(f);
    }
  }

  // The lowest lane with a misaligned address.
  static std::uint32_t misaligned_lane(const WarpAccess& a) {
    std::uint32_t mask = a.mask;
    while (a.address[std::countr_zero(mask)] % a.bytes == 0) mask &= mask - 1;
    return static_cast<std::uint32_t>(std::countr_zero(mask));
  }

  // Atomic and volatile accesses of shared memory may be accesses of a flag.
  void order_shared(const WarpAccess& a) {
    SharedRaces& races = *shared_races;
    if (reads(a.kind) && a.kind != AccessKind::reduction && races.acquires()) {
      for_runs(a,
               [&](std::uint32_t, std::uint32_t, std::uint64_t at) { races.acquire(a.warp, at); });
    }
    if (writes(a.kind) && races.releases(a.warp)) {
      for_runs(a,
               [&](std::uint32_t, std::uint32_t, std::uint64_t at) { races.release(a.warp, at); });
    }
  }

  // Whether the lane's store to this shared memory leaves it as it is.
  bool is_unchanged_by(const WarpAccess& a, std::uint32_t lane) const {
    if (a.value == nullptr || shared_data == nullptr) return false;
    const auto* const values = static_cast<const std::byte*>(a.value);
    const std::size_t at = a.lane < kLanes ? 0 : std::size_t{lane} * a.bytes;
    return std::memcmp(shared_data + a.address[lane], values + at, a.bytes) == 0;
  }

  // The races of a plain load of this block's memory.
  void check_shared_load(const WarpAccess& a, const LanePattern& p) {
    if (!shared_races) return;
    report_races(a, shared_races->access(a, p, nullptr));
    check_cluster(*this, a);
  }

  // An access to this block's memory, or to another's of the cluster.
  void check_cluster(const State& of, const WarpAccess& a) {
    if (cluster == nullptr) return;
    if (races && races->has_acquired_flag()) cluster->order_otherwise();
    const auto conflict = cluster->access(of.rank, rank, a);
    if (!conflict) return;
    const bool stores = a.kind == AccessKind::store && conflict->other.kind == a.kind;
    const bool equal = conflict->fault == ClusterRaces::Fault::unordered && stores &&
                       of.is_unchanged_by(a, conflict->lane);
    RawFinding f =
        finding(equal ? FindingKind::equal_stores : FindingKind::shared_race, a, conflict->lane);
    f.shared = true;
    f.owner = of.block;
    f.cluster = conflict->fault;
    // As in cluster_end(): whether the block ended before or after, the place is told once.
    f.other_pc = conflict->fault == ClusterRaces::Fault::ended ? a.pc : conflict->other.pc;
    f.other_block = conflict->other.block;
    f.other_thread = conflict->other.thread;
    f.other_access = conflict->other.kind;
    launch.findings.add(f);
  }

  bool in_allocations(const WarpAccess&, const LanePattern&, const Allocation*&);
  bool in_window(const WarpAccess&, const LanePattern&, std::uint64_t window, bool shared);
};

// Whether each lane's access is allowed; `allocation` is then one of the allocations.
bool BlockChecker::State::in_allocations(const WarpAccess& a, const LanePattern& p,
                                         const Allocation*& allocation) {
  const auto holds = [](const Allocation* al, std::uint64_t address, std::uint64_t bytes) {
    return al != nullptr && address - al->address < al->bytes &&
           bytes <= al->bytes - (address - al->address);
  };
  const Allocation*& known = remembered[a.pc % kRemembered];
  const auto usable = [&](const Allocation* al) {
    return al->live && !(al->read_only && writes(a.kind));
  };
  const std::uint64_t all = p.high - p.low + a.bytes;
  if (!holds(known, p.low, all)) known = memory.find(p.low);
  if (holds(known, p.low, all) && usable(known)) {
    allocation = known;
    return true;
  }
  for (std::uint32_t mask = a.mask; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    const std::uint64_t address = a.address[lane];
    if (known == nullptr || address - known->address >= known->bytes) known = memory.find(address);
    FindingKind kind{};
    if (!holds(known, address, a.bytes)) {
      kind = FindingKind::out_of_bounds;
    } else if (!known->live) {
      kind = FindingKind::use_after_free;
    } else if (!usable(known)) {
      kind = FindingKind::read_only;
    } else {
      continue;
    }
    return refuse(kind, a, lane, false);
  }
  allocation = known;
  return true;
}

bool BlockChecker::State::in_window(const WarpAccess& a, const LanePattern& p, std::uint64_t window,
                                    bool shared) {
  if (!p.aligned) return refuse(FindingKind::misaligned, a, misaligned_lane(a), shared);
  if (p.high < window && a.bytes <= window - p.high) return true;
  std::uint32_t mask = a.mask;
  const auto inside = [&](std::uint64_t address) {
    return address < window && a.bytes <= window - address;
  };
  while (inside(a.address[std::countr_zero(mask)])) mask &= mask - 1;
  return refuse(FindingKind::out_of_bounds, a, static_cast<std::uint32_t>(std::countr_zero(mask)),
                shared);
}

namespace {

// The cluster's barrier among the mbarriers, which lie in shared memory, and among the block's 16.
constexpr std::uint64_t kClusterObject = ~std::uint64_t{0};
constexpr std::uint32_t kClusterBarrier = 16;

// Whether the old value is used other than by being returned.
bool computes(AccessKind kind) {
  return is_read_modify_write(kind) && kind != AccessKind::exchange;
}

}  // namespace

BlockChecker::BlockChecker(LaunchChecker& launch, std::uint32_t shared_bytes, std::uint32_t warps,
                           const std::byte* shared)
    : state_(std::make_unique<State>(launch.state(), shared_bytes, warps, shared)) {}

BlockChecker::~BlockChecker() = default;

void BlockChecker::begin_block(std::uint64_t block) {
  State& s = *state_;
  s.block = s.owner = block;
  s.cluster = nullptr;
  if (s.launch.options.uninitialised) {
    std::fill(s.shared_bits.begin(), s.shared_bits.end(), 0);
  }
  if (s.shared_races) s.shared_races->begin_block();
  if (s.races) s.races->begin_block(static_cast<std::uint32_t>(block));
}

bool BlockChecker::global(const WarpAccess& a) {
  State& s = *state_;
  const LanePattern p = find_pattern(a);
  if (!p.aligned) return s.refuse(FindingKind::misaligned, a, State::misaligned_lane(a), false);
  const Allocation* allocation = nullptr;
  if (!s.in_allocations(a, p, allocation)) return false;
  if (is_read_modify_write(a.kind)) {
    count_atomic(s.counters, s.slices, a, p);
  } else if (allocation->read_only) {
    count_constant(s.counters, a);
  } else {
    count_global(s.counters, a, p);
  }

  std::uint32_t uninitialised = 0;
  if (s.launch.options.uninitialised) {
    if (reads(a.kind)) {
      uninitialised = uninitialised_lanes(s.global_bits, kGlobalRange.begin, a, p);
      if (uninitialised != 0 && !computes(a.kind)) {
        undefined = State::who_reads_first(a, uninitialised);
        uninitialised = 0;
      }
    }
    if (writes(a.kind)) initialise_lanes(s.global_bits, kGlobalRange.begin, a, p);
  }
  if (s.launch.options.footprint != nullptr) s.launch.options.footprint->add(a, p);
  bool kept = false;
  if (s.races && !allocation->read_only) {
    s.check_store(a, p, false);
    kept = s.races->access(a, p, uninitialised);
  }
  if (uninitialised != 0 && !kept) s.report_uninitialised(a, uninitialised, false);
  return true;
}

bool BlockChecker::shared(const WarpAccess& a) {
  State& s = *state_;
  LanePattern p;
  const LaneShape* shape = nullptr;
  if (!find_strided(a, p)) {
    if (a.mask == ~std::uint32_t{0}) shape = s.shared_shapes.find(a);
    p = shape != nullptr ? shape->at(a.address[0]) : find_other_pattern(a);
  }
  if (!s.in_window(a, p, s.shared_bytes, true)) return false;
  const BankPasses passes = is_read_modify_write(a.kind) ? atomic_passes(a)
                            : shape != nullptr           ? shape->passes
                                                         : bank_passes(a, p);
  count_shared(s.counters, a, p, passes);
  if (passes.replays != 0 && s.launch.options.replays != nullptr)
    s.launch.options.replays->add(a.pc, passes.replays);
  if (s.launch.options.uninitialised) {
    if (reads(a.kind) && (shape == nullptr || !all_initialised(s.shared_bits.data(), *shape, p))) {
      const std::uint32_t lanes = uninitialised_lanes(s.shared_bits.data(), 0, a, p);
      if (lanes != 0 && computes(a.kind)) {
        s.report_uninitialised(a, lanes, true);
      } else if (lanes != 0) {
        undefined = State::who_reads_first(a, lanes);
      }
    }
    if (writes(a.kind)) initialise_lanes(s.shared_bits.data(), 0, a, p);
  }
  if (!s.shared_races) return true;
  if (is_atomic(a.kind)) s.order_shared(a);
  s.check_store(a, p, true);
  s.report_races(a, s.shared_races->access(a, p, shape));
  s.check_cluster(s, a);
  return true;
}

bool BlockChecker::shared_uncounted(const WarpAccess& a) {
  State& s = *state_;
  const LanePattern p = find_pattern(a);
  if (!s.in_window(a, p, s.shared_bytes, true)) return false;
  const std::uint32_t lanes =
      s.launch.options.uninitialised ? uninitialised_lanes(s.shared_bits.data(), 0, a, p) : 0;
  if (lanes != 0) undefined = State::who_reads_first(a, lanes);
  s.check_shared_load(a, p);
  return true;
}

void BlockChecker::shared_again(const WarpAccess& a) {
  state_->check_shared_load(a, find_pattern(a));
}

// What is out of bounds or misaligned is found when the store is made.
void BlockChecker::shared_store_ahead(const WarpAccess& a) {
  State& s = *state_;
  if (!s.shared_races) return;
  for (std::uint32_t rest = a.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t at = a.address[std::countr_zero(rest)];
    if (at % kBankBytes != 0 || at > s.shared_bytes || a.bytes > s.shared_bytes - at) return;
  }
  s.report_races(a, a.lane < kLanes ? s.shared_races->range(a)
                                    : s.shared_races->access(a, find_pattern(a), nullptr));
}

void BlockChecker::shared_store_ahead(const RangeAccess& r) {
  std::array<std::uint64_t, kLanes> address{};
  address[r.lane] = r.address;
  shared_store_ahead(WarpAccess{r.kind, static_cast<std::uint32_t>(r.bytes), 1u << r.lane,
                                address.data(), r.value, r.pc, r.warp, r.lane});
}

bool BlockChecker::shared_of(BlockChecker& owner, const WarpAccess& a) {
  State &s = *state_, &o = *owner.state_;
  const LanePattern p = find_pattern(a);
  s.owner = o.block;
  const bool inside = s.in_window(a, p, o.shared_bytes, true);
  if (inside) {
    count_shared_of_another(s.counters, a, p);
    const std::uint32_t lanes = s.launch.options.uninitialised && reads(a.kind)
                                    ? uninitialised_lanes(o.shared_bits.data(), 0, a, p)
                                    : 0;
    if (lanes != 0 && computes(a.kind)) {
      s.report_uninitialised(a, lanes, true);
    } else if (lanes != 0) {
      undefined = State::who_reads_first(a, lanes);
    }
    if (s.launch.options.uninitialised && writes(a.kind))
      initialise_lanes(o.shared_bits.data(), 0, a, p);
    if (s.races) s.check_store(a, p, true);
  }
  s.owner = s.block;
  if (!inside || s.cluster == nullptr) return inside;
  const bool fenced = s.shared_races && s.shared_races->releases(a.warp);
  const bool flag = a.kind == AccessKind::atomic_load || a.kind == AccessKind::atomic_store ||
                    (is_atomic(a.kind) && fenced);
  if (flag) s.cluster->order_otherwise();
  s.check_cluster(o, a);
  return true;
}

bool BlockChecker::shared_range(const RangeAccess& r) {
  State& s = *state_;
  std::array<std::uint64_t, kLanes> address{};
  address[r.lane] = r.address;
  const auto bytes = static_cast<std::uint32_t>(r.bytes);
  const WarpAccess a{r.kind, bytes, 1u << r.lane, address.data(), r.value, r.pc, r.warp, r.lane};
  if (r.address > s.shared_bytes || r.bytes > s.shared_bytes - r.address)
    return s.refuse(FindingKind::out_of_bounds, a, r.lane, true);
  constexpr std::uint64_t kPass = std::uint64_t{kBanks} * kBankBytes;
  ++(writes(r.kind) ? s.counters.shared_stores : s.counters.shared_loads);
  s.counters.shared_passes += (r.bytes + kPass - 1) / kPass;
  s.counters.shared_bytes += r.bytes;
  if (s.launch.options.uninitialised) {
    if (writes(r.kind)) {
      set_bits(s.shared_bits.data(), r.address, r.bytes);
    } else if (!all_bits(s.shared_bits.data(), r.address, r.bytes)) {
      undefined = 1u << r.lane;
    }
  }
  if (s.shared_races) s.report_races(a, s.shared_races->range(a));
  s.check_cluster(s, a);
  return true;
}

bool BlockChecker::global_range(const RangeAccess& r) {
  std::array<std::uint64_t, kLanes> address{};
  for (std::uint64_t at = 0; at < r.bytes; at += std::uint64_t{kLanes} * kBulkPiece) {
    for (std::uint32_t l = 0; l < kLanes; ++l) address[l] = r.address + at + l * kBulkPiece;
    const auto mask = static_cast<std::uint32_t>(low_bits((r.bytes - at) / kBulkPiece));
    const std::byte* const value = r.value == nullptr ? nullptr : r.value + at;
    if (!global({r.kind, kBulkPiece, mask, address.data(), value, r.pc, r.warp, r.lane}))
      return false;
  }
  return true;
}

bool BlockChecker::load_shared_uniform(std::uint32_t warp, std::uint32_t pc, std::uint64_t offset,
                                       std::uint32_t bytes) {
  State& s = *state_;
  if (s.cluster != nullptr) return false;
  if ((offset & (bytes - 1)) != 0 || offset >= s.shared_bytes || bytes > s.shared_bytes - offset)
    return false;
  if (s.launch.options.uninitialised && missing_bytes(s.shared_bits.data(), offset, bytes) != 0)
    return false;
  if (s.shared_races && !s.shared_races->load_uniform(warp, pc, offset, bytes)) return false;
  ++s.counters.shared_loads;
  s.counters.shared_passes += passes_of_one_address(bytes);
  s.counters.shared_bytes += std::uint64_t{kLanes} * bytes;
  return true;
}

std::uint32_t BlockChecker::undefined_bytes(bool shared, std::uint64_t address,
                                            std::uint32_t bytes) const {
  const State& s = *state_;
  if (shared)
    return static_cast<std::uint32_t>(missing_bytes(s.shared_bits.data(), address, bytes));
  return static_cast<std::uint32_t>(
      missing_bytes(s.global_bits, address - kGlobalRange.begin, bytes));
}

void BlockChecker::store_undefined(bool shared, const WarpAccess& a, std::uint32_t lane,
                                   std::uint32_t bits) {
  State& s = *state_;
  if (!s.launch.options.uninitialised) return;
  const std::uint64_t address = a.address[lane];
  if (shared) {
    s.shared_bits[address / 64] &= ~(std::uint64_t{bits} << address % 64);
    return;
  }
  s.memory.mark_undefined(address, bits);
  RawFinding f = s.finding(FindingKind::uninitialised, a, lane);
  f.use = UndefinedUse::stored;
  s.launch.add(f);
}

bool BlockChecker::local(const WarpAccess& a, std::uint32_t local_bytes) {
  State& s = *state_;
  if (!s.in_window(a, find_pattern(a), local_bytes, false)) return false;
  count_local(s.counters, a);
  return true;
}

std::uint64_t BlockChecker::shared_bytes() const { return state_->shared_bytes; }
bool BlockChecker::checks_races() const { return state_->races.has_value(); }
bool BlockChecker::finds_undefined() const { return state_->launch.options.uninitialised; }
void BlockChecker::define_shared(std::uint64_t offset, std::uint64_t bytes) {
  set_bits(state_->shared_bits.data(), offset, bytes);
}
std::byte* BlockChecker::base() const { return state_->store; }
std::uint64_t BlockChecker::base_address() const { return kGlobalRange.begin; }

void BlockChecker::barrier(std::uint32_t warps_mask, std::uint32_t barrier) {
  if (state_->shared_races) state_->shared_races->barrier(warps_mask, barrier);
}

void BlockChecker::arrive(std::uint32_t warp, std::uint32_t barrier) {
  if (state_->shared_races) state_->shared_races->arrive(warp, barrier);
}

void BlockChecker::warp_sync(std::uint32_t warp, std::uint32_t lanes) {
  if (state_->shared_races) state_->shared_races->warp_sync(warp, lanes);
}

void BlockChecker::fence() {
  if (state_->races) state_->races->fence();
}

void BlockChecker::fence_block(std::uint32_t warp) {
  if (state_->shared_races) state_->shared_races->fence(warp);
}

void BlockChecker::mbarrier_arrive(std::uint32_t warp, std::uint64_t object) {
  if (state_->shared_races) state_->shared_races->mbarrier_arrive(warp, object);
}

void BlockChecker::mbarrier_complete(std::uint64_t object) {
  if (state_->shared_races) state_->shared_races->mbarrier_complete(object);
}

void BlockChecker::mbarrier_wait(std::uint32_t warp, std::uint64_t object) {
  if (state_->shared_races) state_->shared_races->mbarrier_wait(warp, object);
}

void BlockChecker::mbarrier_init(std::uint64_t object) {
  if (state_->shared_races) state_->shared_races->mbarrier_init(object);
}

void BlockChecker::join_cluster(std::uint32_t rank, ClusterRaces* races) {
  state_->rank = rank;
  state_->cluster = races;
}

void BlockChecker::cluster_ordered_otherwise() {
  if (state_->cluster != nullptr) state_->cluster->order_otherwise();
}

void BlockChecker::cluster_arrive(std::uint32_t warp, bool all) {
  State& s = *state_;
  if (s.shared_races) s.shared_races->mbarrier_arrive(warp, kClusterObject);
  if (all && s.cluster != nullptr) s.cluster->arrive(s.rank, warp);
}

void BlockChecker::cluster_release(std::uint64_t barrier) {
  if (state_->races) state_->races->release_at(barrier);
}

void BlockChecker::cluster_complete(std::uint64_t barrier, std::uint32_t waiting, bool all) {
  State& s = *state_;
  if (s.races) s.races->acquire_at(barrier);
  if (s.shared_races) s.shared_races->mbarrier_complete(kClusterObject);
  if (!all) return for_lanes(waiting, [&](std::uint32_t warp) { cluster_wait(warp); });
  if (s.shared_races) s.shared_races->barrier(waiting, kClusterBarrier);
  if (s.cluster == nullptr) return;
  for_lanes(waiting, [&](std::uint32_t warp) { s.cluster->wait(s.rank, warp); });
}

void BlockChecker::cluster_wait(std::uint32_t warp) {
  State& s = *state_;
  if (s.cluster != nullptr) s.cluster->wait(s.rank, warp);
  if (!s.shared_races) return;
  s.shared_races->mbarrier_wait(warp, kClusterObject);
  s.shared_races->warp_sync(warp, ~std::uint32_t{0});
}

void BlockChecker::cluster_end() {
  State& s = *state_;
  if (s.cluster == nullptr) return;
  const auto access = s.cluster->end(s.rank);
  if (!access) return;
  RawFinding f;
  f.kind = FindingKind::shared_race;
  f.pc = f.other_pc = access->pc;
  f.block = access->block;
  f.thread = access->thread;
  f.access = access->kind;
  f.shared = true;
  f.owner = s.block;
  f.cluster = ClusterRaces::Fault::ended;
  s.launch.findings.add(f);
}

void BlockChecker::volatile_shared(const WarpAccess& a) {
  if (state_->shared_races) state_->order_shared(a);
}

void BlockChecker::report(const RawFinding& f) { state_->launch.findings.add(f); }

Counters& BlockChecker::counters() { return state_->counters; }
const SlicePasses& BlockChecker::slice_passes() const { return state_->slices; }

}  // namespace assay::sim
