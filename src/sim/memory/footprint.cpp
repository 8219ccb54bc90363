#include "sim/memory/footprint.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "sim/address_map.h"
#include "sim/memory/bits.h"
#include "sim/memory/initialised.h"

namespace assay::sim {
namespace {

TouchKind touch_of(AccessKind kind) {
  if (is_atomic(kind)) return TouchKind::atomic;
  return kind == AccessKind::store ? TouchKind::write : TouchKind::read;
}

}  // namespace

Footprint::Footprint(std::uint64_t span)
    : pages_(span / kPage / 8 + 8, "the pages that a launch accesses"),
      groups_(span / kGroup / 8 + 8, "the pages that a launch accesses"),
      groups_count_(span / kGroup) {
  for (auto& m : bits_) m = LazyMap(span / 8, "what a launch accesses");
  for (auto& m : places_)
    m = LazyMap(span / kGranule * sizeof(std::uint32_t), "where a launch accesses memory");
}

void Footprint::mark(std::uint64_t offset) {
  const std::uint64_t page = offset / kPage, group = offset / kGroup;
  set_bits_of_word(pages_.as<std::uint64_t>()[page / 64], std::uint64_t{1} << page % 64);
  set_bits_of_word(groups_.as<std::uint64_t>()[group / 64], std::uint64_t{1} << group % 64);
}

bool Footprint::note(std::uint32_t* places, std::uint64_t granule, std::uint32_t place) {
  const std::atomic_ref<std::uint32_t> slot(places[granule]);
  std::uint32_t known = slot.load(std::memory_order_relaxed);
  while ((known == 0 || place < known) &&
         !slot.compare_exchange_weak(known, place, std::memory_order_relaxed)) {
  }
  return known == 0;
}

void Footprint::add(const WarpAccess& a, const LanePattern& p) {
  const auto kind = static_cast<std::size_t>(touch_of(a.kind));
  auto* const places = places_[kind].as<std::uint32_t>();
  const std::uint64_t origin = kGlobalRange.begin;
  initialise_lanes(bits_[kind].as<std::uint64_t>(), origin, a, p);
  const auto cover = [&](std::uint64_t low, std::uint64_t end) {
    // By the end of the launch, the first access to a granule has marked its page.
    for (std::uint64_t g = low / kGranule; g <= (end - 1) / kGranule; ++g)
      if (note(places, g, a.pc + 1)) mark(g * kGranule);
  };
  if (p.contiguous || p.uniform) return cover(p.low - origin, p.end(a) - origin);
  std::uint64_t last = ~std::uint64_t{0};
  for_lanes(a.mask, [&](std::uint32_t lane) {
    const std::uint64_t offset = a.address[lane] - origin;
    if (offset / kGranule == last) return;  // aligned: no lane's bytes span two of them
    last = offset / kGranule;
    cover(offset, offset + a.bytes);
  });
}

void Footprint::take(const std::function<void(const Run&)>& f) {
  auto* const groups = groups_.as<std::uint64_t>();
  auto* const pages = pages_.as<std::uint64_t>();
  Run held;
  const std::function<void(const Run&)> join = [&](const Run& r) {
    if (held.end == r.begin && held.kind == r.kind && held.pc == r.pc) {
      held.end = r.end;
      return;
    }
    if (held.end != 0) f(held);
    held = r;
  };
  for (std::uint64_t w = 0; w <= groups_count_ / 64; ++w) {
    if (groups[w] == 0) continue;
    for (std::uint64_t rest = std::exchange(groups[w], 0); rest != 0; rest &= rest - 1) {
      const std::uint64_t group = 64 * w + static_cast<std::uint64_t>(std::countr_zero(rest));
      for (std::uint64_t set = std::exchange(pages[group], 0); set != 0; set &= set - 1)
        take_page(64 * group + static_cast<std::uint64_t>(std::countr_zero(set)), join);
    }
  }
  if (held.end != 0) f(held);
}

void Footprint::forget(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t offset = address - kGlobalRange.begin;
  const std::uint64_t first = offset / kGranule, end = (offset + bytes + kGranule - 1) / kGranule;
  for (auto& m : bits_) m.clear(first * kGranule / 8, (end - first) * kGranule / 8);
  for (auto& m : places_)
    m.clear(first * sizeof(std::uint32_t), (end - first) * sizeof(std::uint32_t));
}

// Takes granule by granule, and within one, by runs of bits.
void Footprint::take_page(std::uint64_t page, const std::function<void(const Run&)>& f) {
  constexpr std::uint64_t kGranules = kPage / kGranule;
  const std::uint64_t first = page * kGranules;
  const auto at = [&](std::size_t kind) { return bits_[kind].as<std::uint64_t>() + first; };
  for (std::uint64_t g = 0; g < kGranules; ++g) {
    const std::uint64_t written = at(2)[g], updated = at(1)[g] & ~written,
                        read = at(0)[g] & ~written & ~updated;
    const std::uint64_t by_kind[] = {read, updated, written};
    std::uint64_t rest = read | updated | written;
    while (rest != 0) {
      const auto begin = static_cast<unsigned>(std::countr_zero(rest));
      std::size_t kind = 0;
      while ((by_kind[kind] >> begin & 1) == 0) ++kind;
      const auto length = static_cast<unsigned>(std::countr_one(by_kind[kind] >> begin));
      const std::uint64_t address = kGlobalRange.begin + (first + g) * kGranule + begin;
      f({address, address + length, static_cast<TouchKind>(kind),
         places_[kind].as<std::uint32_t>()[first + g] - 1});
      rest &= ~(low_bits(length) << begin);
    }
  }
  for (std::size_t kind = 0; kind < 3; ++kind) {
    std::memset(at(kind), 0, kGranules * sizeof(std::uint64_t));
    std::memset(places_[kind].as<std::uint32_t>() + first, 0, kGranules * sizeof(std::uint32_t));
  }
}

}  // namespace assay::sim
