// Copies from global to shared memory that go on while the threads work (cp.async), in groups.
#pragma once

#include <cstdint>

namespace {

[[maybe_unused]] __device__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// What the thread has asked for since the last group is one.
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All but the thread's newest kPending groups have arrived.
template <int kPending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace
