// What machine code tells of its kernels: how many registers ptxas gave each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace assay::device {

bool is_machine_code(std::string_view image);  // ELF

// Registers a thread, by the kernel's mangled name: EIATTR_REGCOUNT in the section .nv.info of an
// ELF file for sm_90, as nvcc 13 writes it (`cuobjdump -elf` shows the same). What is not told, or
// stands outside of the image, is left out: whoever sends no code is simulated without.
std::map<std::string, std::uint32_t> registers_of(std::string_view code);

}  // namespace assay::device
