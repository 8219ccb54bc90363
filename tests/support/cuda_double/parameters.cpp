#include "support/cuda_double/parameters.h"

#include <cstdint>
#include <cstring>

#include "gpu/driver.h"

namespace assay::gpu {
namespace {

using Block = std::vector<std::byte>;

std::optional<Block> from_pointers(const sim::KernelInfo& info, void** params) {
  Block block(info.params_bytes);
  for (std::size_t i = 0; i < info.param_bytes.size(); ++i) {
    if (params[i] == nullptr) return std::nullopt;
    std::memcpy(block.data() + info.param_offset[i], params[i], info.param_bytes[i]);
  }
  return block;
}

std::optional<Block> from_buffer(const sim::KernelInfo& info, void** extra) {
  const void* buffer = nullptr;
  const std::size_t* bytes = nullptr;
  for (; reinterpret_cast<std::uintptr_t>(*extra) != kLaunchParamEnd; extra += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(extra[0]);
    if (key == kLaunchParamBufferPointer) {
      buffer = extra[1];
    } else if (key == kLaunchParamBufferSize) {
      bytes = static_cast<const std::size_t*>(extra[1]);
    } else {
      return std::nullopt;
    }
  }
  if (buffer == nullptr || bytes == nullptr || *bytes < info.params_bytes) return std::nullopt;
  Block block(info.params_bytes);
  std::memcpy(block.data(), buffer, block.size());
  return block;
}

}  // namespace

std::optional<Block> parameter_block(const sim::KernelInfo& info, void** params, void** extra) {
  if (params != nullptr && extra != nullptr) return std::nullopt;
  if (info.params_bytes == 0) return Block();
  if (params != nullptr) return from_pointers(info, params);
  return extra != nullptr ? from_buffer(info, extra) : std::nullopt;
}

}  // namespace assay::gpu
