#include "sim/execution/grid.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/execution/cluster_run.h"
#include "sim/execution/interpreter.h"
#include "sim/execution/launch_order.h"

namespace assay::sim {
namespace {

// Turns of all warps of a block without progress before the next block begins, in case the block
// waits for that one. Grids that synchronise are known to wait for each other. Others rarely do,
// and compare-and-swap loops look the same.
constexpr std::uint32_t kPatience = 1024, kCooperativePatience = 1;
constexpr std::uint32_t kEndless = std::numeric_limits<std::uint32_t>::max();

std::uint64_t& class_counter(Counters& c, InstrClass cls) {
  switch (cls) {
    case InstrClass::integer: return c.integer;
    case InstrClass::fp32: return c.fp32;
    case InstrClass::fp16: return c.fp16;
    case InstrClass::fp64: return c.fp64;
    case InstrClass::conversion: return c.conversion;
    case InstrClass::special: return c.special;
    case InstrClass::memory: return c.memory;
    case InstrClass::control: return c.control;
    case InstrClass::warp: return c.warp;
    case InstrClass::tensor: return c.tensor;
    case InstrClass::other: break;
  }
  return c.other;
}

// Converts executions of basic blocks into executions of their instructions. `by_pc` may be empty.
void add_counts(const Program& program, const BlockCounts& counts, Counters& out,
                std::vector<InstructionCounts>& by_pc) {
  for (const auto& code : program.codes) {
    for (std::size_t b = 0; b < code->blocks.size(); ++b) {
      const std::uint64_t executions = counts.executions[code->first_block + b];
      const std::uint64_t lanes = counts.lanes[code->first_block + b];
      if (executions == 0) continue;
      const Block& block = code->blocks[b];
      const bool terminator = block.flow != Flow::next && block.flow != Flow::poll;
      for (std::uint32_t i = block.begin; i < block.end + (terminator ? 1u : 0u); ++i) {
        const InstrInfo& info = code->info[i];
        if (!info.counted) continue;
        out.instructions += executions;
        out.active_lanes += lanes;
        if (!by_pc.empty()) {
          by_pc[code->first_pc + i].instructions += executions;
          by_pc[code->first_pc + i].active_lanes += lanes;
        }
        class_counter(out, info.cls) += executions;
        out.fp32_flops += lanes * info.flops;
        out.tensor_flops += executions * info.tensor_flops;
      }
    }
  }
}

// The totals of a launch's blocks, over all host threads.
struct LaunchTotals {
  explicit LaunchTotals(const GridRun& grid)
      : by_pc(grid.count_by_pc ? grid.program->instructions : 0) {}

  UnitWork total, longest;
  std::uint64_t longest_warp = 0;
  SlicePasses slices{};
  Counters counters;
  std::vector<InstructionCounts> by_pc;

  void add(const BlockRun& block) {
    counters += *block.counters;
    for (std::size_t s = 0; s < slices.size(); ++s) slices[s] += block.checker.slice_passes()[s];
  }
  void add(const Program& program, const BlockTotals& t) {
    add_counts(program, t.counts, counters, by_pc);
    total += t.total;
    longest.raise_to(t.longest);
    longest_warp = std::max(longest_warp, t.longest_warp);
  }
  Counters result() const {
    Counters c = counters;
    c.total = c.critical = total;
    for (std::uint64_t& u : c.critical.of) u = (u + kMultiprocessors - 1) / kMultiprocessors;
    c.critical.raise_to(longest);
    c.longest_warp = longest_warp;
    c.atomic_hot_passes = *std::max_element(slices.begin(), slices.end());
    return c;
  }
};

// Collects blocks as they end; orders their outputs at the end.
class Collector {
 public:
  explicit Collector(GridRun& grid) : grid_(grid) {}

