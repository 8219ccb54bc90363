#include "sim/memory/finding_table.h"

namespace assay::sim {
namespace {

auto rank(const RawFinding& f) {
  return std::tie(f.block, f.thread, f.address, f.bytes, f.access, f.other_block, f.other_thread,
                  f.other_access);
}

}  // namespace

void FindingTable::add(const RawFinding& f) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = findings_.try_emplace({f.kind, f.pc, f.other_pc, f.shared}, f);
  if (fresh) return;
  RawFinding& kept = it->second;
  const std::uint64_t count = kept.count + f.count;
  if (rank(f) < rank(kept)) kept = f;
  kept.count = count;
}

std::vector<RawFinding> FindingTable::sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<RawFinding> result;
  for (const auto& [place, finding] : findings_) result.push_back(finding);
  return result;
}

}  // namespace assay::sim
