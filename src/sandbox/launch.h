// What happens between the fork of a sandbox's launcher and the program's exec: see "Theory of
// operation" in sandbox.h. Only async-signal-safe calls: nothing here allocates or takes a lock.
#pragma once

#include <linux/filter.h>
#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

// Where in the launch something failed; sent to the harness with errno.
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

// A message of less than a page to the pipe that Launch::report is of, so written whole. The
// spawner tells the launcher, and the launcher the other two, in either order.
struct Report {
  Stage stage{};
  int error = 0;  // not 0: the launch failed
  pid_t launcher = -1, init = -1, program = -1;
};

// What arrays on the launcher's stack hold. LaunchRequest sees to it.
constexpr std::size_t kMaxMounts = 32, kMaxDescriptors = 32;

// `count` values of a Launch.
template <class T>
struct Several {
  const T* data = nullptr;
  std::size_t count = 0;

  const T& operator[](std::size_t i) const { return data[i]; }
  const T* begin() const { return data; }
  const T* end() const { return data + count; }
};

struct LaunchMount {
  const char* host = nullptr;    // absolute
  const char* inside = nullptr;  // absolute
  bool writable = false, directory = false;
};

// Everything the launcher needs. A launch_request.h sends it from process to process.
struct Launch {
  Tier tier = Tier::none;
  Policy policy = Policy::worker;
  bool root = false;            // the harness is
  bool leaves_network = false;  // where it keeps the host's files
  bool has_cores = false;
  uid_t uid = 0;
  Limits limits;
  std::uint64_t tmp_bytes = 0;
  cpu_set_t cores{};
  const char *uid_map = nullptr, *gid_map = nullptr, *tmp_options = nullptr;
  Several<LaunchMount> mounts;
  Several<const char*> parents;            // folders to create in the new root, outermost first
  Several<const char*> arguments, values;  // argv and the environment, each with a null at its end
  const char* exec_path = nullptr;
  Several<sock_filter> filter;
  Several<int> fds;  // of the program
  // Descriptors, -1: there is none. `stop`: what util/stop.h makes readable.
  int report = -1, lifeline = -1, exec = -1, group = -1, ruleset = -1, stop = -1;
};
static_assert(std::is_trivially_copyable_v<Launch>);

bool shares_files(Tier);

// Leaves for a network of its own, with nothing in it, and for System V's shared memory of its own.
bool leave_network(bool root, const char* uid_map, const char* gid_map);

// Never returns: reports a failure, or both processes, and exits.
[[noreturn]] void run_launcher(Launch&);

}  // namespace assay::sandbox
