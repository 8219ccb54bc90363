#include "worker/seal.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace assay::worker {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which architecture's system calls does the worker make?"
#endif

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kMask = BPF_ALU | BPF_AND | BPF_K,
                        kIfEqual = BPF_JMP | BPF_JEQ | BPF_K, kReturn = BPF_RET | BPF_K;
constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr), kArch = offsetof(seccomp_data, arch);
constexpr std::uint32_t low_half(int argument) {
  return offsetof(seccomp_data, args) + static_cast<std::uint32_t>(argument) * 8;
}
constexpr std::uint32_t high_half(int argument) { return low_half(argument) + 4; }

constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kMapType = 0xf;  // of mmap's flags: private, shared, droppable ...

// {operation, instructions to skip if equal, if not, value}
const sock_filter kProgram[] = {
    {kLoad, 0, 0, kArch},
    {kIfEqual, 1, 0, kArchitecture},
    {kReturn, 0, 0, SECCOMP_RET_KILL_PROCESS},
    {kLoad, 0, 0, kNumber},
    {kIfEqual, 3, 0, __NR_mmap},     // to the type
    {kIfEqual, 5, 0, __NR_mremap},   // to the old size
    {kIfEqual, 9, 0, __NR_seccomp},  // to the refusal
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
    {kLoad, 0, 0, low_half(3)},  // mmap's flags, of which the type must be MAP_PRIVATE
    {kMask, 0, 0, kMapType},
    {kIfEqual, 4, 5, MAP_PRIVATE},
    {kLoad, 0, 0, low_half(1)},  // mremap's old size, of which 0 maps shared memory once more
    {kIfEqual, 0, 2, 0},
    {kLoad, 0, 0, high_half(1)},
    {kIfEqual, 1, 0, 0},
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
    {kReturn, 0, 0, kRefuse},
};

}  // namespace

bool seal() {
  const sock_fprog program{sizeof kProgram / sizeof *kProgram, const_cast<sock_filter*>(kProgram)};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace assay::worker
