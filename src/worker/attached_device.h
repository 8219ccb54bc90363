// The device that a worker's submission runs on, chosen at link time: none (no_device.cpp), or a
// simulated GPU in another process (cuda_device.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::worker {

// Call it before the submission is loaded. Returns the ordinal for assay_ctx::device: -1 if there
// is none.
std::int32_t attach_device();

void* device_allocate(std::size_t bytes, std::size_t align);  // NULL when full, or without a device
bool device_release(void*);                                   // false: not from device_allocate

// Called when the submission's call has returned: waits for all work it left in streams.
void wait_for_device();

// memcpy and memset that also handle device memory.
void device_aware_copy(void* to, const void* from, std::size_t bytes);
void device_aware_fill(void* to, unsigned char value, std::size_t bytes);

}  // namespace assay::worker
