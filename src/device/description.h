// Describes a real GPU to the harness.
#pragma once

#include <string>

namespace assay::device {

// The GPU behind the given driver, as a JSON object: what the driver and the management library
// report, its measured speed, and its state right after that measurement. processes/gpu_machine.h
// reads it. Throws if there is no such GPU, or if the management library exists but fails.
std::string describe(const std::string& driver, const std::string& management);

}  // namespace assay::device
