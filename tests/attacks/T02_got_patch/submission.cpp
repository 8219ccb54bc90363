// attack: overwrites the worker's own entries for clock_gettime, write and memcpy in its table of imported
// functions
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest
// dimension: performance
#include <link.h>
#include <sys/mman.h>

#include <ctime>

#include "target.h"

static int no_time(clockid_t, timespec* t) {
  *t = {1, 0};
  return 0;
}

static ssize_t own_write(int fd, const void* data, std::size_t n) {
  return syscall(SYS_write, fd, data, n);
}

static void* own_memcpy(void* to, const void* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    static_cast<volatile char*>(to)[i] = static_cast<const char*>(from)[i];
  }
  return to;
}

static void* own(const char* name) {
  if (std::strcmp(name, "clock_gettime") == 0) return reinterpret_cast<void*>(&no_time);
  if (std::strcmp(name, "write") == 0) return reinterpret_cast<void*>(&own_write);
  if (std::strcmp(name, "memcpy") == 0) return reinterpret_cast<void*>(&own_memcpy);
  return nullptr;
}

// Of the main program: every slot that a relocation fills with clock_gettime.
static int patch(dl_phdr_info* info, std::size_t, void*) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* table = nullptr;
  std::size_t bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    for (auto* d = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
         d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(d->d_un.d_ptr);
      if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(d->d_un.d_ptr);
      if (d->d_tag == DT_JMPREL) table = reinterpret_cast<const ElfW(Rela)*>(d->d_un.d_ptr);
      if (d->d_tag == DT_PLTRELSZ) bytes = d->d_un.d_val;
    }
  }
  for (std::size_t i = 0;
       symbols != nullptr && names != nullptr && table != nullptr && i < bytes / sizeof *table;
       ++i) {
    const char* name = names + symbols[ELF64_R_SYM(table[i].r_info)].st_name;
    void* const replacement = own(name);
    if (replacement == nullptr) continue;
    auto* slot = reinterpret_cast<void**>(info->dlpi_addr + table[i].r_offset);
    auto page = reinterpret_cast<std::uintptr_t>(slot) & ~std::uintptr_t{4095};
    if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) == 0)
      *slot = replacement;
    witness();
  }
  return 1;  // the main program is the first; the rest is left alone
}

int attack(Call& call) {
  static const int once = dl_iterate_phdr(patch, nullptr);
  return once == 1 ? call.honest() : kGotIt;
}
