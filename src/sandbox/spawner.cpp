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
#include <chrono>
#include <csignal>
#include <memory>

#include "assay/error.h"
#include "sandbox/launch_request.h"
#include "sandbox/wait_child.h"
#include "util/fd.h"
#include "util/transient_fault.h"

namespace assay::sandbox {
namespace {

constexpr std::size_t kLongestRequest = 128 << 10;
// Those of the program and six of the launcher.
constexpr std::size_t kMostDescriptors = kMaxDescriptors + 6;
constexpr int kSocket = 3;  // in the spawner

// Room for the descriptors of a message.
struct Attached {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> room{};
};

struct Received {
  std::size_t bytes = 0;  // 0: nobody will ask any more
  bool whole = true;      // false: there was no room for a part, such as too many descriptors
  std::array<int, kMostDescriptors> descriptors{};
  std::size_t count = 0;
};

Received receive(std::byte* block) {
  Received received;
  Attached attached;
  iovec text{block, kLongestRequest};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = attached.room.data();
  message.msg_controllen = attached.room.size();
  ssize_t n;
  do {
    n = ::recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return received;
  received.bytes = static_cast<std::size_t>(n);
  received.whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return received;
  received.count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(received.descriptors.data(), CMSG_DATA(header), received.count * sizeof(int));
  return received;
}

// The new process is a child of the harness, as the spawner is.
pid_t fork_launcher() {
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

void launch(std::byte* block, const Received& received) {
  Launch& launch = arrive(block, received.descriptors.data());
  Report report;
  report.launcher = fork_launcher();
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
  for (;;) {
    const Received received = receive(static_cast<std::byte*>(block));
    if (received.bytes == 0) ::_exit(0);
    // Otherwise the harness sees the report's pipe close without a report.
    if (received.whole) launch(static_cast<std::byte*>(block), received);
    for (std::size_t i = 0; i < received.count; ++i) ::close(received.descriptors[i]);
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
    reap();
  }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  pid_t pid() const { return pid_; }
  bool is_own() const { return owner_ == ::getpid(); }
  // For a spawner that was killed or has died.
  void reap() const {
    constexpr std::chrono::seconds kPatience{10};
    if (wait_for_child(pid_, WEXITED, kPatience) == Seen::ended) ::waitpid(pid_, nullptr, WNOHANG);
  }

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
    Attached attached;
    iovec text{const_cast<std::byte*>(block.data()), block.size()};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = attached.room.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    ssize_t n;
    do {
      n = ::sendmsg(ours_.get(), &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) return true;
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
    if (ended != nullptr) ended->reap();
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
