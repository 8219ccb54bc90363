// A real GPU as the harness is told of it.
#pragma once

#include <cstdint>
#include <string>

namespace assay::device {

// The GPU of the driver that is named, as a JSON object: what the driver and the management library
// say of it, how fast it is, and its state right after that was measured. processes/gpu_machine.h
// reads it. `copied` bytes are copied to measure that. Throws when there is no such GPU, and when
// the management library is there but fails.
std::string describe(const std::string& driver, const std::string& management,
                     std::uint64_t copied = std::uint64_t{1} << 30);

}  // namespace assay::device
