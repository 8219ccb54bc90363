#include "util/stop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "assay/error.h"
#include "util/clock.h"
#include "util/thread_stop.h"

namespace assay {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// The first request: its time in milliseconds, times kSignalRange, plus its signal. A single value,
// because a second thread may be in the handler at the same moment and must not see half of it.
constexpr std::int64_t kSignalRange = 128;
std::atomic<std::int64_t> g_request{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// Everything else that the handler reads is set before it is installed.
int g_fd = -1;
pid_t g_owner = -1;

std::int64_t now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

// Async-signal-safe. Does nothing in a child between fork and exec.
void on_signal(int signal) {
  if (::getpid() != g_owner) return;
  const int saved = errno;
  std::int64_t first = 0;
  if (g_request.compare_exchange_strong(first, now_ms() * kSignalRange + signal)) {
    const std::uint64_t one = 1;
    (void)!::write(g_fd, &one, sizeof one);
    say("\nassay: stopping; once more ends it at once\n");
  } else if (now_ms() - first / kSignalRange >= kSameRequest.count()) {
    ::_exit(128 + signal);
  }
  errno = saved;
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void stop_on_signals() {
  g_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (g_fd < 0) throw Error(std::string("cannot make an eventfd: ") + std::strerror(errno));
  g_owner = ::getpid();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) ::sigaddset(&action.sa_mask, signal);
  for (const int signal : kSignals) {
    if (!is_ignored(signal)) ::sigaction(signal, &action, nullptr);
  }
}

void restore_stop_signals() {
  for (const int signal : kSignals) {
    if (!is_ignored(signal)) ::signal(signal, SIG_DFL);
  }
}

int stop_signal() noexcept { return static_cast<int>(g_request % kSignalRange); }

void check_stop() {
  if (stop_signal() != 0 || thread_was_asked()) throw Stopped();
}

void wait_or_stop(double seconds) {
  // There is no descriptor to poll for a request to a single thread.
  constexpr double kMs = 1000, kTickMs = 50;
  const double end = steady_seconds() + seconds;
  for (;;) {
    check_stop();
    const double left = end - steady_seconds();
    if (left <= 0) return;
    pollfd stop{g_fd, POLLIN, 0};
    ::poll(&stop, 1, static_cast<int>(std::ceil(std::min(left * kMs, kTickMs))));
  }
}

int stop_fd() noexcept { return g_fd; }

const char* stop_signal_name() noexcept {
  switch (stop_signal()) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return "no signal";
  }
}

}  // namespace assay
