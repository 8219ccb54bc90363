#include "sim/execution/block_run.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "sim/execution/permutation.h"
#include "sim/execution/special.h"

namespace assay::sim {
namespace {

// The contents of uninitialised memory: NaN in every format, far from any plausible index.
constexpr int kPoison = 0xff;

// What CUDA's cooperative groups find after the program's shared memory: barriers of tiles of
// several warps, which are zero at first, and room for what their warps exchange
// (cooperative_groups/details/memory.h). Only programs that ask where it is have it.
constexpr std::uint32_t kReservedBytes = 1 << 10;

std::uint32_t all_shared_bytes(const GridRun& grid) {
  return grid.program->uses_reserved_shared ? grid.reserved_shared() + kReservedBytes
                                            : grid.shared_bytes();
}

std::uint32_t warp_count(const GridRun& grid) {
  return static_cast<std::uint32_t>((grid.config.block.count() + kWarpSize - 1) / kWarpSize);
}

// The warp's previous frames stay allocated, with their constants.
void begin_warp(BlockRun& block, WarpRun& w) {
  const Code& entry = block.grid->program->entry();
  const std::uint64_t threads = block.grid->config.block.count();
  const std::uint64_t first = std::uint64_t{w.index} * kWarpSize;
  w.existing = threads - first >= kWarpSize ? ~0u : (1u << (threads - first)) - 1;
  w.live = w.existing;
  w.active = 0;
  w.lane_mask = {};
  w.carry = {};
  w.instructions = w.accounted = w.clock_base = 0;
  w.async.reset();
  w.products.reset();
  w.tainted = w.replaying = false;
  w.seen_undefined = 0;
  w.local_undefined.clear();

  w.free_frames.clear();
  for (const auto& frame : w.frames) {
    if (frame != w.frames.front()) w.free_frames.push_back(frame.get());
  }
  Frame& frame = *w.frames.front();
  frame.lanes = w.existing;
  w.local.grow(std::size_t{entry.local_bytes} * kLanes);
  w.local_bytes = entry.local_bytes;
  if (w.local_bytes != 0) {
    std::memset(w.local.data(), kPoison, std::size_t{w.local_bytes} * kLanes);
  }
  w.fragments[0] = Fragment{};
  w.fragments[0].frame = &frame;
  w.fragments[0].mask = w.existing;
  w.fragment_count = 1;
  w.enter_frame(&frame);
  fill_specials(w, entry);
}

}  // namespace

std::uint64_t processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t GridRun::shared_bytes() const {
  return static_cast<std::uint32_t>(program->shared_bytes(config.dynamic_shared_bytes));
}

void WarpRun::expand_active(std::uint32_t mask) {
  active = mask;
  for (unsigned l = 0; l < kLanes; ++l) lane_mask.v[l] = 0u - ((mask >> l) & 1u);
}

BlockRun::BlockRun(GridRun& g)
    : grid(&g),
      counts(*g.program),
      shared(all_shared_bytes(g)),
      checker(*g.checker, all_shared_bytes(g), warp_count(g), shared.data()),
      counters(&checker.counters()),
      global_zero(reinterpret_cast<std::uintptr_t>(checker.base()) - checker.base_address()),
      warps(warp_count(g)),
      order(warp_count(g)) {
  const Code& entry = g.program->entry();
  for (std::uint32_t i = 0; i < warps.size(); ++i) {
    WarpRun& w = warps[i];
    w.index = i;
    w.block = this;
    w.frames.push_back(std::make_unique<Frame>());
    Frame& frame = *w.frames.back();
    frame.code = &entry;
    frame.regs.grow(std::max<std::size_t>(entry.frame_bytes, AlignedBuffer::kAlign));
    // Scratch slots are never read, but they are blended into.
    std::memset(frame.regs.data(), 0, frame.regs.size());
    frame.preds.resize(entry.predicates);
    fill_constants(entry, frame.regs.data(), frame.preds.data());
  }
}

void BlockRun::begin(std::uint64_t block) {
  const Dim3& size = grid->config.grid;
  index = block;
  ctaid[0] = static_cast<std::uint32_t>(block % size.x);
  ctaid[1] = static_cast<std::uint32_t>(block / size.x % size.y);
  ctaid[2] = static_cast<std::uint32_t>(block / size.x / size.y);
  const Dim3& of = grid->config.cluster;
  rank = (ctaid[2] % of.z * of.y + ctaid[1] % of.y) * of.x + ctaid[0] % of.x;
  if (shared.size() != 0) std::memset(shared.data(), kPoison, shared.size());
  checker.begin_block(block);
  if (grid->program->uses_reserved_shared) {
    std::memset(shared.data() + grid->reserved_shared(), 0, kReservedBytes);
    checker.define_shared(grid->reserved_shared(), kReservedBytes);
  }
  cluster = nullptr;
  barriers.reset();
  bulk.reset();
  output.clear();
  instructions = 0;
  std::iota(order.begin(), order.end(), 0u);
  if (grid->shuffle_seed != 0) {
    const Permutation shuffled(order.size(), grid->shuffle_seed ^ (block + 1));
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<std::uint32_t>(shuffled(i));
    }
  }
  for (WarpRun& w : warps) begin_warp(*this, w);
  before_ = dynamic_work();
}

UnitWork BlockRun::dynamic_work() const {
  const Counters& c = *counters;
  UnitWork work;
  work[Unit::shared] = c.shared_passes;
  work[Unit::constant] = c.total[Unit::constant];
  work[Unit::sectors] =
      c.global_load_sectors + c.global_store_sectors + c.local_sectors + 2 * c.atomic_sectors;
  return work;
}

void BlockRun::end(BlockTotals& totals) {
  UnitWork work = dynamic_work();
  for (std::size_t u = 0; u < kUnits; ++u) work.of[u] -= before_.of[u];
  for (const auto& code : grid->program->codes) {
    std::uint64_t* const executions = counts.executions.data() + code->first_block;
    std::uint64_t* const lanes = counts.lanes.data() + code->first_block;
    for (std::size_t b = 0; b < code->blocks.size(); ++b) {
      const std::uint64_t times = executions[b];
      if (times == 0) continue;
      const UnitWork& price = code->prices[b];
      for (std::size_t u = 0; u < kUnits; ++u) work.of[u] += times * price.of[u];
      totals.counts.executions[code->first_block + b] += times;
      totals.counts.lanes[code->first_block + b] += lanes[b];
      executions[b] = lanes[b] = 0;
    }
  }
  totals.total += work;
  totals.longest.raise_to(work);
  for (const WarpRun& w : warps) {
    totals.longest_warp = std::max(totals.longest_warp, w.instructions);
  }
}

}  // namespace assay::sim
