// The memory of one worker: what it may take, and what it has taken.
//
// In order: limit() before the worker is made, begin() once it is set up and before the submission
// is loaded, set_case() for each case and count_callback() for its callbacks. The accounts are the
// kernel's: of the worker's memory group where there are such (sandbox/memory_group.h), and of its
// resident pages.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "processes/memory_budget.h"
#include "processes/memory_growth.h"
#include "processes/memory_watch.h"
#include "processes/touched_pages.h"
#include "processes/worker.h"
#include "sandbox/memory_group.h"
#include "sandbox/sandbox.h"

namespace assay::processes {

class WorkerMemory {
 public:
  // `arenas`: bytes that the worker shares with the harness. `in_cuda`: there is a CUDA runtime.
  WorkerMemory(const WorkerSettings&, std::uint64_t arenas, bool in_cuda);

  // Sets the program's limits of memory and its memory group, and waits until the machine has room
  // for what it may take.
  void limit(sandbox::Program&, const Layout* windows);

  // Whether the kernel tells a worker's memory to the page, so that looking at it in time helps.
  static bool can_be_watched(const sandbox::Process&);

  // What the worker has now is no growth. `listener`: by which it is watched from now on, if it is
  // to be. Throws Error when the kernel gives no account.
  void begin(const sandbox::Process&, Fd listener);

  void set_case(const CasePlan&, const Layout&);
  // Pages of a callback that was answered.
  void count_callback(ByteRange request, ByteRange response);

  // Readable when the worker waits for serve_watch(); -1 while it is not watched.
  int watch_fd() const { return watch_ ? watch_->fd() : -1; }
  void serve_watch() { watch_->serve(); }

  // See Worker.
  std::uint64_t peak_growth(pid_t) const;
  void reset_peak(pid_t);

  // Bytes that a worker touches when it readies the case: those of the case and its own.
  std::uint64_t bytes_to_ready(pid_t) const;
  // Whether the kernel ended the worker because its group's limit was reached.
  bool ran_out() const { return group_ != nullptr && group_->ran_out(); }

 private:
  std::uint64_t grown_by_pages(pid_t) const;
  std::uint64_t grown_by_group() const;
  std::uint64_t library_bytes() const;

  std::filesystem::path library_;
  std::uint64_t limit_, arenas_;
  int threads_;
  bool in_cuda_;
  std::optional<MemoryShare> share_;
  std::unique_ptr<sandbox::MemoryGroup> group_;
  std::optional<MemoryWatch> watch_;
  // Before the submission is loaded.
  MemoryFigures baseline_;
  std::optional<std::uint64_t> exact_baseline_;
  std::uint64_t group_baseline_ = 0, group_files_ = 0;
  SharedPages shared_;
};

}  // namespace assay::processes
