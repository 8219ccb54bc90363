#include "sim/runtime/memory_pools.h"

#include <algorithm>

namespace assay::sim::cuda {

bool CUmemPoolHandle_st::fits(std::uint64_t bytes) const {
  return capacity == 0 || (used <= capacity && bytes <= capacity - used);
}

bool MemoryPools::valid(cudaMemPool_t pool) const {
  return pool == device_pool_.get() || created_.contains(pool);
}

cudaMemPool_t MemoryPools::create(std::uint64_t capacity) {
  auto pool = std::make_shared<CUmemPoolHandle_st>();
  pool->capacity = capacity;
  const cudaMemPool_t handle = pool.get();
  created_[handle] = std::move(pool);
  return handle;
}

bool MemoryPools::destroy(cudaMemPool_t pool) {
  if (current_ == pool) current_ = device_pool_.get();
  return created_.erase(pool) > 0;
}

void MemoryPools::took(cudaMemPool_t pool, std::uint64_t address, std::uint64_t bytes) {
  const auto created = created_.find(pool);
  allocations_[address] = {created == created_.end() ? device_pool_ : created->second, bytes};
  pool->used += bytes;
  pool->most_used = std::max(pool->most_used, pool->used);
}

void MemoryPools::gave_back(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return;
  found->second.pool->used -= found->second.bytes;
  allocations_.erase(found);
}

}  // namespace assay::sim::cuda
