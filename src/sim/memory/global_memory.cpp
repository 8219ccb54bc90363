#include "sim/memory/global_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/memory/bits.h"
#include "sim/memory/footprint.h"
#include "sim/memory/lazy_map.h"
#include "sim/memory/race_shadow.h"

namespace assay::sim {
namespace {

constexpr std::uint64_t kAlign = 256, kGap = 256;
// Limits on live allocations, and on these and freed ones together.
constexpr std::size_t kMostAllocations = 1 << 18, kMostRemembered = 1 << 20;

constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit = kAlign) {
  return (n + unit - 1) / unit * unit;
}

// Ensures that nobody else gets the range, and that dereferencing a device pointer on the host
// faults.
void reserve_global_range() {
  static const int error = [] {
    void* const at = reinterpret_cast<void*>(kGlobalRange.begin);
    void* const p = mmap(at, kGlobalRange.bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) return errno;
    if (p == at) return 0;
    munmap(p, kGlobalRange.bytes);  // kernels before 4.17 take the address as a mere hint
    return EEXIST;
  }();
  if (error != 0) {
    throw std::runtime_error(
        fmt::format("cannot reserve the simulated GPU's addresses {:#x} to {:#x}: {}",
                    kGlobalRange.begin, kGlobalRange.begin + kGlobalRange.bytes, strerror(error)));
  }
}

// Copies bits within a map; the ranges may overlap.
void copy_bits(std::uint64_t* bits, std::uint64_t target, std::uint64_t source,
               std::uint64_t bytes) {
  std::vector<std::uint64_t> copy((bytes + 63) / 64);
  for (std::uint64_t i = 0; i < copy.size(); ++i) {
    const std::uint64_t at = source + 64 * i, n = std::min<std::uint64_t>(64, bytes - 64 * i);
    copy[i] = bits[at / 64] >> at % 64;
    if (n > 64 - at % 64) copy[i] |= bits[at / 64 + 1] << (64 - at % 64);
  }
  std::uint64_t done = 0;
  for_bit_words(target, bytes, [&](std::uint64_t word, std::uint64_t mask) {
    const auto shift = static_cast<unsigned>(std::countr_zero(mask));
    const std::uint64_t at = done / 64, behind = done % 64;
    std::uint64_t value = copy[at] >> behind;
    if (behind != 0 && at + 1 < copy.size()) value |= copy[at + 1] << (64 - behind);
    bits[word] = (bits[word] & ~mask) | ((value << shift) & mask);
    done += static_cast<std::uint64_t>(std::popcount(mask));
  });
}

}  // namespace

struct GlobalMemory::State {
  std::uint64_t capacity, span;  // span: of addresses in use, from kGlobalRange.begin
  LazyMap bytes, initialised;
  LazyMap undefined;  // the uninitialised bytes that were stored as such, not merely never written
  std::atomic<bool> any_undefined{false};
  std::unique_ptr<RaceShadow> races;
  std::unique_ptr<Footprint> footprint;
  std::map<std::uint64_t, Allocation> allocations;   // live and freed, by address
  std::uint64_t cursor = kGlobalRange.begin + kGap;  // where the search for room continues
  std::uint64_t live = 0, high_water = 0;
  std::size_t live_count = 0;
  // Freed blocks whose shadows have not gone back to the system: their range, and their total size.
  struct {
    std::uint64_t begin = ~std::uint64_t{0}, end = 0, bytes = 0;
  } freed;

  explicit State(std::uint64_t capacity_bytes)
      : capacity(capacity_bytes),
        // Wider than the capacity, so that it takes long until a freed address is used again.
        span(std::min(kGlobalRange.bytes,
                      std::max<std::uint64_t>(4 * round_up(capacity_bytes), 1 << 26))),
        bytes(span, "global memory"),
        initialised(span / 8, "the initialised bits of global memory"),
        undefined(span / 8, "the undefined bits of global memory") {}

  std::uint64_t end() const { return kGlobalRange.begin + span; }

