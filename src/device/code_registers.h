// Reads from machine code what ptxas decided: registers of kernels, memory of variables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace assay::device {

bool is_machine_code(std::string_view image);  // ELF

// Registers per thread, by the kernel's mangled name: EIATTR_REGCOUNT in the section .nv.info of an
// ELF file for sm_90, as nvcc 13 writes it (`cuobjdump -elf` shows the same). Kernels whose entry
// is missing or lies outside the image are left out. A submission that sends no machine code is
// simulated without register counts.
std::map<std::string, std::uint32_t> registers_of(std::string_view code);

// Bytes of global memory that the module's variables take: the sections .nv.global and
// .nv.global.init.
std::uint64_t variable_bytes_of(std::string_view code);

}  // namespace assay::device
