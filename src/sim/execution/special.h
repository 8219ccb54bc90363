// Special registers (PTX ISA, section 10) as slots that are filled when a warp starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/execution/program.h"

namespace assay::sim {

struct WarpRun;

// Those that are neither a SlotInit kind of their own nor clocks; values for SlotInit::Kind::other.
enum class Special : std::uint8_t {
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  nwarpid,
  smid,
  nsmid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size,
  envreg1,
  envreg2,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,  // a predicate in PTX; here 0 or 1
  reserved_shared,
  zero,
  one,
  gridid,  // 64 bits
};

// What fills a slot with the special register "%tid.x"; absent if it is a clock or unknown.
std::optional<SlotInit> special_register(std::string_view name);
bool is_wide(const SlotInit&);         // a Lanes64
bool is_clock(std::string_view name);  // read again each time

// Fills the slots of the warp's current frame that differ between warps or blocks. Registers that
// may be read before they are written are cleared for `lanes` alone.
void fill_specials(WarpRun&, const Code&, std::uint32_t lanes = ~0u);
// Fills those that never change, once per frame.
void fill_constants(const Code&, std::byte* regs, std::uint32_t* preds);

}  // namespace assay::sim
