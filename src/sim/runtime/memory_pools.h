// Pools of stream-ordered memory: the device's own and those that the program creates. Freed memory
// is returned to the device at once, so what a pool has reserved is what is in use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "sim/runtime/abi.h"

namespace assay::sim::cuda {

// All sizes in bytes.
struct CUmemPoolHandle_st {
  std::uint64_t capacity = 0;  // 0: the device's
  std::uint64_t release_threshold = 0;
  std::uint64_t used = 0, most_used = 0;

  bool fits(std::uint64_t bytes) const;
};

class MemoryPools {
 public:
  cudaMemPool_t device_pool() { return device_pool_.get(); }
  // Where cudaMallocAsync takes memory: the device's pool, unless the program chose another.
  cudaMemPool_t current() { return current_; }
  bool valid(cudaMemPool_t) const;

  cudaMemPool_t create(std::uint64_t capacity);
  // What was allocated stays until it is freed. False: not a pool of the program's.
  bool destroy(cudaMemPool_t);
  void choose(cudaMemPool_t pool) { current_ = pool; }

  void took(cudaMemPool_t, std::uint64_t address, std::uint64_t bytes);
  void gave_back(std::uint64_t address);  // of any allocation

 private:
  using Pool = std::shared_ptr<CUmemPoolHandle_st>;  // also held by its allocations
  struct Allocation {
    Pool pool;
    std::uint64_t bytes;
  };

  Pool device_pool_ = std::make_shared<CUmemPoolHandle_st>();
  cudaMemPool_t current_ = device_pool_.get();
  std::map<cudaMemPool_t, Pool> created_;
  std::map<std::uint64_t, Allocation> allocations_;  // by address
};

}  // namespace assay::sim::cuda