  // Takes the block's output, even if the block failed.
  void ended(std::uint64_t rank, BlockRun& block) {
    if (block.output.empty()) return;
    const std::lock_guard lock(mutex_);
    output_bytes_ += block.output.size();
    outputs_[block.index] = {rank, std::move(block.output)};
    // Output beyond the limit would be cut off in the end.
    while (output_bytes_ - outputs_.rbegin()->second.text.size() >= grid_.max_output_bytes) {
      output_bytes_ -= outputs_.rbegin()->second.text.size();
      outputs_.erase(std::prev(outputs_.end()));
    }
  }
  // The block ended without failure. False if the launch is over, because this block and those
  // before it in order executed more instructions than the limit allows.
  bool finished(std::uint64_t rank, BlockRun& block) {
    ended(rank, block);
    if (!grid_.limit_by_block) return true;
    const std::lock_guard lock(mutex_);
    waiting_[rank] = {block.index, block.instructions, block.last_thread, block.last_pc};
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first)) {
      const Finished& f = first->second;
      instructions_ += f.instructions;
      if (instructions_ > grid_.instruction_limit && next_ < failed_rank_) {
        failed_rank_ = next_;
        failure_ = LaunchFailure{false,     FindingKind::instruction_limit, f.block, f.thread, f.pc,
                                 kLimitText};
      }
      ++next_;
    }
    return rank < failed_rank_;
  }
  void failed(std::uint64_t rank, const LaunchFailure& failure) {
    const std::lock_guard lock(mutex_);
    if (rank < failed_rank_) {
      failed_rank_ = rank;
      failure_ = failure;
    }
  }
  void broken(std::exception_ptr e) {
    const std::lock_guard lock(mutex_);
    error_ = e;
    failed_rank_ = 0;
  }
  bool stop_before(std::uint64_t rank) {
    const std::lock_guard lock(mutex_);
    return rank >= failed_rank_;
  }

  GridResult result() {
    if (error_) std::rethrow_exception(error_);
    GridResult out;
    out.failure = failure_;
    out.failed_rank = failed_rank_;
    for (const auto& [block, output] : outputs_) {
      if (output.rank > failed_rank_) continue;  // in order, that block would not have run
      out.output.append(output.text, 0, grid_.max_output_bytes - out.output.size());
    }
    return out;
  }

 private:
  GridRun& grid_;
  std::mutex mutex_;
  struct Output {
    std::uint64_t rank;
    std::string text;
  };
  std::map<std::uint64_t, Output> outputs_;  // by block
  std::uint64_t output_bytes_ = 0;           // in them
  // For the limit: blocks that finished before an earlier one did.
  struct Finished {
    std::uint64_t block, instructions;
    std::uint32_t thread, pc;
  };
  std::map<std::uint64_t, Finished> waiting_;  // by rank
  std::uint64_t next_ = 0, instructions_ = 0;  // next_: the first block that has not finished
  std::uint64_t failed_rank_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<LaunchFailure> failure_;
  std::exception_ptr error_;
};

// One host thread that runs as many blocks at a time as wait for one another.
class SerialRun {
 public:
  SerialRun(GridRun& grid, std::uint64_t resident, Collector& collector)
      : grid_(grid),
        resident_limit_(resident),
        collector_(collector),
        totals_(*grid.program),
        order_(grid.config, grid.shuffle_seed),
        together_(grid.clusters ? grid.config.cluster.count() : 1) {}

  void run(LaunchTotals& out) {
    const std::uint64_t blocks = grid_.config.grid.count();
    const bool together = together_ > 1 || grid_.config.cooperative;
    const std::uint32_t patience = together               ? kCooperativePatience
                                   : grid_.program->polls ? kPatience
                                                          : kEndless;
    // Turns of blocks without progress before further ones begin.
    const std::uint64_t turns = together_ == 1 || grid_.config.cooperative ? 1
                                : grid_.program->polls                     ? kPatience * together_
                                                                           : kEndless;
    std::uint64_t stuck = 0;
    while (!resident_.empty() || next_ < blocks) {
      if (resident_.empty()) start();
      const Resident now = resident_.front();
      resident_.pop_front();
      Progress progress{};
      if (!run_one(now, patience, progress)) return;
      stuck = progress == Progress::polling ? stuck + 1 : 0;
      if (progress == Progress::finished) continue;
      resident_.push_back(now);
      if (stuck < turns || next_ == blocks || resident_.size() + together_ > resident_limit_)
        continue;
      stuck = 0;
      start();
    }
    for (const auto& group : groups_) {
      for (const auto& block : group->blocks) out.add(*block);
    }
    out.add(*grid_.program, totals_);
  }

