// Describes a real GPU to the harness.
#pragma once

#include <cstdint>
#include <string>

namespace assay::device {

// The GPU behind the given driver, as a JSON object: what the driver and the management library
// report, its measured speed, and its state right after that measurement. processes/gpu_machine.h
// reads it. `copied` bytes are copied to measure the speed. Throws if there is no such GPU, or if
// the management library exists but fails.
std::string describe(const std::string& driver, const std::string& management,
                     std::uint64_t copied = std::uint64_t{1} << 30);

}  // namespace assay::device
