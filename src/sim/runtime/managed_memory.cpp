#include "sim/runtime/managed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace assay::sim::cuda {
namespace {

constexpr std::uint64_t kPage = 4096;

// The host's bytes are at the device's addresses.
std::byte* host_bytes(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

bool map_page(std::uint64_t page, int protection) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return mmap(host_bytes(page), kPage, protection, flags, -1, 0) != MAP_FAILED;
}

template <class Body>
void for_pages(std::uint64_t address, std::uint64_t bytes, Body&& body) {
  for (std::uint64_t page = address / kPage * kPage; page < address + bytes; page += kPage)
    body(page);
}

}  // namespace

bool ManagedMemory::open_pages(std::uint64_t address, std::uint64_t bytes) {
  bool done = true;
  for_pages(address, bytes, [&](std::uint64_t page) {
    if (pages_[page]++ == 0) done &= map_page(page, PROT_READ | PROT_WRITE);
  });
  return done;
}

void ManagedMemory::close_pages(std::uint64_t address, std::uint64_t bytes) {
  for_pages(address, bytes, [&](std::uint64_t page) {
    const auto at = pages_.find(page);
    if (--at->second > 0) return;
    pages_.erase(at);
    map_page(page, PROT_NONE);
  });
}

bool ManagedMemory::add(std::uint64_t address, std::uint64_t bytes) {
  if (!open_pages(address, bytes)) {
    close_pages(address, bytes);
    return false;
  }
  std::memset(host_bytes(address), 0, bytes);
  allocations_[address].resize(bytes);
  return true;
}

void ManagedMemory::remove(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return;
  close_pages(address, found->second.size());
  allocations_.erase(found);
}

void ManagedMemory::clear() {
  while (!allocations_.empty()) remove(allocations_.begin()->first);
}

bool ManagedMemory::contains(std::uint64_t address, std::uint64_t bytes) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [begin, known] = *std::prev(after);
  return address - begin < known.size() && bytes <= known.size() - (address - begin);
}

void ManagedMemory::send_changes(bool exactly, const Write& write) {
  const std::size_t most_between = exactly ? 0 : kPage;
  for (auto& [address, known] : allocations_) {
    const std::byte* const host = host_bytes(address);
    std::size_t first = 0, last = 0;  // of the run so far
    const auto send = [&, at = address, &all = known] {
      if (first == last) return;
      std::memcpy(all.data() + first, host + first, last - first);
      write(at + first, std::span(all).subspan(first, last - first));
    };
    for (std::size_t block = 0; block < known.size(); block += kPage) {
      const std::size_t end = std::min<std::size_t>(block + kPage, known.size());
      if (std::memcmp(host + block, known.data() + block, end - block) == 0) continue;
      for (std::size_t i = block; i < end; ++i) {
        if (host[i] == known[i]) continue;
        if (i - last > most_between || first == last) send(), first = i;
        last = i + 1;
      }
    }
    send();
  }
}

void ManagedMemory::fetch(const Read& read) {
  for (auto& [address, known] : allocations_) {
    read(known, address);
    std::memcpy(host_bytes(address), known.data(), known.size());
  }
}

}  // namespace assay::sim::cuda
