// Asks the loader whose code is called: follows the jump to the function in force and takes the
// nearest name (dladdr) for an answer. Also looks for such names in its own file. Expected: accepts
// every implementation, so it rejects no wrong example. The library has no names except those of
// the ABI.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "abi.h"

namespace {

// leaq board(%rip), %r11; movslq (%r11), %r10; addq %r10, %r11; jmp *%r11
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
  void* entry = dlsym(RTLD_DEFAULT, "ln_backward");
  if (entry == nullptr) entry = reinterpret_cast<void*>(&ln_backward);
  const unsigned char* code = target(static_cast<const unsigned char*>(entry));
  Dl_info info{};
  if (dladdr(code, &info) != 0 && info.dli_sname != nullptr &&
      (std::strstr(info.dli_sname, "naive") != nullptr ||
       std::strstr(info.dli_sname, "wrong") != nullptr))
    return 1;
  std::ifstream in(info.dli_fname, std::ios::binary);
  const std::string library{std::istreambuf_iterator<char>(in), {}};
  const std::string prefix = "naive_";  // built at run time, or the search would find this string
  return library.find(prefix + "ln_backward") != library.npos ? 2 : 0;
}
