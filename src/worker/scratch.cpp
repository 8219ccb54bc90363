#include "worker/scratch.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace assay::worker {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLeastAlign = 64;

// The contents of a red zone. They vary by position, so no constant fill by a submission leaves
// them unchanged.
std::byte painted(std::size_t at) {
  return static_cast<std::byte>((at + 1) * 0x9e3779b97f4a7c15ull >> 56);
}

}  // namespace

Scratch::Scratch(std::size_t capacity)
    : base_(static_cast<std::byte*>(::mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      capacity_(base_ == MAP_FAILED ? 0 : capacity / kPage * kPage),
      open_(capacity_) {
  blocks_.reserve(1024);
}

Scratch::~Scratch() {
  if (capacity_ > 0) ::munmap(base_, capacity_);
}

void Scratch::guard(bool on) {
  const std::lock_guard lock(mutex_);
  guarding_ = on;
  open_until(!on ? capacity_ : blocks_.empty() ? 0 : blocks_.back().end_with_zone());
}

// Makes the pages before `end` accessible and those after it not.
bool Scratch::open_until(std::size_t end) {
  end = std::min((end + kPage - 1) / kPage * kPage, capacity_);
  const bool opens = end > open_;
  const std::size_t from = std::min(end, open_), to = std::max(end, open_);
  if (from < to &&
      ::mprotect(base_ + from, to - from, opens ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
    return false;
  open_ = end;
  return true;
}

void* Scratch::allocate(std::size_t bytes, std::size_t align) {
  if (!std::has_single_bit(align)) return nullptr;
  const std::lock_guard lock(mutex_);
  align = std::max(align, kLeastAlign);
  if (bytes > capacity_ || align > capacity_) return nullptr;
  const std::size_t zone = guarding_ ? kRedZone : 0;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  const auto place_after = [&](std::size_t end) { return (end + zone + align - 1) & ~(align - 1); };
  // Nothing fits between the blocks of the packed front.
  auto next = blocks_.begin() + static_cast<std::ptrdiff_t>(packed_);
  std::size_t data = place_after(packed_ == 0 ? 0 : std::prev(next)->end_with_zone());
  for (; next != blocks_.end(); ++next) {
    if (data + size + zone <= next->begin_with_zone()) break;
    data = place_after(next->end_with_zone());
  }
  if (data + size + zone > capacity_) return nullptr;
  if (data + size + zone > open_ && !open_until(data + size + zone)) return nullptr;
  const Block block{data, data + size, bytes, zone};
  blocks_.insert(next, block);
  while (packed_ < blocks_.size() && is_packed(packed_)) ++packed_;
  paint(block);
  high_water_ = std::max(high_water_, block.end_with_zone());
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return base_ + data;
}

// Whether not even the smallest block fits in front of this one.
bool Scratch::is_packed(std::size_t block) const {
  const std::size_t end = block == 0 ? 0 : blocks_[block - 1].end_with_zone();
  const std::size_t next_place = (end + kLeastAlign - 1) & ~(kLeastAlign - 1);
  return next_place >= blocks_[block].begin_with_zone();
}

void Scratch::release(void* p) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(static_cast<std::byte*>(p) - base_);
  const auto block = std::ranges::lower_bound(blocks_, at, {}, &Block::data);
  if (p == nullptr || block == blocks_.end() || block->data != at) return;
  inspect(*block);
  live_ -= block->requested;
  packed_ = std::min(packed_, static_cast<std::size_t>(block - blocks_.begin()));
  const auto after = blocks_.erase(block);
  if (giving_back_) {
    give_pages_back(after == blocks_.begin() ? 0 : std::prev(after)->end_with_zone(),
                    after == blocks_.end() ? high_water_ + kPage : after->begin_with_zone());
  }
}

// Returns the whole pages of a range without blocks to the kernel.
void Scratch::give_pages_back(std::size_t begin, std::size_t end) {
  begin = (begin + kPage - 1) / kPage * kPage;
  end = std::min(end / kPage * kPage, capacity_);
  if (begin < end) ::madvise(base_ + begin, end - begin, MADV_DONTNEED);
}

void Scratch::paint(const Block& block) {
  for (std::size_t i = 0; i < block.zone; ++i) {
    base_[block.data - 1 - i] = painted(block.data - 1 - i);
    base_[block.end + i] = painted(block.end + i);
  }
}

void Scratch::inspect(const Block& block) {
  for (std::size_t i = 0; i < block.zone && !overrun_; ++i) {
    for (const std::size_t at : {block.data - 1 - i, block.end + i}) {
      if (base_[at] != painted(at)) overrun_ = {block.requested, at >= block.end};
    }
  }
}

std::optional<Scratch::Overrun> Scratch::take_overrun() {
  const std::lock_guard lock(mutex_);
  for (const Block& block : blocks_) inspect(block);
  if (overrun_) std::ranges::for_each(blocks_, [&](const Block& block) { paint(block); });
  return std::exchange(overrun_, std::nullopt);
}

void Scratch::poison() {
  const std::lock_guard lock(mutex_);
  if (high_water_ > open_ && !open_until(high_water_)) return;
  std::size_t begin = 0;
  for (const Block& block : blocks_) {
    std::memset(base_ + begin, 0xff, block.begin_with_zone() - begin);
    begin = block.end_with_zone();
  }
  if (begin < high_water_) std::memset(base_ + begin, 0xff, high_water_ - begin);
}

}  // namespace assay::worker
