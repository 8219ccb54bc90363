#include "sandbox/spawner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <span>

#include "assay/error.h"
#include "sandbox/launch_request.h"
#include "sandbox/wait_child.h"
#include "util/fd.h"
#include "util/pass_descriptor.h"
#include "util/transient_fault.h"

namespace assay::sandbox {
namespace {

constexpr std::size_t kLongestRequest = 128 << 10;
// Those of the program and six of the launcher.
constexpr std::size_t kMostDescriptors = kMaxDescriptors + 6;
static_assert(kMostDescriptors <= kMostPassed);
constexpr int kSocket = 3;  // in the spawner

void launch(std::byte* block, const int* descriptors) {
  Launch& launch = arrive(block, descriptors);
  Report report;
  report.launcher = fork_as_sibling();
  if (report.launcher == 0) {
    ::close(kSocket);
    run_launcher(launch);
  }
  if (report.launcher < 0) report = {.stage = Stage::fork, .error = errno};
  // Fails if the harness has died.
  [[maybe_unused]] const auto n = ::write(launch.report, &report, sizeof report);
}

// Closes every descriptor but the socket. 0 to 2 stay open on /dev/null, so that no descriptor that
// is received gets one of these numbers.
bool keep_only(int socket) {
  const int lifted = ::fcntl(socket, F_DUPFD, kSocket + 1);
  const int null = ::open("/dev/null", O_RDWR);
  if (lifted < 0 || null < 0) return false;
  for (const int fd : {0, 1, 2}) {
    if (::dup2(null, fd) != fd) return false;
  }
  return ::dup3(lifted, kSocket, O_CLOEXEC) == kSocket && ::close_range(kSocket + 1, ~0u, 0) == 0;
}

// Runs in a fork of a process that may have threads, so it makes async-signal-safe calls only.
[[noreturn]] void run_spawner(int socket) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  ::setsid();  // Ctrl-C in a terminal is for the harness alone
  ::prctl(PR_SET_NAME, "assay-spawner");
  void* const block =
      ::mmap(nullptr, kLongestRequest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED || !keep_only(socket)) ::_exit(1);
  const std::span<std::byte> room(static_cast<std::byte*>(block), kLongestRequest);
  std::array<int, kMostDescriptors> descriptors{};
  for (;;) {
    const Passed passed = receive_descriptors(kSocket, room, descriptors);
    if (passed.bytes == 0) ::_exit(0);  // the socket is closed
    // Otherwise the harness sees the report's pipe close without a report.
    if (passed.whole) launch(room.data(), descriptors.data());
    for (std::size_t i = 0; i < passed.descriptors; ++i) ::close(descriptors[i]);
  }
}

// The harness's view of a spawner.
class Spawner {
 public:
  Spawner() : owner_(::getpid()) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      throw_errno("cannot make a pair of sockets");
    }
    ours_ = Fd(ends[0]);
    const Fd theirs(ends[1]);
    pid_ = ::_Fork();
    if (pid_ < 0) throw_errno("cannot fork");
    if (pid_ == 0) {
      ours_.reset();
      run_spawner(theirs.get());
    }
  }
  ~Spawner() {
    if (!is_own()) return;
    ::kill(pid_, SIGKILL);
    reap_child(pid_);
  }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  pid_t pid() const { return pid_; }
  bool is_own() const { return owner_ == ::getpid(); }

  // False if it has died.
  bool ask(LaunchRequest& request) const {
    const std::vector<std::byte>& block = request.block();
    const std::vector<int>& descriptors = request.descriptors();
    if (block.size() > kLongestRequest || descriptors.size() > kMostDescriptors) {
      throw Error(
          fmt::format("a sandbox is asked for in {} bytes with {} descriptors; at most {} "
                      "and {} can be",
                      block.size(), descriptors.size(), kLongestRequest, kMostDescriptors));
    }
    if (pass_descriptors(ours_.get(), block, descriptors)) return true;
    if (errno == EPIPE || errno == ECONNRESET) return false;
    throw_errno("cannot ask for a sandbox");
  }

 private:
  pid_t owner_, pid_ = -1;
  Fd ours_;
};

// The spawner in use. A forked child of the harness finds that it is not its own and makes another.
// There is no lock, because a thread could hold it at the moment of such a fork.
std::atomic<Spawner*> g_spawner{nullptr};

// Kills the spawner when the process exits.
struct AtExit {
  ~AtExit() { delete g_spawner.exchange(nullptr); }
};

// A spawner other than `ended`. One that is replaced is never deleted, because another thread may
// still be using it.
Spawner& spawner_other_than(const Spawner* ended) {
  static const AtExit at_exit;
  for (;;) {
    Spawner* current = g_spawner.load();
    if (current != nullptr && current != ended && current->is_own()) return *current;
    auto fresh = std::make_unique<Spawner>();
    if (!g_spawner.compare_exchange_strong(current, fresh.get())) continue;
    if (ended != nullptr) reap_child(ended->pid());
    return *fresh.release();
  }
}

}  // namespace

void start_launcher(LaunchRequest& request) {
  constexpr int kAttempts = 3;
  const Spawner* ended = nullptr;
  for (int i = 0; i < kAttempts; ++i) {
    const Spawner& spawner = spawner_other_than(ended);
    if (spawner.ask(request)) return;
    ended = &spawner;
  }
  throw TransientFault("what starts sandboxes ends again and again");
}

pid_t spawner_pid() {
  const Spawner* const spawner = g_spawner.load();
  return spawner != nullptr && spawner->is_own() ? spawner->pid() : -1;
}

}  // namespace assay::sandbox
