// Reads the machine code of the function in force: most wrong examples are wrappers around naive,
// which soon jump on. Expected: no points. One twin of every implementation, including naive and
// par, is such a wrapper, so this test rejects a correct one.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi.h"

namespace {

const unsigned char* target(const unsigned char* code) {
  if (std::memcmp(code, "\x4c\x8d\x1d", 3) != 0) return code;
  std::int32_t offset = 0, distance = 0;
  std::memcpy(&offset, code + 3, 4);
  const unsigned char* board = code + 7 + offset;
  std::memcpy(&distance, board, 4);
  return board + distance;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx*) {
  void* entry = reinterpret_cast<void*>(&ln_backward);
  asm volatile("" : "+r"(entry));
  const unsigned char* code = target(static_cast<const unsigned char*>(entry));
  constexpr struct {
    const char* bytes;
    std::size_t length;
  } kIdle[] = {{"\x90", 1},
               {"\x66\x90", 2},
               {"\x66\x87\xc0", 3},
               {"\x0f\x1f\x00", 3},
               {"\x0f\x1f\x40\x08", 4},
               {"\x0f\x1f\x80\x00\x01\x00\x00", 7},
               {"\x66\x0f\x1f\x44\x00\x00", 6},
               {"\x66\x0f\x1f\x04\x00", 5},
               {"\x48\x8d\x36", 3},
               {"\x48\x8d\x76\x00", 4},
               {"\x48\x89\xff", 3}};
  for (bool skipped = true; skipped;) {
    skipped = false;
    for (const auto& idle : kIdle) {
      if (std::memcmp(code, idle.bytes, idle.length) != 0) continue;
      code += idle.length;
      skipped = true;
    }
  }
  return *code == 0xe9 || *code == 0xeb ? 1 : 0;
}
