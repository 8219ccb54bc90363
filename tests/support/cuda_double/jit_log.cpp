#include "support/cuda_double/jit_log.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "gpu/driver.h"

namespace assay::gpu {

JitLog::JitLog(unsigned options, const int* names, void** values) {
  for (unsigned i = 0; i < options; ++i) {
    if (names[i] == kJitErrorLogBuffer) buffer_ = static_cast<char*>(values[i]);
    if (names[i] == kJitErrorLogBufferBytes) bytes_ = &values[i];
  }
}

void JitLog::write(std::string_view text) const {
  if (buffer_ == nullptr || bytes_ == nullptr) return;
  const auto room = reinterpret_cast<std::uintptr_t>(*bytes_);
  if (room == 0) return;
  const std::size_t length = std::min<std::size_t>(text.size(), room - 1);
  std::memcpy(buffer_, text.data(), length);
  buffer_[length] = '\0';
  *bytes_ = std::bit_cast<void*>(std::uintptr_t{length + 1});
}

}  // namespace assay::gpu
