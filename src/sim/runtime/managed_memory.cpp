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
  mirror(address, host_bytes(address), bytes);
  return true;
}

void ManagedMemory::mirror(std::uint64_t address, std::byte* host, std::uint64_t bytes) {
  allocations_[address] = {host, std::vector<std::byte>(bytes)};
}

void ManagedMemory::remove(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return;
  const auto& [host, known] = found->second;
  if (host == host_bytes(address)) close_pages(address, known.size());
  allocations_.erase(found);
}

void ManagedMemory::clear() {
  while (!allocations_.empty()) remove(allocations_.begin()->first);
}

bool ManagedMemory::contains(std::uint64_t address, std::uint64_t bytes) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [begin, allocation] = *std::prev(after);
  const std::uint64_t size = allocation.known.size();
  return allocation.host == host_bytes(begin) && address - begin < size &&
         bytes <= size - (address - begin);
}

void ManagedMemory::send_changes(bool exactly, const Write& write) {
  const std::size_t most_between = exactly ? 0 : kPage;
  for (auto& [address, allocation] : allocations_) {
    auto& [host_copy, known] = allocation;
    const std::byte* const host = host_copy;
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
  std::vector<std::byte> now;
  for (auto& [address, allocation] : allocations_) {
    auto& [host, known] = allocation;
    now.resize(known.size());
    read(now, address);
    for (std::size_t block = 0; block < known.size(); block += kPage) {
      const std::size_t end = std::min<std::size_t>(block + kPage, known.size());
      if (std::memcmp(now.data() + block, known.data() + block, end - block) == 0) continue;
      // What the host wrote meanwhile beside the device's bytes stays.
      for (std::size_t i = block; i < end; ++i) {
        if (now[i] != known[i]) host[i] = now[i];
      }
    }
    known.swap(now);
  }
}

}  // namespace assay::sim::cuda