  // The offsets around a freed block, extended to page boundaries of all maps but excluding live
  // blocks. So a page shared by several blocks is freed with the last of them.
  std::pair<std::uint64_t, std::uint64_t> free_around(
      std::map<std::uint64_t, Allocation>::const_iterator block) const {
    constexpr std::uint64_t kAround = 8 * 4096;  // a page of bits
    const std::uint64_t end_of_block = block->first + block->second.bytes;
    std::uint64_t low = std::max(kGlobalRange.begin, block->first / kAround * kAround);
    std::uint64_t high = std::min(end(), (end_of_block + kAround - 1) / kAround * kAround);
    for (auto it = block; it != allocations.begin();) {
      const Allocation& a = (--it)->second;
      if (a.address + a.bytes <= low) break;
      if (a.live) low = round_up(a.address + a.bytes);
    }
    for (auto it = std::next(block); it != allocations.end() && it->first < high; ++it) {
      if (it->second.live) high = it->first;
    }
    return {low - kGlobalRange.begin, high - kGlobalRange.begin};
  }

  // For small blocks, waits until enough have accumulated to be worth system calls. The shadows of
  // live blocks between them go too: they hold no information between launches.
  void forget_shadows(std::uint64_t address, std::uint64_t size) {
    constexpr std::uint64_t kLarge = 1 << 20, kMany = 16 << 20;
    if (size < kLarge) {
      freed = {std::min(freed.begin, address), std::max(freed.end, address + size),
               freed.bytes + size};
      if (freed.bytes < kMany) return;
      address = freed.begin;
      size = freed.end - freed.begin;
      freed = {};
    }
    if (races != nullptr) races->forget(address, size);
    if (footprint != nullptr) footprint->forget(address, size);
  }

  // The first multiple of `align` at or after `from` with room for `size` bytes and the gaps; 0:
  // none.
  std::uint64_t room(std::uint64_t from, std::uint64_t size, std::uint64_t align) const {
    std::uint64_t candidate = round_up(from, align);
    auto it = allocations.upper_bound(candidate);
    if (it != allocations.begin()) --it;
    for (; it != allocations.end(); ++it) {
      const Allocation& a = it->second;
      if (!a.live || a.address + a.bytes + kGap <= candidate) continue;
      if (candidate + size + kGap <= a.address) break;
      candidate = round_up(round_up(a.address + a.bytes) + kGap, align);
    }
    return candidate + size + kGap <= end() ? candidate : 0;
  }

  const Allocation* holder(std::uint64_t address) const {
    auto it = allocations.upper_bound(address);
    if (it == allocations.begin()) return nullptr;
    const Allocation& a = std::prev(it)->second;
    return address - a.address < a.bytes ? &a : nullptr;
  }
};

GlobalMemory::GlobalMemory(std::uint64_t capacity_bytes) {
  reserve_global_range();
  state_ = std::make_unique<State>(std::min(capacity_bytes, kGlobalRange.bytes / 2));
}

GlobalMemory::~GlobalMemory() = default;

std::optional<std::uint64_t> GlobalMemory::allocate(std::uint64_t bytes, std::string name,
                                                    bool read_only, std::uint64_t align) {
  State& s = *state_;
  if (bytes == 0) throw std::invalid_argument("an allocation of no bytes");
  if (bytes > s.capacity - s.live || s.live_count == kMostAllocations) return std::nullopt;
  if (s.allocations.size() >= kMostRemembered)
    std::erase_if(s.allocations, [](const auto& a) { return !a.second.live; });
  const std::uint64_t size = round_up(bytes);
  std::uint64_t address = s.room(s.cursor, size, align);
  if (address == 0) address = s.room(kGlobalRange.begin + kGap, size, align);
  if (address == 0) return std::nullopt;

  // Forgets freed allocations there.
  auto it = s.allocations.lower_bound(address);
  const Allocation* const there = s.holder(address);
  if (there != nullptr && there->address < address) --it;
  while (it != s.allocations.end() && it->first < address + size) it = s.allocations.erase(it);

  Allocation& a = s.allocations[address];
  a.address = address;
  a.bytes = bytes;
  a.data = store() + (address - kGlobalRange.begin);
  a.initialised = initialised_bits() + (address - kGlobalRange.begin) / 64;
  a.read_only = read_only;
  a.live = true;
  a.name = std::move(name);
  s.cursor = address + size + kGap;
  s.live += bytes;
  ++s.live_count;
  s.high_water = std::max(s.high_water, s.live);
  return address;
}

bool GlobalMemory::free(std::uint64_t address) {
  State& s = *state_;
  const auto it = s.allocations.find(address);
  if (it == s.allocations.end() || !it->second.live) return false;
  it->second.live = false;
  const std::uint64_t bytes = it->second.bytes;
  s.live -= bytes;
  --s.live_count;
  // Clears now instead of at the next use of the range, so that the memory goes back to the system.
  const auto [begin, end] = s.free_around(it);
  s.bytes.clear(begin, end - begin);
  s.initialised.clear(begin / 8, (end - begin) / 8);
  if (s.any_undefined) s.undefined.clear(begin / 8, (end - begin) / 8);
  s.forget_shadows(address, bytes);
  return true;
}

