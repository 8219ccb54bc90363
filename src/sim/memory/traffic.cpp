#include "sim/memory/traffic.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace assay::sim {
namespace {

// Which lanes hold a value that no later lane holds: the compiler makes each distance d one
// comparison of vectors.
void last_of_value(const std::uint32_t (&values)[kLanes], std::uint8_t (&last)[kLanes]) {
  std::uint32_t padded[2 * kLanes] = {};
  std::copy(std::begin(values), std::end(values), padded);
  std::uint32_t repeated[kLanes] = {};
  for (unsigned d = 1; d < kLanes; ++d) {
    for (unsigned i = 0; i < kLanes; ++i) {
      repeated[i] |= i + d < kLanes && padded[i] == padded[i + d] ? 1u : 0u;
    }
  }
  for (unsigned i = 0; i < kLanes; ++i) last[i] = repeated[i] == 0;
}

}  // namespace

std::uint32_t distinct(const std::uint32_t (&values)[kLanes]) {
  std::uint8_t last[kLanes];
  last_of_value(values, last);
  return static_cast<std::uint32_t>(std::accumulate(std::begin(last), std::end(last), 0u));
}

std::uint32_t sectors(const WarpAccess& a, const LanePattern& p) {
  if (p.uniform) return 1;
  const std::uint64_t base = p.low / kSectorBytes;
  // Without gaps between lanes there are none between sectors.
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
  std::uint32_t sector[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    sector[i] = static_cast<std::uint32_t>(all.v[i] / kSectorBytes - base);
  }
  return distinct(sector);
}

BankPasses bank_passes(const WarpAccess& a, const LanePattern& p) {
  const unsigned words = std::max(1u, a.bytes / kBankBytes);  // of a lane
  const unsigned group = kLanes / words;                      // lanes that go together
  BankPasses result;
  unsigned groups = 0;
  for (unsigned begin = 0; begin < kLanes; begin += group) {
    groups += ((a.mask >> begin) & low_lanes(group)) != 0 ? 1u : 0u;
  }
  if (p.contiguous || p.uniform) {
    result.passes = groups;
  } else if (words == 1 && p.stride % kBankBytes == 0 && p.stride != 0) {
    // 32 distinct words, so many of them in each of the banks that are met.
    const std::uint64_t step = p.stride / kBankBytes;
    result.passes = static_cast<std::uint32_t>(std::gcd(step, std::uint64_t{kBanks}));
  } else {
    // Lanes of a group have all words in common or none.
    const auto unit = static_cast<unsigned>(std::countr_zero(words * kBankBytes));
    const auto group_shift = static_cast<unsigned>(std::countr_zero(group));
    constexpr unsigned kGroupShift = 24;  // the window of shared memory is smaller
    const LaneAddresses all(a);
    std::uint32_t place[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) {
      const unsigned lane = ((a.mask >> i) & 1u) != 0 ? i : p.first;
      place[i] =
          static_cast<std::uint32_t>(all.v[i] >> unit) | ((lane >> group_shift) << kGroupShift);
    }
    std::uint8_t last[kLanes];
    last_of_value(place, last);
    std::uint8_t in_bank[8][kBanks] = {};
    for (unsigned i = 0; i < kLanes; ++i) {
      auto& banks = in_bank[place[i] >> kGroupShift];
      for (unsigned w = 0; w < words; ++w) banks[(place[i] * words + w) % kBanks] += last[i];
    }
    for (unsigned g = 0; g < words; ++g) {
      result.passes += *std::max_element(std::begin(in_bank[g]), std::end(in_bank[g]));
    }
  }
  result.replays = result.passes - groups;
  return result;
}

void count_global(Counters& c, const WarpAccess& a, const LanePattern& p, bool constant) {
  const std::uint64_t bytes = std::uint64_t{p.lanes} * a.bytes;
  if (is_read_modify_write(a.kind)) {
    c.global_atomics += p.lanes;
  } else if (constant) {
    c.constant_load_bytes += bytes;
  } else if (writes(a.kind)) {
    c.global_store_bytes += bytes;
    c.global_store_sectors += sectors(a, p);
  } else {
    c.global_load_bytes += bytes;
    c.global_load_sectors += sectors(a, p);
  }
}

void count_shared(Counters& c, const WarpAccess& a, const LanePattern& p) {
  if (is_read_modify_write(a.kind)) {
    ++c.shared_atomics;
  } else if (writes(a.kind)) {
    ++c.shared_stores;
  } else {
    ++c.shared_loads;
  }
  const BankPasses b = bank_passes(a, p);
  c.shared_passes += b.passes;
  c.shared_replays += b.replays;
  c.shared_bytes += std::uint64_t{p.lanes} * a.bytes;
}

void count_local(Counters& c, const WarpAccess& a) {
  const std::uint64_t bytes = std::uint64_t(std::popcount(a.mask)) * a.bytes;
  (writes(a.kind) ? c.local_store_bytes : c.local_load_bytes) += bytes;
}

}  // namespace assay::sim
