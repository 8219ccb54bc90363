// What the launcher of a sandbox does between its fork and the program's exec; see "Theory of
// operation" in sandbox.h. Everything here is async-signal-safe: it neither allocates nor locks.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "sandbox/sandbox.h"
#include "util/cpu_set.h"

namespace assay::sandbox {

// The step of a launch that failed; sent to the harness with errno.
enum class Stage : int {
  fork,
  user_namespace,
  namespaces,
  root,
  mount,
  pivot,
  clone,
  group,
  privileges,
  limits,
  descriptors,
  network,
  landlock,
  seccomp,
  exec,
};

// "mounting", to be put behind "while".
const char* doing(Stage);

// A message to the harness by the pipe Launch::report. It is smaller than PIPE_BUF, so it arrives
// whole. The spawner reports the launcher, and the launcher reports init and the program, in either
// order.
struct Report {
  Stage stage{};
  int error = 0;  // not 0: the launch failed
  pid_t launcher = -1, init = -1, program = -1;
};

// The sizes of arrays on the launcher's stack. spawn() refuses more.
constexpr std::size_t kMaxMounts = 32, kMaxDescriptors = 32;

struct LaunchMount {
  const char* host = nullptr;    // absolute
  const char* inside = nullptr;  // absolute
  bool writable = false, directory = false;
};

// Everything that the launcher needs. launch_request.h sends it from process to process.
struct Launch {
  Tier tier = Tier::none;
  Policy policy = Policy::worker;
  bool root = false;            // the harness runs as root
  bool leaves_network = false;  // in tiers that share the host's files
  uid_t uid = 0;
  Limits limits;
  std::uint64_t tmp_bytes = 0;
  std::optional<CpuSet> cores;  // nothing: those of the launcher
  const char *uid_map = nullptr, *gid_map = nullptr, *tmp_options = nullptr;
  std::span<const LaunchMount> mounts;
  std::span<const char* const> parents;  // folders to create in the new root, outermost first
  // argv and the environment, each with a null at its end.
  std::span<const char*const> arguments, values;
  const char* exec_path = nullptr;
  std::span<const sock_filter> filter;
  std::span<const int> fds;  // of the program
  // Descriptors; -1: none. `stop` becomes readable when the harness is asked to stop (util/stop.h).
  int report = -1, lifeline = -1, exec = -1, group = -1, ruleset = -1, stop = -1;
};
static_assert(std::is_trivially_copyable_v<Launch>);

bool shares_files(Tier);

// fork(2), but the new process is a sibling: a child of the harness. Not clone3, which containers
// refuse.
pid_t fork_as_sibling();

// Moves the process to a new, empty network and to new System V shared memory.
bool leave_network(bool root, const char* uid_map, const char* gid_map);

// Reports a failure, or both processes, and exits.
[[noreturn]] void run_launcher(Launch&);

}  // namespace assay::sandbox
