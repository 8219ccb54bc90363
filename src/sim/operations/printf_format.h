// printf as device code calls it (CUDA C++ Programming Guide, "Formatted Output").
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace assay::sim {

// Where the arguments lie: each aligned to its own size of 4 or 8 bytes, one after another.
struct PrintfArguments {
  std::function<std::uint64_t(std::uint64_t offset, unsigned bytes)> read;
  std::function<std::string(std::uint64_t address)> string;  // what a %s points to
};

struct PrintfResult {
  std::string text;
  std::uint32_t arguments = 0;  // read: the result of device printf
};

// What is no conversion of printf is printed as it stands.
PrintfResult format_printf(const std::string& format, const PrintfArguments&);

}  // namespace assay::sim
