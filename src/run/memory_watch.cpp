#include "run/memory_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "run/memory_figures.h"

namespace assay::run {
namespace {

// The kernel's running sum, which is cheap and off by at most counter_error().
std::uint64_t quick_resident(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/statm", pid));
  std::uint64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<MemoryWatch> MemoryWatch::attach(pid_t pid, int pidfd, int remote) {
  Fd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, remote, 0)));
  if (!listener) return std::nullopt;
  return MemoryWatch(pid, std::move(listener));
}

void MemoryWatch::serve() {
  // Receiving blocks where nothing waits any more, as when the caller was killed meanwhile.
  pollfd entry{listener_.get(), POLLIN, 0};
  if (::poll(&entry, 1, 0) != 1 || (entry.revents & POLLIN) == 0) return;
  seccomp_notif call{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return;
  look();
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // Fails only where the caller has ended.
  static_cast<void>(::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer));
}

void MemoryWatch::look() {
  const auto cores = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (quick_resident(pid_) + counter_error(cores) <= peak_) return;
  peak_ = std::max(peak_, exact_resident(pid_).value_or(0));
}

}  // namespace assay::run
