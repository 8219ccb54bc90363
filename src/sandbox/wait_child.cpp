#include "sandbox/wait_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "util/transient_fault.h"

namespace assay::sandbox {
namespace {

timespec to_timespec(std::chrono::nanoseconds t) {
  return {t.count() / 1'000'000'000, t.count() % 1'000'000'000};
}

// Interrupts this thread's wait after a time, and then again and again, in case the first signal
// falls between two waits. Polling would add up to a nap to every stop of a worker, and stops are
// timed.
class Alarm {
 public:
  Alarm() {
    const int signal = SIGRTMIN + 3;
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART: the wait ends with EINTR
    ::sigaction(signal, &action, nullptr);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event._sigev_un._tid = ::gettid();
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) {
      throw_errno("cannot make a timer");
    }
  }
  ~Alarm() { ::timer_delete(timer_); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void set(std::chrono::nanoseconds after) {
    constexpr std::chrono::milliseconds kAgain{1};
    const itimerspec spec{to_timespec(kAgain), to_timespec(after)};
    ::timer_settime(timer_, 0, &spec, nullptr);
  }
  void clear() {
    const itimerspec none{};
    ::timer_settime(timer_, 0, &none, nullptr);
  }

 private:
  timer_t timer_{};
};

// What waitid says: with WNOHANG now, with `options` 0 once something happened or a signal came.
Seen look(pid_t pid, int events, int options) {
  siginfo_t info{};
  const int rc = ::waitid(P_PID, static_cast<id_t>(pid), &info, events | options | WNOWAIT);
  if (rc != 0) return errno == EINTR ? Seen::nothing : Seen::ended;  // no such child any more
  if (info.si_pid == 0) return Seen::nothing;
  return info.si_code == CLD_STOPPED ? Seen::stopped : Seen::ended;
}

}  // namespace

Seen wait_for_child(pid_t pid, int events, std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  thread_local Alarm alarm;
  const auto deadline = Clock::now() + timeout;
  Seen seen = look(pid, events, WNOHANG);
  if (seen != Seen::nothing || timeout.count() <= 0) return seen;
  alarm.set(timeout);
  while ((seen = look(pid, events, 0)) == Seen::nothing && Clock::now() < deadline) {
  }
  alarm.clear();
  return seen;
}

bool reap_child(pid_t pid) {
  if (wait_for_child(pid, WEXITED, kReapPatience) != Seen::ended) return false;
  return ::waitpid(pid, nullptr, WNOHANG) == pid;
}

}  // namespace assay::sandbox
