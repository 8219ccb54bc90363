#include "slurm/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "assay/error.h"
#include "util/clock.h"
#include "util/fd.h"

namespace assay::slurm {
namespace {

// Starts it in a process group of its own, so that Ctrl-C in the terminal does not reach it, and
// with the default actions for signals that this process ignores.
pid_t start(const std::vector<std::string>& command, int out, int err) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t standard, none;
  ::sigemptyset(&standard);
  ::sigaddset(&standard, SIGPIPE);
  ::sigaddset(&standard, SIGXFSZ);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &standard);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int error =
      ::posix_spawnp(&child, argv.front(), &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    throw Error(
        fmt::format("cannot find {} on the PATH: run this where Slurm's commands are installed, a "
                    "login node of the cluster",
                    command.front()));
  }
  if (error != 0)
    throw Error(fmt::format("cannot start {}: {}", command.front(), std::strerror(error)));
  return child;
}

// False at end of file.
bool read_some(int fd, std::string& text) {
  std::array<char, 1 << 14> part{};
  const ssize_t n = ::read(fd, part.data(), part.size());
  if (n < 0) return errno == EINTR;
  text.append(part.data(), static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace

Printed run_command(const std::vector<std::string>& command, double seconds) {
  Pipe out = make_pipe(), err = make_pipe();
  const pid_t child = start(command, out.write.get(), err.write.get());
  out.write.reset();
  err.write.reset();
  Printed printed;
  const double deadline = steady_seconds() + seconds;
  bool out_open = true, err_open = true, late = false;
  while (!late && (out_open || err_open)) {
    std::array<pollfd, 2> files{pollfd{out_open ? out.read.get() : -1, POLLIN, 0},
                                pollfd{err_open ? err.read.get() : -1, POLLIN, 0}};
    constexpr int kTickMs = 100;
    ::poll(files.data(), files.size(), kTickMs);
    if (files[0].revents != 0) out_open = read_some(out.read.get(), printed.out);
    if (files[1].revents != 0) err_open = read_some(err.read.get(), printed.err);
    late = steady_seconds() > deadline;
  }
  if (late) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) throw Late(fmt::format("{} did not end within {:.0f} s", command.front(), seconds));
  constexpr int kSignalled = 128;
  printed.status = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
  return printed;
}

}  // namespace assay::slurm
