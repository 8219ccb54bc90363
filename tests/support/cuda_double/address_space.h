// Which addresses of the device are reserved, mapped and accessible. It holds no bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "gpu/driver.h"

namespace assay::gpu {

inline constexpr std::uint64_t kGranularity = 2 << 20;  // of physical allocations and mappings

struct Range {
  std::uint64_t begin = 0, bytes = 0;

  std::uint64_t end() const { return begin + bytes; }
  bool contains(const Range& r) const {
    return r.begin >= begin && r.begin - begin <= bytes && r.bytes <= bytes - (r.begin - begin);
  }
  // The bytes that both ranges share.
  std::uint64_t overlap(const Range&) const;
};

class AddressSpace {
 public:
  void reserve(const Range& range) { reservations_.push_back(range); }

  // kOutOfMemory if all physical memory together would exceed `capacity`.
  CUresult create(std::uint64_t bytes, std::uint64_t capacity, CUmemGenericAllocationHandle*);
  // The range lies in one reservation and no part of it is mapped. `offset` counts from the start
  // of the physical allocation. kNotSupported if these physical bytes are mapped elsewhere.
  CUresult map(const Range&, std::uint64_t offset, CUmemGenericAllocationHandle);
  // The range consists of whole mappings. `flags`: 0 no access, 1 reads, 3 reads and writes.
  CUresult set_access(const Range&, int flags);

  // Whether a copy or fill may access the range. Ranges outside all reservations, such as module
  // variables, are permitted: the simulator checks those.
  bool permits(const Range&, bool writes) const;

 private:
  struct Mapping {
    Range range;
    CUmemGenericAllocationHandle handle = 0;
    Range physical;  // within the allocation
    int flags = 0;
  };

  std::vector<Range> reservations_;
  std::map<CUmemGenericAllocationHandle, std::uint64_t> physical_;  // bytes
  std::uint64_t physical_bytes_ = 0;                                // of all
  std::vector<Mapping> mappings_;
};

}  // namespace assay::gpu
