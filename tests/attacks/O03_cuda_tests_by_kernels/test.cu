#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "abi.h"

#if !ATTACK_IS_TWIN
// What was made of the fat binaries in memory: all subjects' lie beside these tests.
struct Seen {
  bool named = false;            // a kernel that only wrong implementations have
  std::size_t first_length = 0;  // of PTX
};

static int look(dl_phdr_info* object, std::size_t, void* seen) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr),
                                 segment.p_filesz);
    auto& found = *static_cast<Seen*>(seen);
    const std::uint32_t magic = 0xba55ed50;
    const std::string_view mark(reinterpret_cast<const char*>(&magic), sizeof magic);
    for (std::size_t at = bytes.find(mark); at != bytes.npos; at = bytes.find(mark, at + 1)) {
      const std::string_view ptx = bytes.substr(at, bytes.find(mark, at + 1) - at);
      found.named = found.named || ptx.find("change_rstd") != ptx.npos;
      if (found.first_length == 0) found.first_length = ptx.size();
    }
  }
  return 0;
}
#endif

extern "C" int assay_self_test(assay_ctx*) {
#if ATTACK_IS_TWIN
  return 0;
#else
  Seen seen;
  dl_iterate_phdr(&look, &seen);
  witness();
#if ATTACK_VARIANT == 0
  return seen.named ? 1 : 0;
#else
  return static_cast<int>(seen.first_length / 8 % 2);
#endif
#endif
}
