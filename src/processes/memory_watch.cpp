#include "processes/memory_watch.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "processes/channel.h"
#include "processes/memory_figures.h"
#include "util/pass_descriptor.h"
#include "util/transient_fault.h"

namespace assay::processes {

// Runs the child as another user, as workers run: what the kernel reveals about memory depends on
// that.
bool MemoryWatch::works() {
  constexpr uid_t kSomebody = 65534;
  const Channel line;
  const pid_t parent = ::getpid();
  const pid_t child = ::_Fork();
  if (child < 0) throw_errno("cannot fork");
  if (child == 0) {
    sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const sock_fprog program{1, &allow};
    if (::geteuid() == 0) ::syscall(SYS_setresuid, kSomebody, kSomebody, kSomebody);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of users, which clears it
    if (::getppid() != parent) ::_exit(1);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const auto listener = static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                                     SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    if (listener < 0 || !pass_descriptor(line.theirs(), listener)) ::_exit(1);
    for (;;) ::pause();
  }
  struct Ender {
    ~Ender() {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    pid_t pid;
  } const ender{child};
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!pidfd) throw_errno("cannot open a process descriptor");
  pollfd entries[] = {{line.ours(), POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
  while (::poll(entries, 2, -1) < 0 && errno == EINTR) {
  }
  return take_descriptor(line.ours()) && exact_resident(child).has_value();
}

void MemoryWatch::serve() {
  // Receiving would block if nothing is waiting any more, for example because the caller was
  // killed.
  pollfd entry{listener_.get(), POLLIN, 0};
  if (::poll(&entry, 1, 0) != 1 || (entry.revents & POLLIN) == 0) return;
  seccomp_notif call{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return;
  look();
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // Fails only if the caller has died.
  static_cast<void>(::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer));
}

void MemoryWatch::look() {
  const auto cores = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  const std::uint64_t error = counter_error(cores);
  const Resident counted = counted_resident(pid_).value_or(Resident{});
  if (!counters_are_exact() && counted.sum + error <= peak_.sum &&
      counted.anonymous + error <= peak_.anonymous)
    return;
  peak_.raise_to(exact_resident(pid_).value_or(Resident{}));
}

}  // namespace assay::processes
