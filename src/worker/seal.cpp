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

constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;

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
const sock_filter kSeal[] = {
    {kLoad, 0, 0, kArch},
    {kIfEqual, 1, 0, kArchitecture},
    {kReturn, 0, 0, SECCOMP_RET_KILL_PROCESS},
    {kLoad, 0, 0, kNumber},
    {kIfEqual, 4, 0, __NR_mmap},      // to the type
    {kIfEqual, 6, 0, __NR_mremap},    // to the old size
    {kIfEqual, 10, 0, __NR_seccomp},  // to the refusal
    {kIfEqual, 9, 0, __NR_sendmsg},
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
    {kLoad, 0, 0, low_half(3)},  // mmap's flags: the type must be MAP_PRIVATE
    {kMask, 0, 0, kMapType},
    {kIfEqual, 4, 5, MAP_PRIVATE},
    {kLoad, 0, 0, low_half(1)},  // mremap's old size: 0 would map shared memory a second time
    {kIfEqual, 0, 2, 0},
    {kLoad, 0, 0, high_half(1)},
    {kIfEqual, 1, 0, 0},
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
    {kReturn, 0, 0, kRefuse},
};

const sock_filter kWatch[] = {
    {kLoad, 0, 0, kNumber},
    {kIfEqual, 12, 0, __NR_munmap},  // to the hand-over
    {kIfEqual, 11, 0, __NR_brk},
    {kIfEqual, 10, 0, __NR_mremap},
    {kIfEqual, 2, 0, __NR_madvise},  // to the advice
    {kIfEqual, 5, 0, __NR_mmap},     // to the place
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
    {kLoad, 0, 0, low_half(2)},
    {kIfEqual, 5, 0, MADV_DONTNEED},
    {kIfEqual, 4, 0, MADV_FREE},
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
    {kLoad, 0, 0, low_half(3)},
    {kMask, 0, 0, MAP_FIXED},
    {kIfEqual, 0, 1, MAP_FIXED},
    {kReturn, 0, 0, SECCOMP_RET_USER_NOTIF},
    {kReturn, 0, 0, SECCOMP_RET_ALLOW},
};

template <std::size_t n>
int install(const sock_filter (&filter)[n], unsigned flags) {
  const sock_fprog program{n, const_cast<sock_filter*>(filter)};
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

}  // namespace

int watch_memory() { return install(kWatch, SECCOMP_FILTER_FLAG_NEW_LISTENER); }

bool seal() { return install(kSeal, 0) == 0; }

}  // namespace assay::worker
