// printf as called by device code (CUDA C++ Programming Guide, "Formatted Output").
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace assay::sim {

// Access to the arguments: stored one after another, each aligned to its own size of 4 or 8 bytes.
struct PrintfArguments {
  std::function<std::uint64_t(std::uint64_t offset, unsigned bytes)> read;
  std::function<std::string(std::uint64_t address)> string;  // what a %s points to
};

struct PrintfResult {
  std::string text;
  std::uint32_t arguments = 0;  // number read: the result of device printf
};

// Text that is not a conversion is printed unchanged.
PrintfResult format_printf(const std::string& format, const PrintfArguments&);

}  // namespace assay::sim
