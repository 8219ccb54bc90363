#include "support/cuda_double/address_space.h"

#include <algorithm>

namespace assay::gpu {

std::uint64_t Range::overlap(const Range& r) const {
  const std::uint64_t first = std::max(begin, r.begin), last = std::min(end(), r.end());
  return last > first ? last - first : 0;
}

CUresult AddressSpace::create(std::uint64_t bytes, std::uint64_t capacity,
                              CUmemGenericAllocationHandle* handle) {
  if (bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
  if (bytes > capacity - physical_bytes_) return kOutOfMemory;
  *handle = physical_.size() + 1;
  physical_[*handle] = bytes;
  physical_bytes_ += bytes;
  return kSuccess;
}

CUresult AddressSpace::map(const Range& range, std::uint64_t offset,
                           CUmemGenericAllocationHandle handle) {
  const auto allocation = physical_.find(handle);
  if (allocation == physical_.end()) return kInvalidValue;
  if (range.bytes == 0 || (range.begin | range.bytes | offset) % kGranularity != 0) {
    return kInvalidValue;
  }
  const Range physical{offset, range.bytes};
  if (!Range{0, allocation->second}.contains(physical)) return kInvalidValue;
  if (std::ranges::none_of(reservations_, [&](const Range& r) { return r.contains(range); })) {
    return kInvalidValue;
  }
  for (const Mapping& m : mappings_) {
    if (m.range.overlap(range) != 0) return kInvalidValue;
    if (m.handle == handle && m.physical.overlap(physical) != 0) return kNotSupported;
  }
  mappings_.push_back({range, handle, physical, 0});
  return kSuccess;
}

CUresult AddressSpace::set_access(const Range& range, int flags) {
  if (range.bytes == 0 || (flags != 0 && flags != 1 && flags != 3)) return kInvalidValue;
  std::uint64_t mapped = 0;
  for (const Mapping& m : mappings_) {
    if (range.contains(m.range)) {
      mapped += m.range.bytes;
    } else if (range.overlap(m.range) != 0) {
      return kInvalidValue;
    }
  }
  if (mapped != range.bytes) return kInvalidValue;
  for (Mapping& m : mappings_) {
    if (range.contains(m.range)) m.flags = flags;
  }
  return kSuccess;
}

bool AddressSpace::permits(const Range& range, bool writes) const {
  if (std::ranges::none_of(reservations_, [&](const Range& r) { return r.overlap(range) != 0; })) {
    return true;
  }
  std::uint64_t accessible = 0;
  for (const Mapping& m : mappings_) {
    if (m.flags >= (writes ? 3 : 1)) accessible += m.range.overlap(range);
  }
  return accessible == range.bytes;
}

}  // namespace assay::gpu
