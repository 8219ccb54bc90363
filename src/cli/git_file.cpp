#include "cli/git_file.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "util/fd.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

// The output of git, if it succeeds.
std::optional<std::string> git(const std::filesystem::path& folder,
                               std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "-C", folder.string()});
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  Pipe pipe = make_pipe();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, "git", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {};
  pipe.write.reset();
  std::string text;
  std::array<char, 1 << 16> part{};
  for (;;) {
    const ssize_t n = ::read(pipe.read.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check_stop();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
  return text;
}

}  // namespace

std::optional<std::string> commit_named(const std::filesystem::path& folder,
                                        const std::string& revision) {
  auto commit =
      git(folder, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
  if (commit && commit->ends_with('\n')) commit->pop_back();
  return commit;
}

std::optional<std::string> file_at(const std::filesystem::path& folder, const std::string& commit,
                                   const std::string& path) {
  return git(folder, {"show", commit + ":./" + path});
}

}  // namespace assay::cli
