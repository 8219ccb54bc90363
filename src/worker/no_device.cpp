#include <cstring>

#include "worker/attached_device.h"

namespace assay::worker {

std::int32_t attach_device() { return -1; }
void* device_allocate(std::size_t, std::size_t) { return nullptr; }
void wait_for_device() {}
bool device_release(void*) { return false; }
void device_aware_copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void device_aware_fill(void* to, unsigned char value, std::size_t bytes) {
  std::memset(to, value, bytes);
}

}  // namespace assay::worker
