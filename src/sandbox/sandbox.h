// Runs untrusted programs: the worker that loads a submission, and the compiler that builds it.
//
// Theory of operation
//
//   harness ──asks──> spawner ──clone(CLONE_PARENT)──> launcher
//                       launcher ──clone(CLONE_PARENT)──> init    (pid 1 of the sandbox)
//                           └──────clone(CLONE_PARENT)──> program (pid 2)
//
// The spawner is a small process that the harness forked when it began, so that a fork copies
// little however much the harness holds (spawner.h). The launcher makes the namespaces (user if not
// root, mount, pid, net, ipc, uts, cgroup) and a root of its own on a tmpfs that shows only the
// listed mounts, then creates two children of the *harness* and exits. The harness is the program's
// parent, so it gets the raw wait status and stop notifications from the kernel, without a relay.
// Init does nothing but wait for the end of a pipe that the harness holds: when the harness ends
// the sandbox or dies, the pipe closes, init exits and the kernel kills every process of the pid
// namespace. It exits too when the harness is asked to stop (util/stop.h).
//
// The program gives up its privileges in this order: own session, own uid when the harness is root,
// resource limits, no_new_privs, Landlock (only in the landlock tier), seccomp, exec. The filter is
// in force before the first byte of the submission is mapped, because constructors and IFUNC
// resolvers run at load time.
//
// Where namespaces are not permitted, the landlock tier keeps the same seccomp filter, limits and
// uid and confines file access with Landlock. Init is then no more than the watch on the pipe: it
// kills the program's process group. Programs see the host's paths, so what they need must lie
// where their uid can reach it (workplace.h); that they can look up names there is what this tier
// cannot hide. Where neither works, sandboxes are refused unless the user insists (--unsafe), and
// every row says so.
//
// The process that drives a real GPU is a case of its own (driver_files.h). NVIDIA's driver needs
// its device files, /proc and /sys, so that process shares the host's file system: it runs in the
// landlock tier, or with the filter alone where the kernel has no Landlock. Its filter lists what
// is refused, because what the driver calls differs from version to version.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/fd.h"

namespace assay::sandbox {

enum class Tier : std::uint8_t {
  namespaces,
  landlock,
  filter,  // of system calls, and nothing else: only for the process that drives a real GPU
  none,
};

const char* to_string(Tier);  // as stamped on rows: "namespaces+seccomp", ...

struct Mount {
  std::string host;    // file or folder outside
  std::string inside;  // absolute path inside
  bool writable = false;
};

struct Limits {
  std::uint64_t address_space = 0;  // bytes, 0: unlimited
  std::uint64_t data = 0;           // of private memory that can be written, 0: unlimited
  std::uint64_t cpu_seconds = 0;
  std::uint64_t file_size = 0;  // of any file written
  std::uint64_t processes = 0;  // processes and threads
  std::uint64_t open_files = 32;
  std::uint64_t stack = 8u << 20;
};

enum class Policy : std::uint8_t {
  worker,    // allow-list of system calls: compute, threads, memory, read files
  compiler,  // processes and files, but no sockets, tracing, namespaces or kernel interfaces
  // Whatever the driver of a GPU may call, but no other program, process, network, tracing or
  // kernel interface; what is not permitted is refused with an error. Not in the namespaces tier.
  driver,
};

struct Program {
  Policy policy = Policy::worker;
  std::vector<Mount> mounts;  // besides these only an empty read-only root
  // Device files, and folders of them, that it may read, write and control. Landlock tier.
  std::vector<std::string> devices;
  std::uint64_t tmp_bytes = 0;  // size of a writable /tmp; 0: none
  Limits limits;
  int exec_fd = -1;       // the executable, when it is a memfd ...
  std::string exec_path;  // ... else its path inside
  std::vector<std::string> argv, env;
  std::vector<int> fds;    // fds[i] becomes descriptor i; everything else is closed
  std::vector<int> cores;  // the only ones that it may run on; empty: those of the harness
  int group_fd = -1;       // of the memory group that it joins, see memory_group.h
};

struct Exit {
  int status = 0;  // as waitpid gives it
  rusage usage{};

  double cpu_seconds() const;
};

// Whether a /proc/PID/stat says that the thread has ended or is ending.
bool tells_of_end(std::string_view stat);

// A running sandboxed program. Destruction kills it and everything it started. Nothing here waits
// without an end: a program that the kernel cannot stop or kill is told, not waited for.
class Process {
 public:
  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&&) noexcept;
  ~Process() { kill(); }

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the program has exited

  enum class Stop : std::uint8_t {
    stopped,  // every thread
    ended,    // it has exited instead
    refused,  // it was still running at the end of the patience, and is killed
  };
  // Must not be stopped already.
  Stop stop(std::chrono::nanoseconds patience = kPatience);
  void resume();

  // The exit once the program has ended; waits at most `timeout`.
  std::optional<Exit> wait(std::chrono::nanoseconds timeout);

  // Kills whatever is left and reaps it. False if it did not end in time: then it is left behind.
  bool kill();

  // Whether its first thread has ended, or is ending, while others live: then the kernel tells
  // nothing of its memory any more, or soon will not. A thread that is ending takes no part in a
  // stop; after a stop none begins to end.
  bool first_thread_ended() const;

  // Processor time of all its threads so far, by the kernel's account. Not after its end.
  double cpu_seconds() const;

  // By thread, for how many seconds it has been ready to run without a processor. Empty where the
  // kernel does not say, and after the program's end.
  std::map<pid_t, double> queued_seconds() const;

 private:
  static constexpr std::chrono::seconds kPatience{10};

  friend Process spawn(Tier, const Program&);
  void kill_group();
  void take_exit();

  bool own_namespace_ = false;
  pid_t pid_ = -1, init_ = -1;
  Fd pidfd_, lifeline_;
  std::optional<Exit> exit_;
};

// Throws Error when the sandbox cannot be made, with the stage and the cause, and Stopped when the
// harness was asked to stop.
Process spawn(Tier, const Program&);

// The path under which the program sees `mount`: inside its own root, or the host's path in tiers
// that share the host's file system.
std::string visible(Tier, const Mount&);

}  // namespace assay::sandbox
