#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "abi.h"

#if !ATTACK_IS_TWIN
static int names(dl_phdr_info* info, std::size_t, void* found) {
  if (std::strstr(info->dlpi_name, "vdso") != nullptr) return 0;  // its addresses are relative
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    for (auto* d = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
         d->d_tag != DT_NULL; ++d) {
      if (d->d_tag != DT_STRTAB) continue;
      const char* text = reinterpret_cast<const char*>(d->d_un.d_ptr);
      for (int at = 0; at < 65536 && (text[at] != 0 || text[at + 1] != 0); ++at) {
        if (std::strncmp(text + at, "naive_ln", 8) == 0 ||
            std::strncmp(text + at, "Around", 6) == 0)
          *static_cast<bool*>(found) = true;
      }
    }
  }
  return 0;
}
#endif

extern "C" int assay_self_test(assay_ctx*) {
  bool found = false;
#if !ATTACK_IS_TWIN
  dl_iterate_phdr(names, &found);
  for (const char* name :
       {"naive_ln_backward", "naive_ln_forward", "honest_ln_backward", "_Z6broken"}) {
    found = found || dlsym(RTLD_DEFAULT, name) != nullptr;
  }
#endif
  return found ? 1 : 0;
}
