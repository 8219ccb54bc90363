#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "device/remote_device.h"
#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"
#include "wire/worker.h"
#include "worker/attached_device.h"

namespace assay::worker {
namespace {

namespace cuda = sim::cuda;

constexpr std::size_t kAlignment = 256;  // cudaMalloc's alignment

// Allocations by the address handed out, which differs from the allocation's start if it had to be
// aligned further.
struct Blocks {
  std::mutex mutex;
  std::map<void*, void*> allocation;
};

Blocks& blocks() {
  static Blocks& instance = *new Blocks;
  return instance;
}

}  // namespace

// The link's memory is made resident at once, so that it does not count as the submission's.
std::int32_t attach_device() {
  void* link = ::mmap(nullptr, device::kLinkBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, wire::kLinkFd, 0);
  if (link == MAP_FAILED) std::_Exit(75);
  ::close(wire::kLinkFd);
  auto remote =
      std::make_unique<device::RemoteDevice>(static_cast<std::byte*>(link), wire::kCallFd);
  cuda::Runtime::instance().attach(std::move(remote), sim::RunLog(wire::kLogFd));
  return 0;
}

void wait_for_device() {
  cuda::Runtime& runtime = cuda::Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  if (runtime.uses_device()) runtime.host_waits_for_all();
}

void* device_allocate(std::size_t bytes, std::size_t align) {
  if (!std::has_single_bit(align)) return nullptr;
  const std::size_t extra = align > kAlignment ? align - kAlignment : 0;
  void* base = nullptr;
  if (bytes + extra < bytes) return nullptr;
  if (cuda::cudaMalloc(&base, std::max<std::size_t>(bytes + extra, 1)) != cuda::cudaSuccess) {
    cuda::cudaGetLastError();  // a full device must not show up as an error of the submission's
                               // CUDA calls
    return nullptr;
  }
  const std::size_t step = std::max(align, kAlignment);
  const std::uintptr_t up = -reinterpret_cast<std::uintptr_t>(base) & (step - 1);
  void* const p = static_cast<std::byte*>(base) + up;
  const std::lock_guard lock(blocks().mutex);
  blocks().allocation[p] = base;
  return p;
}

bool device_release(void* p) {
  void* base = nullptr;
  {
    const std::lock_guard lock(blocks().mutex);
    const auto block = blocks().allocation.find(p);
    if (block == blocks().allocation.end()) return cuda::is_device(p);
    base = block->second;
    blocks().allocation.erase(block);
  }
  cuda::cudaFree(base);
  return true;
}

void device_aware_copy(void* to, const void* from, std::size_t bytes) {
  if (cuda::is_device(to) || cuda::is_device(from)) {
    cuda::cudaMemcpy(to, from, bytes, cuda::cudaMemcpyDefault);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void device_aware_fill(void* to, unsigned char value, std::size_t bytes) {
  if (cuda::is_device(to)) {
    cuda::cudaMemset(to, value, bytes);
  } else {
    std::memset(to, value, bytes);
  }
}

}  // namespace assay::worker
