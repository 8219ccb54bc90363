#include "util/process_limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "assay/error.h"

namespace assay {

void raise_open_files(std::uint64_t least) {
  constexpr rlim_t kEnough = 65536;  // enough, even if millions are allowed
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw Error(fmt::format("cannot read the limit on open files: {}", std::strerror(errno)));
  const rlim_t wanted = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  if (wanted > limit.rlim_cur) {
    limit.rlim_cur = wanted;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= least) return;
  throw Error(
      fmt::format("a process may open {} files here, and assay needs {}: raise the limit, as with "
                  "`ulimit -n {}`",
                  limit.rlim_cur, least, 4 * least));
}

void lift_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_AS, &none) == 0) return;
  if (limit.rlim_max == RLIM_INFINITY) {
    limit.rlim_cur = RLIM_INFINITY;
    if (::setrlimit(RLIMIT_AS, &limit) == 0) return;
  }
  throw Error(fmt::format(
      "a process may have {} MiB of memory here, for which submissions would be blamed: lift the "
      "limit with `ulimit -v unlimited`",
      limit.rlim_max >> 20));
}

// By default glibc raises the mmap threshold, up to 32 MiB, with each larger block that is freed,
// and makes eight heaps per core. The heaps of a server's threads would each grow to the size that
// one answer needs.
void give_back_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_ARENA_MAX, static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 2L)));
#endif
}

void require_proc() {
  if (::access("/proc/self/exe", F_OK) == 0) return;
  throw Error(
      "/proc is not there, which tells where assay lies and how much memory a submission takes: "
      "mount it as root with `mount -t proc proc /proc`");
}

void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);  // takes the lowest free
                                                                          // descriptor
  }
}

}  // namespace assay
