// Extracts the PTX and the machine code that nvcc embeds in host objects.
//
// nvcc's host code registers a wrapper {u32 0x466243b1, u32 version, const void* data, ...}. The
// data is a container: a header {u32 0xba55ed50, u16 version, u16 header bytes, u64 payload bytes},
// then entries up to the end of the payload. An entry has a header {u16 kind (1: PTX, 2: ELF), u16
// version, u32 header bytes, u64 payload bytes, ..., at 28: u32 architecture (80 for compute_80),
// at 40: u64 flags (0x2000: compressed with LZ4, 0x8000: with Zstandard)} and its payload. Observed
// in output of nvcc 13.0; NVIDIA does not document the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::sim {

// what() says what is wrong with the fat binary and how to compile the program instead.
class FatBinaryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct PtxImage {
  std::uint32_t architecture = 0;  // 80 for compute_80
  std::string_view text;           // within the container, without the closing NUL
};

// The PTX for the highest architecture that is not above `newest`. Throws FatBinaryError; accepts
// any bytes.
PtxImage find_ptx(std::span<const std::byte> container, std::uint32_t newest);

// The machine code (an ELF image) for exactly this architecture, 90 for sm_90; empty if there is no
// uncompressed one. Throws FatBinaryError; accepts any bytes.
std::string_view find_code(std::span<const std::byte> container, std::uint32_t architecture);

// The container that a wrapper in this process's memory points to; its size is taken from its
// header. Throws FatBinaryError if the wrapper or the container is invalid.
std::span<const std::byte> container_of(const void* wrapper);

}  // namespace assay::sim
