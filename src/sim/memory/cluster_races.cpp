#include "sim/memory/cluster_races.h"

#include <algorithm>
#include <bit>

#include "sim/memory/lane_pattern.h"

namespace assay::sim {
namespace {

constexpr std::uint64_t kWordBytes = 4;

}  // namespace

ClusterRaces::ClusterRaces(std::uint32_t blocks, std::uint32_t warps, std::uint64_t shared_bytes)
    : blocks_(blocks) {
  for (Block& b : blocks_) {
    b.words.resize((shared_bytes + kWordBytes - 1) / kWordBytes);
    b.arrivals.resize(warps);
    b.waits.resize(warps);
  }
}

// Whatever earlier clusters did has fewer arrivals than any warp has waits now.
void ClusterRaces::begin(std::span<const std::uint64_t> blocks) {
  completed_ += 2;
  begun_at_ = completed_;
  ordered_otherwise_ = false;
  for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
    Block& b = blocks_[rank];
    b.index = blocks[rank];
    std::ranges::fill(b.arrivals, completed_);
    std::ranges::fill(b.waits, completed_);
    b.last_from_others = {};
    b.ended = false;
  }
}

void ClusterRaces::arrive(std::uint32_t rank, std::uint32_t warp) {
  blocks_[rank].arrivals[warp] = completed_ + 1;
}

void ClusterRaces::complete() { ++completed_; }

void ClusterRaces::wait(std::uint32_t rank, std::uint32_t warp) {
  blocks_[rank].waits[warp] = completed_;
}

const ClusterRaces::Stamp* ClusterRaces::race(const Word& word, const Stamp& now,
                                              std::uint32_t waits) {
  const auto conflicts = [&](const Stamp& s) {
    return s.arrivals >= waits && s.rank != now.rank && (s.bytes & now.bytes) != 0 &&
           (writes(s.kind) || writes(now.kind)) && !(is_atomic(s.kind) && is_atomic(now.kind));
  };
  for (const auto* of_kind : {&word.load, &word.store, &word.atomic}) {
    for (const Stamp& s : *of_kind) {
      if (conflicts(s)) return &s;
    }
  }
  return nullptr;
}

void ClusterRaces::record(Word& word, const Stamp& now) {
  Stamp(&of_kind)[2] = is_atomic(now.kind)             ? word.atomic
                       : now.kind == AccessKind::store ? word.store
                                                       : word.load;
  Stamp* to = &of_kind[of_kind[0].arrivals > of_kind[1].arrivals ? 1 : 0];
  for (Stamp& s : of_kind) {
    if (s.rank == now.rank && s.arrivals != 0) to = &s;
  }
  const std::uint8_t before =
      to->rank == now.rank && to->arrivals == now.arrivals ? to->bytes : std::uint8_t{0};
  *to = now;
  to->bytes |= before;
}

std::optional<ClusterRaces::Conflict> ClusterRaces::access(std::uint32_t owner, std::uint32_t rank,
                                                           const WarpAccess& a) {
  Block& memory = blocks_[owner];
  const Block& block = blocks_[rank];
  const auto first = static_cast<std::uint32_t>(std::countr_zero(a.mask));
  if (owner != rank && memory.ended) return Conflict{Fault::ended, first, {}};
  if (ordered_otherwise_ || blocks_.size() == 1) return std::nullopt;
  const std::uint32_t waits = block.waits[a.warp];
  if (owner != rank && waits == begun_at_) return Conflict{Fault::unborn, first, {}};

  Stamp now;
  now.arrivals = block.arrivals[a.warp];
  now.pc = a.pc;
  now.rank = static_cast<std::uint8_t>(rank);
  now.kind = a.kind;
  std::optional<Conflict> found;
  for_lanes(a.mask, [&](std::uint32_t lane) {
    now.thread = static_cast<std::uint16_t>(a.thread_of(lane));
    const std::uint64_t begin = a.address[lane], end = begin + a.bytes;
    for (std::uint64_t at = begin / kWordBytes * kWordBytes; at < end; at += kWordBytes) {
      const std::uint64_t low = std::max(begin, at) - at,
                          high = std::min(end, at + kWordBytes) - at;
      now.bytes = static_cast<std::uint8_t>((1u << high) - (1u << low));
      Word& word = memory.words[at / kWordBytes];
      if (!found) {
        if (const Stamp* other = race(word, now, waits))
          found = Conflict{Fault::unordered, lane, access_of(*other)};
      }
      record(word, now);
    }
  });
  if (owner != rank && now.arrivals >= memory.last_from_others.arrivals)
    memory.last_from_others = now;
  return found;
}

std::optional<ClusterRaces::Access> ClusterRaces::end(std::uint32_t rank) {
  Block& block = blocks_[rank];
  block.ended = true;
  const Stamp& last = block.last_from_others;
  if (ordered_otherwise_ || last.arrivals < std::ranges::max(block.waits)) return std::nullopt;
  return access_of(last);
}

}  // namespace assay::sim
