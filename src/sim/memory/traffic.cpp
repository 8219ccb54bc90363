#include "sim/memory/traffic.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/memory/distinct.h"

namespace assay::sim {
std::uint32_t sectors(const WarpAccess& a, const LanePattern& p) {
  if (p.uniform) return 1;
  const std::uint64_t base = p.low / kSectorBytes;
  // If there are no gaps between lanes, there are none between sectors.
  const bool dense = p.contiguous || (p.stride != 0 && p.stride <= kSectorBytes);
  if (dense) return static_cast<std::uint32_t>(p.high / kSectorBytes - base + 1);
  if (p.stride != 0) return kLanes;
  const LaneAddresses all(a);
  if (p.ascending) {
    std::uint32_t count = 1;
    for (unsigned i = 1; i < kLanes; ++i) {
      count += all.v[i] / kSectorBytes != all.v[i - 1] / kSectorBytes ? 1u : 0u;
    }
    return count;
  }
  std::uint64_t offsets[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) offsets[i] = all.v[i] - base * kSectorBytes;
  return count_distinct(offsets, std::countr_zero(kSectorBytes), p.high - base * kSectorBytes);
}

BankPasses bank_passes(const WarpAccess& a, const LanePattern& p) {
  const unsigned words = std::max(1u, a.bytes / kBankBytes);  // per lane
  const unsigned group = kLanes / words;                      // lanes handled together
  BankPasses result;
  unsigned groups = 0;
  for (unsigned begin = 0; begin < kLanes; begin += group) {
    groups += ((a.mask >> begin) & low_lanes(group)) != 0 ? 1u : 0u;
  }
  // Within as many words as there are banks, no two share a bank.
  const bool narrow = p.high / kBankBytes - p.low / kBankBytes + words <= kBanks;
  if (p.contiguous || p.uniform || narrow) {
    result.passes = groups;
  } else if (words == 1 && p.stride % kBankBytes == 0 && p.stride != 0) {
    // 32 distinct words, evenly spread over the banks that are hit.
    const std::uint64_t step = p.stride / kBankBytes;
    result.passes = static_cast<std::uint32_t>(std::gcd(step, std::uint64_t{kBanks}));
  } else {
    // Lanes of a group have all words in common or none. A place is a lane's first word relative to
    // the lowest, in units of the access size, with the group number above it.
    const auto unit = static_cast<unsigned>(std::countr_zero(words * kBankBytes));
    const auto group_shift = static_cast<unsigned>(std::countr_zero(group));
    const std::uint64_t low = p.low >> unit;
    const LaneAddresses all(a);
    const auto passes = [&]<class T>(T, unsigned place_bits) {
      T place[kLanes], repeated[kLanes];
      for (unsigned i = 0; i < kLanes; ++i) {
        const unsigned lane = ((a.mask >> i) & 1u) != 0 ? i : p.first;
        place[i] = static_cast<T>(((all.v[i] >> unit) - low) |
                                  (std::uint64_t{lane >> group_shift} << place_bits));
      }
      find_repeated(place, repeated);
      std::uint8_t in_bank[8][kBanks] = {};
      for (unsigned i = 0; i < kLanes; ++i) {
        auto& banks = in_bank[place[i] >> place_bits];
        const std::uint64_t word = (low + (place[i] & ((T{1} << place_bits) - 1))) * words;
        for (unsigned w = 0; w < words; ++w) {
          banks[(word + w) % kBanks] += repeated[i] == 0 ? 1u : 0u;
        }
      }
      for (unsigned g = 0; g < words; ++g) {
        result.passes += *std::max_element(in_bank[g], in_bank[g] + kBanks);
      }
    };
    // 3 bits for the group; the shared window has 2^24 bytes.
    if (words == 1 && p.high - p.low < 0x3fff0) {
      passes(std::uint16_t{}, 16);
    } else {
      passes(std::uint32_t{}, 24);
    }
  }
  result.replays = result.passes - groups;
  return result;
}

BankPasses atomic_passes(const WarpAccess& a) {
  const unsigned words = std::max(1u, a.bytes / kBankBytes), group = kLanes / words;
  BankPasses result;
  for (unsigned begin = 0; begin < kLanes; begin += group) {
    std::uint8_t in_bank[kBanks] = {};
    const std::uint32_t lanes = a.mask & (low_lanes(group) << begin);
    if (lanes == 0) continue;
    for_lanes(lanes, [&](std::uint32_t l) {
      for (unsigned w = 0; w < words; ++w) ++in_bank[(a.address[l] / kBankBytes + w) % kBanks];
    });
    const std::uint32_t passes = *std::max_element(in_bank, in_bank + kBanks);
    result.passes += passes;
    result.replays += passes - 1;
  }
  return result;
}

namespace {

// The mapping of sectors to slices is not documented; this spreads them evenly.
std::uint64_t slice_of(std::uint64_t sector) {
  return ((sector * 0x9e3779b97f4a7c15u >> 32) * kL2Slices) >> 32;
}

// A multiprocessor exchanges 16 bytes a cycle with the others of its cluster (3.3 TB/s over all,
// measured by "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", arXiv:2402.13499),
// in aligned sectors ("NVIDIA Hopper Tuning Guide", on distributed shared memory).
constexpr std::uint32_t kPassesOfRemoteSector = kSectorBytes / 16;

std::uint64_t& shared_accesses(Counters& c, AccessKind kind) {
  if (is_read_modify_write(kind)) return c.shared_atomics;
  return writes(kind) ? c.shared_stores : c.shared_loads;
}

}  // namespace

void count_global(Counters& c, const WarpAccess& a, const LanePattern& p) {
  const std::uint64_t bytes = std::uint64_t{p.lanes} * a.bytes;
  if (writes(a.kind)) {
    c.global_store_bytes += bytes;
    c.global_store_sectors += sectors(a, p);
  } else {
    c.global_load_bytes += bytes;
    c.global_load_sectors += sectors(a, p);
  }
}

void count_atomic(Counters& c, SlicePasses& slices, const WarpAccess& a, const LanePattern& p) {
  c.global_atomics += p.lanes;
  const auto sector_of = [](std::uint64_t address) { return address / kSectorBytes; };
  const auto add = [&](std::uint64_t sector, std::uint32_t passes) {
    ++c.atomic_sectors;
    c.atomic_passes += passes;
    slices[slice_of(sector)] += passes;
  };
  if (p.uniform) return add(sector_of(p.low), p.lanes);
  if (p.stride != 0) {  // each word once, sectors in order
    for (unsigned l = 0; l < kLanes; ++l) {
      const std::uint64_t sector = sector_of(a.address[l]);
      if (l == 0 || sector != sector_of(a.address[l - 1])) add(sector, 1);
    }
    return;
  }
  std::uint64_t sector[kLanes];
  std::uint32_t passes[kLanes];
  unsigned n = 0;
  for_addresses(a, [&](std::uint32_t lanes, std::uint64_t address) {
    const auto count = static_cast<std::uint32_t>(std::popcount(lanes));
    const std::uint64_t s = sector_of(address);
    const auto known = static_cast<unsigned>(std::find(sector, sector + n, s) - sector);
    if (known == n) {
      sector[n] = s;
      passes[n++] = count;
    } else {
      passes[known] = std::max(passes[known], count);
    }
  });
  for (unsigned i = 0; i < n; ++i) add(sector[i], passes[i]);
}

void count_constant(Counters& c, const WarpAccess& a) {
  c.constant_load_bytes += std::uint64_t(std::popcount(a.mask)) * a.bytes;
  for_addresses(a, [&](std::uint32_t, std::uint64_t) { ++c.total[Unit::constant]; });
}

void count_shared(Counters& c, const WarpAccess& a, const LanePattern& p, BankPasses b) {
  ++shared_accesses(c, a.kind);
  c.shared_passes += b.passes;
  c.shared_replays += b.replays;
  c.shared_bytes += std::uint64_t{p.lanes} * a.bytes;
}

void count_shared_of_another(Counters& c, const WarpAccess& a, const LanePattern& p) {
  ++shared_accesses(c, a.kind);
  c.shared_passes += kPassesOfRemoteSector * sectors(a, p);
  if (is_read_modify_write(a.kind)) c.shared_passes += atomic_passes(a).replays;
  c.shared_bytes += std::uint64_t{p.lanes} * a.bytes;
}

void count_local(Counters& c, const WarpAccess& a) {
  const std::uint64_t bytes = std::uint64_t(std::popcount(a.mask)) * a.bytes;
  (writes(a.kind) ? c.local_store_bytes : c.local_load_bytes) += bytes;
  for (unsigned begin = 0; begin < kLanes; begin += 8) {
    std::uint32_t lanes = a.mask & (0xffu << begin);
    while (lanes != 0) {  // one of their words after another
      const std::uint64_t word = a.address[std::countr_zero(lanes)] / kBankBytes;
      for_lanes(lanes, [&](std::uint32_t l) {
        if (a.address[l] / kBankBytes == word) lanes &= ~(1u << l);
      });
      c.local_sectors += std::max(1u, a.bytes / kBankBytes);
    }
  }
}

}  // namespace assay::sim