 private:
  struct Group;
  struct Resident {
    BlockRun* block;
    Group* group;
    std::uint64_t rank;  // in the order
  };

  // Blocks that begin together, and how many of them have not ended. Until all have, the others may
  // access the shared memory of each, so none begins again.
  struct Group {
    std::vector<std::unique_ptr<BlockRun>> blocks;
    std::unique_ptr<ClusterRun> cluster;  // if they are one
    std::size_t left = 0;
  };

  // Starts the next blocks in order; they run first.
  void start() {
    if (free_.empty()) {
      groups_.push_back(std::make_unique<Group>());
      Group& group = *groups_.back();
      for (std::uint64_t i = 0; i < together_; ++i)
        group.blocks.push_back(std::make_unique<BlockRun>(grid_));
      if (grid_.clusters) group.cluster = std::make_unique<ClusterRun>(group.blocks);
      free_.push_back(&group);
    }
    Group& group = *free_.back();
    free_.pop_back();
    group.left = group.blocks.size();
    for (std::uint64_t i = 0; i < together_; ++i) group.blocks[i]->begin(order_(next_ + i));
    if (group.cluster) group.cluster->begin();
    for (std::uint64_t i = together_; i-- > 0;)
      resident_.push_front({group.blocks[i].get(), &group, next_ + i});
    next_ += together_;
  }

  bool run_one(const Resident& now, std::uint32_t patience, Progress& progress) {
    try {
      progress = run_block(*now.block, patience);
      if (progress != Progress::finished) return true;
      now.block->end(totals_);
      if (--now.group->left == 0) free_.push_back(now.group);
      return collector_.finished(now.rank, *now.block);
    } catch (const LaunchFailure& failure) {
      collector_.ended(now.rank, *now.block);
      collector_.failed(now.rank, failure);
      return false;
    }
  }

  GridRun& grid_;
  std::uint64_t resident_limit_;
  Collector& collector_;
  BlockTotals totals_;
  LaunchOrder order_;
  const std::uint64_t together_;  // blocks of a cluster
  std::deque<Resident> resident_;
  std::vector<std::unique_ptr<Group>> groups_;  // in use or not
  std::vector<Group*> free_;
  std::uint64_t next_ = 0;
};

// Each host thread takes the next block.
void run_parallel(GridRun& grid, unsigned threads, Collector& collector, LaunchTotals& out) {
  const std::uint64_t blocks = grid.config.grid.count();
  const LaunchOrder order(grid.config, grid.shuffle_seed);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    try {
      BlockTotals totals(*grid.program);
      BlockRun block(grid);
      for (;;) {
        const std::uint64_t rank = next.fetch_add(1);
        if (rank >= blocks || collector.stop_before(rank)) break;
        block.begin(order(rank));
        try {
          run_block(block, kEndless);
          block.end(totals);
          if (!collector.finished(rank, block)) break;
        } catch (const LaunchFailure& failure) {
          collector.ended(rank, block);
          collector.failed(rank, failure);
          break;
        }
      }
      const std::lock_guard lock(mutex);
      out.add(block);
      out.add(*grid.program, totals);
    } catch (...) {
      collector.broken(std::current_exception());
    }
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
}

}  // namespace

GridResult run_grid(GridRun& grid, unsigned threads, std::uint64_t resident) {
  Collector collector(grid);
  LaunchTotals totals(grid);
  if (grid.parallel && threads > 1) {
    run_parallel(grid, threads, collector, totals);
  } else {
    SerialRun(grid, resident, collector).run(totals);
  }
  GridResult out = collector.result();
  if (!out.failure) {
    const std::uint64_t threads_per_block = grid.config.block.count();
    out.counters = totals.result();
    out.by_pc = std::move(totals.by_pc);
    out.counters.blocks = grid.config.grid.count();
    out.counters.warps = out.counters.blocks * ((threads_per_block + kWarpSize - 1) / kWarpSize);
  }
  out.counters.launches = 1;
  return out;
}

}  // namespace assay::sim
