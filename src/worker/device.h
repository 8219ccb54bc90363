// The device that a worker's submission runs on, chosen when the worker is linked: none
// (no_device.cpp), or a simulated GPU in another process (cuda_device.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::worker {

// Before the submission is loaded. The ordinal for assay_ctx::device: -1 if there is none.
std::int32_t attach_device();

void* device_allocate(std::size_t bytes, std::size_t align);  // NULL when full, or without a device
bool device_release(void*);                                   // false: not from device_allocate

// The submission's call has returned: the harness waits for all that it left in streams.
void wait_for_device();

// memcpy and memset, for device memory too.
void device_aware_copy(void* to, const void* from, std::size_t bytes);
void device_aware_fill(void* to, unsigned char value, std::size_t bytes);

}  // namespace assay::worker