const Allocation* GlobalMemory::find(std::uint64_t address) const {
  return state_->holder(address);
}

const Allocation* GlobalMemory::nearest(std::uint64_t address) const {
  const auto& all = state_->allocations;
  const Allocation *below = nullptr, *above = nullptr;
  for (auto it = all.upper_bound(address); it != all.end() && above == nullptr; ++it) {
    if (it->second.live) above = &it->second;
  }
  for (auto it = all.upper_bound(address); it != all.begin() && below == nullptr;) {
    if ((--it)->second.live) below = &it->second;
  }
  if (below == nullptr || above == nullptr) return below == nullptr ? above : below;
  const std::uint64_t end = below->address + below->bytes;
  const std::uint64_t behind = address < end ? 0 : address - end;
  return behind < above->address - address ? below : above;
}

std::byte* GlobalMemory::data(std::uint64_t address, std::uint64_t bytes) const {
  const Allocation* a = find(address);
  if (a == nullptr || !a->live || bytes > a->bytes - (address - a->address)) return nullptr;
  return a->data + (address - a->address);
}

void GlobalMemory::mark_initialised(std::uint64_t address, std::uint64_t bytes) {
  set_bits(initialised_bits(), address - kGlobalRange.begin, bytes);
}

void GlobalMemory::mark_undefined(std::uint64_t address, std::uint32_t bits) {
  State& s = *state_;
  const std::uint64_t at = address - kGlobalRange.begin, mask = std::uint64_t{bits} << at % 64;
  const auto word = [&](const LazyMap& map) {
    return std::atomic_ref<std::uint64_t>(map.as<std::uint64_t>()[at / 64]);
  };
  word(s.initialised).fetch_and(~mask, std::memory_order_relaxed);
  word(s.undefined).fetch_or(mask, std::memory_order_relaxed);
  s.any_undefined = true;
}

bool GlobalMemory::holds_undefined(std::uint64_t address, std::uint64_t bytes, bool any) const {
  const State& s = *state_;
  if (!any && !s.any_undefined) return false;
  const auto* const initialised = s.initialised.as<std::uint64_t>();
  const auto* const undefined = s.undefined.as<std::uint64_t>();
  constexpr std::uint64_t kMostPadding = 15;  // after a member, before one of 16 bytes
  std::uint64_t run = 0, longest = 0;
  for_bit_words(address - kGlobalRange.begin, bytes, [&](std::uint64_t w, std::uint64_t mask) {
    const std::uint64_t held = mask & ~initialised[w] & (any ? mask : undefined[w]);
    if (held == 0) {
      run = 0;
      return;
    }
    for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
      run = (held & (rest & -rest)) != 0 ? run + 1 : 0;
      longest = std::max(longest, run);
    }
  });
  return any ? longest != 0 : longest == bytes || longest > kMostPadding;
}

void GlobalMemory::copy_initialised(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  const std::uint64_t source = from - kGlobalRange.begin, target = to - kGlobalRange.begin;
  if (all_bits(initialised_bits(), source, bytes))
    return set_bits(initialised_bits(), target, bytes);
  copy_bits(initialised_bits(), target, source, bytes);
  if (state_->any_undefined)
    copy_bits(state_->undefined.as<std::uint64_t>(), target, source, bytes);
}

std::byte* GlobalMemory::store() const { return state_->bytes.as<std::byte>(); }

std::uint64_t* GlobalMemory::initialised_bits() const {
  return state_->initialised.as<std::uint64_t>();
}

RaceShadow& GlobalMemory::race_shadow() const {
  if (state_->races == nullptr) state_->races = std::make_unique<RaceShadow>(state_->span);
  return *state_->races;
}

Footprint& GlobalMemory::footprint() const {
  if (state_->footprint == nullptr) state_->footprint = std::make_unique<Footprint>(state_->span);
  return *state_->footprint;
}

std::uint64_t GlobalMemory::live_bytes() const { return state_->live; }
std::uint64_t GlobalMemory::high_water() const { return state_->high_water; }
void GlobalMemory::reset_high_water() { state_->high_water = state_->live; }
std::uint64_t GlobalMemory::capacity() const { return state_->capacity; }

}  // namespace assay::sim
