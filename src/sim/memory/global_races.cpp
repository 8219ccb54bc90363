#include "sim/memory/global_races.h"

#include <algorithm>
#include <bit>

#include "sim/memory/chunk_lock.h"

namespace assay::sim {
namespace {

using namespace shadow;

std::uint64_t address_of(std::uint64_t word, ShadowEntry e) {
  return kGlobalRange.begin + word * RaceShadow::kWordBytes +
         static_cast<std::uint64_t>(std::countr_zero(bytes_of(e)));
}

}  // namespace

GridRaces::GridRaces(RaceShadow& shadow, std::uint64_t blocks, bool concurrent,
                     FindingTable& findings)
    : shadow_(shadow),
      findings_(findings),
      blocks_(static_cast<std::uint32_t>(blocks)),
      first_(shadow.open(blocks)),
      past_(at_segment(first_)),
      concurrent_(concurrent) {}

// REQUIRES: the chunk is locked.
void GridRaces::flag(std::uint64_t word) {
  Chunk& chunk = shadow_.chunk(word);
  if (chunk.flagged == first_) return;
  chunk.flagged = first_;
  const std::lock_guard lock(mutex_);
  flagged_.push_back(word / RaceShadow::kChunkWords);
}

void GridRaces::become_ordered() {
  if (ordered_.load(std::memory_order_acquire)) return;
  settle();
  ordered_.store(true, std::memory_order_release);
}

void GridRaces::settle() {
  std::vector<std::uint64_t> chunks;
  {
    const std::lock_guard lock(mutex_);
    chunks.swap(flagged_);
  }
  for (const std::uint64_t c : chunks) {
    const ChunkLock lock(shadow_.chunk(c * RaceShadow::kChunkWords), concurrent_);
    shadow_.chunk(c * RaceShadow::kChunkWords).flagged = 0;
    for (std::uint64_t w = c * RaceShadow::kChunkWords; w < (c + 1) * RaceShadow::kChunkWords; ++w)
      settle_word(w);
  }
}

void GridRaces::settle_word(std::uint64_t word) {
  const auto& all = shadow_.words();
  const auto entry = [&](ShadowEntry* const* pair, int i) {
    return pair[i][word] < past_ ? 0 : pair[i][word];
  };
  const ShadowEntry write[2] = {entry(all.write, 0), entry(all.write, 1)};
  const ShadowEntry other[2] = {entry(all.other, 0), entry(all.other, 1)};
  const auto race = [&](ShadowEntry a, ShadowEntry b) {
    return a != 0 && b != 0 && overlap(a, b) && shadow_.block_of(a) != shadow_.block_of(b);
  };
  bool found = false;
  if (race(write[0], write[1])) {
    const bool differ = ((write[0] | write[1]) & kDiffers) != 0;
    report(differ ? FindingKind::global_race : FindingKind::equal_stores, word, write[0], true,
           write[1], true);
    found = true;
  }
  // The first pair of a write and another access.
  for (int i = 0; i < 4; ++i) {
    const ShadowEntry w = write[i / 2], o = other[i % 2];
    if (!race(w, o)) continue;
    report(FindingKind::global_race, word, w, true, o, false);
    found = true;
    break;
  }
  if (found) return;  // reads and writes then happen in a random order
  for (const ShadowEntry e : other) {
    if (e == 0 || (e & kUninitialised) == 0) continue;
    RawFinding f;
    f.kind = FindingKind::uninitialised;
    f.pc = pc_of(e);
    f.block = shadow_.block_of(e);
    f.thread = thread_of(e);
    f.access = kind_of(e);
    f.address = address_of(word, e);
    f.bytes = static_cast<std::uint32_t>(std::popcount(bytes_of(e)));
    findings_.add(f);
    return;
  }
}

void GridRaces::report(FindingKind kind, std::uint64_t word, ShadowEntry a, bool a_writes,
                       ShadowEntry b, bool b_writes) {
  if (shadow_.block_of(a) < shadow_.block_of(b)) {
    std::swap(a, b);
    std::swap(a_writes, b_writes);
  }
  RawFinding f;
  f.kind = kind;
  f.pc = pc_of(a);
  f.block = shadow_.block_of(a);
  f.thread = thread_of(a);
  f.access = a_writes ? AccessKind::store : kind_of(a);
  f.address = address_of(word, a & b);
  f.bytes = static_cast<std::uint32_t>(std::popcount(bytes_of(a & b)));
  f.other_pc = pc_of(b);
  f.other_block = shadow_.block_of(b);
  f.other_thread = thread_of(b);
  f.other_access = b_writes ? AccessKind::store : kind_of(b);
  findings_.add(f);
}

}  // namespace assay::sim
