// What a cell is measured on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

enum class Device : std::uint8_t {
  cpu,   // answers in C++
  sim,   // answers in CUDA, on the simulated GPU
  cuda,  // answers in CUDA, on the machine's real GPU
};

inline constexpr Device kDevices[] = {Device::cpu, Device::sim, Device::cuda};

// The name in files and on command lines.
constexpr const char* to_string(Device device) {
  switch (device) {
    case Device::cpu: return "cpu";
    case Device::sim: return "sim";
    case Device::cuda: return "cuda";
  }
  return "?";
}

constexpr std::optional<Device> device_from(std::string_view text) {
  for (const Device device : kDevices) {
    if (text == to_string(device)) return device;
  }
  return std::nullopt;
}

}  // namespace assay
