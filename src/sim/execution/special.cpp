#include "sim/execution/special.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/execution/block_run.h"

namespace assay::sim {
namespace {

using Kind = SlotInit::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kThread{{
    {"%tid.x", Kind::tid_x},
    {"%tid.y", Kind::tid_y},
    {"%tid.z", Kind::tid_z},
    {"%laneid", Kind::lane_id},
    {"%warpid", Kind::warp_id},
}};

constexpr std::array<std::pair<std::string_view, Special>, 46> kOther{{
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%nwarpid", Special::nwarpid},
    {"%smid", Special::smid},
    {"%nsmid", Special::nsmid},
    {"%lanemask_eq", Special::lanemask_eq},
    {"%lanemask_le", Special::lanemask_le},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_ge", Special::lanemask_ge},
    {"%lanemask_gt", Special::lanemask_gt},
    {"%dynamic_smem_size", Special::dynamic_smem_size},
    {"%total_smem_size", Special::total_smem_size},
    {"%aggr_smem_size", Special::total_smem_size},
    {"%reserved_smem_offset_begin", Special::zero},
    {"%reserved_smem_offset_end", Special::zero},
    {"%reserved_smem_offset_cap", Special::zero},
    {"%reserved_smem_offset_1", Special::reserved_shared},
    {"%envreg0", Special::zero},
    {"%envreg1", Special::envreg1},
    {"%envreg2", Special::envreg2},
    {"%is_explicit_cluster", Special::is_explicit_cluster},
    {"%clusterid.x", Special::clusterid_x},
    {"%clusterid.y", Special::clusterid_y},
    {"%clusterid.z", Special::clusterid_z},
    {"%nclusterid.x", Special::nclusterid_x},
    {"%nclusterid.y", Special::nclusterid_y},
    {"%nclusterid.z", Special::nclusterid_z},
    {"%cluster_ctaid.x", Special::cluster_ctaid_x},
    {"%cluster_ctaid.y", Special::cluster_ctaid_y},
    {"%cluster_ctaid.z", Special::cluster_ctaid_z},
    {"%cluster_nctaid.x", Special::cluster_nctaid_x},
    {"%cluster_nctaid.y", Special::cluster_nctaid_y},
    {"%cluster_nctaid.z", Special::cluster_nctaid_z},
    {"%cluster_ctarank", Special::cluster_ctarank},
    {"%cluster_nctarank", Special::cluster_nctarank},
    {"%gridid", Special::gridid},
    {"%ctaid.w", Special::zero},
    {"%nctaid.w", Special::one},
    {"%tid.w", Special::zero},
}};

std::uint32_t value_of(Special s, const BlockRun& block) {
  const LaunchConfig& config = block.grid->config;
  const Dim3 &grid = config.grid, &cluster = config.cluster;
  switch (s) {
    case Special::ntid_x: return config.block.x;
    case Special::ntid_y: return config.block.y;
    case Special::ntid_z: return config.block.z;
    case Special::ctaid_x: return block.ctaid[0];
    case Special::ctaid_y: return block.ctaid[1];
    case Special::ctaid_z: return block.ctaid[2];
    case Special::nctaid_x: return grid.x;
    case Special::nctaid_y: return grid.y;
    case Special::nctaid_z: return grid.z;
    case Special::nwarpid: return kMaxResidentThreads / kWarpSize;
    case Special::smid: return static_cast<std::uint32_t>(block.index % kMultiprocessors);
    case Special::nsmid: return kMultiprocessors;
    case Special::dynamic_smem_size: return static_cast<std::uint32_t>(config.dynamic_shared_bytes);
    case Special::total_smem_size: return block.grid->shared_bytes();
    case Special::reserved_shared: return block.grid->reserved_shared();
    case Special::envreg1: return static_cast<std::uint32_t>(block.grid->workspace >> 32);
    case Special::envreg2: return static_cast<std::uint32_t>(block.grid->workspace);
    case Special::clusterid_x: return block.ctaid[0] / cluster.x;
    case Special::clusterid_y: return block.ctaid[1] / cluster.y;
    case Special::clusterid_z: return block.ctaid[2] / cluster.z;
    case Special::nclusterid_x: return grid.x / cluster.x;
    case Special::nclusterid_y: return grid.y / cluster.y;
    case Special::nclusterid_z: return grid.z / cluster.z;
    case Special::cluster_ctaid_x: return block.ctaid[0] % cluster.x;
    case Special::cluster_ctaid_y: return block.ctaid[1] % cluster.y;
    case Special::cluster_ctaid_z: return block.ctaid[2] % cluster.z;
    case Special::cluster_nctaid_x: return cluster.x;
    case Special::cluster_nctaid_y: return cluster.y;
    case Special::cluster_nctaid_z: return cluster.z;
    case Special::cluster_ctarank: return block.rank;
    case Special::cluster_nctarank: return static_cast<std::uint32_t>(cluster.count());
    case Special::is_explicit_cluster:
      return cluster.count() > 1 || block.grid->program->info.required_cluster.x != 0 ? 1 : 0;
    case Special::gridid:
    case Special::one: return 1;
    default: return 0;
  }
}

// The %lanemask_* value of each lane.
std::uint32_t lane_mask(Special s, unsigned lane) {
  const std::uint32_t eq = 1u << lane, lt = eq - 1;
  switch (s) {
    case Special::lanemask_eq: return eq;
    case Special::lanemask_le: return lt | eq;
    case Special::lanemask_lt: return lt;
    case Special::lanemask_ge: return ~lt;
    default: return ~(lt | eq);
  }
}

template <class Lanes, class F>
void fill(Lanes& lanes, F&& value) {
  for (unsigned l = 0; l < kLanes; ++l) lanes.v[l] = value(l);
}

template <class Lanes>
void clear(Lanes& row, std::uint32_t lanes) {
  for (unsigned l = 0; l < kLanes; ++l) {
    if ((lanes >> l & 1u) != 0) row.v[l] = 0;
  }
}

void fill_other(WarpRun& w, std::uint32_t offset, Special s) {
  if (s >= Special::lanemask_eq && s <= Special::lanemask_gt) {
    fill(w.r32(offset), [&](unsigned l) { return lane_mask(s, l); });
  } else if (const std::uint32_t value = value_of(s, *w.block); s == Special::gridid) {
    fill(w.r64(offset), [&](unsigned) { return value; });
  } else {
    fill(w.r32(offset), [&](unsigned) { return value; });
  }
}

}  // namespace

std::optional<SlotInit> special_register(std::string_view name) {
  for (const auto& [text, kind] : kThread) {
    if (name == text) return SlotInit{kind, 0, 0};
  }
  for (const auto& [text, special] : kOther) {
    if (name == text) return SlotInit{Kind::other, 0, static_cast<std::uint64_t>(special)};
  }
  return std::nullopt;
}

bool is_wide(const SlotInit& init) {
  return init.kind == Kind::value64 || init.kind == Kind::local_address ||
         init.kind == Kind::undefined64 ||
         (init.kind == Kind::other && static_cast<Special>(init.value) == Special::gridid);
}

bool is_clock(std::string_view name) {
  return name == "%clock" || name == "%clock_hi" || name == "%clock64" || name == "%globaltimer" ||
         name == "%globaltimer_lo" || name == "%globaltimer_hi";
}

void fill_constants(const Code& code, std::byte* regs, std::uint32_t* preds) {
  for (const SlotInit& s : code.slots) {
    if (s.kind == Kind::value32) {
      fill(*reinterpret_cast<Lanes32*>(regs + s.offset),
           [&](unsigned) { return static_cast<std::uint32_t>(s.value); });
    } else if (s.kind == Kind::value64) {
      fill(*reinterpret_cast<Lanes64*>(regs + s.offset), [&](unsigned) { return s.value; });
    } else if (s.kind == Kind::predicate) {
      preds[s.offset] = static_cast<std::uint32_t>(s.value);
    } else if (s.kind == Kind::lane_id) {
      fill(*reinterpret_cast<Lanes32*>(regs + s.offset), [](unsigned l) { return l; });
    }
  }
}

void fill_specials(WarpRun& w, const Code& code, std::uint32_t lanes) {
  const Dim3& size = w.block->grid->config.block;
  const std::uint32_t first = w.index * kWarpSize;
  // Each row of threads is some whole warps, or there is one row: 32 divisions less.
  const bool row_of_warps = size.x % kWarpSize == 0 || size.y * size.z == 1;
  for (const SlotInit& s : code.slots) {
    switch (s.kind) {
      case Kind::tid_x:
        if (row_of_warps) {
          fill(w.r32(s.offset), [&](unsigned l) { return first % size.x + l; });
        } else {
          fill(w.r32(s.offset), [&](unsigned l) { return (first + l) % size.x; });
        }
        break;
      case Kind::tid_y:
        fill(w.r32(s.offset), [&](unsigned l) { return (first + l) / size.x % size.y; });
        break;
      case Kind::tid_z:
        fill(w.r32(s.offset), [&](unsigned l) { return (first + l) / (size.x * size.y); });
        break;
      case Kind::warp_id: fill(w.r32(s.offset), [&](unsigned) { return w.index; }); break;
      case Kind::other: fill_other(w, s.offset, static_cast<Special>(s.value)); break;
      case Kind::local_address:
        fill(w.r64(s.offset), [&](unsigned) { return w.frame->local_base + s.value; });
        break;
      case Kind::undefined32: clear(w.r32(s.offset), lanes); break;
      case Kind::undefined64: clear(w.r64(s.offset), lanes); break;
      case Kind::undefined_predicate: w.preds[s.offset] &= ~lanes; break;
      case Kind::predicate:
      case Kind::value32:
      case Kind::value64:
      case Kind::lane_id: break;
    }
  }
}

}  // namespace assay::sim
