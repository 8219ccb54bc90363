// The memory of one worker: its limits and its use.
//
// Call order: limit() before the worker is made, begin() after it has set itself up and before the
// submission is loaded, set_case() for each case, count_callback() for each of its callbacks,
// count_written() after each request. The accounts are the kernel's: of the worker's memory group
// if there is one (sandbox/memory_group.h), of its resident pages, and of the output arena's.
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
  // `arenas`: bytes shared with the harness. `in_cuda`: the worker has a CUDA runtime.
  WorkerMemory(const WorkerSettings&, std::uint64_t arenas, bool in_cuda);

  // Sets the program's memory limits and memory group, and waits until the machine has room for
  // them.
  void limit(sandbox::Program&, const Layout* windows);

  // Whether the kernel reports a worker's memory exactly, so that watching it is worthwhile.
  static bool can_be_watched(const sandbox::Process&);

  // Takes the worker's current memory as the baseline. `listener`: for watching the worker from now
  // on, if it is valid. Throws Error if the kernel gives no account.
  void begin(const sandbox::Process&, Fd listener);

  void set_case(const CasePlan&, const Layout&);
  // Counts the pages of a callback that was answered.
  void count_callback(ByteRange request, ByteRange response);
  // Counts bytes of the output arena that the worker wrote first. Those of the case are not among
  // them, because the harness writes them before.
  void count_written(std::uint64_t bytes) { written_ += bytes; }

  // Readable when the worker waits for serve_watch(); -1 if it is not watched.
  int watch_fd() const { return watch_ ? watch_->fd() : -1; }
  void serve_watch() { watch_->serve(); }

  // See Worker.
  std::uint64_t peak_growth(pid_t) const;
  void reset_peak(pid_t);

  // Bytes that a worker touches to ready the case: the case's and the worker's own.
  std::uint64_t bytes_to_ready(pid_t) const;
  // Whether the kernel killed the worker because it reached its group's limit.
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
  // Taken before the submission is loaded.
  MemoryFigures baseline_;
  std::optional<Resident> exact_baseline_;
  std::uint64_t group_baseline_ = 0, group_files_ = 0;
  SharedPages shared_;
  std::uint64_t written_ = 0;  // the kernel keeps such pages, whoever has them mapped
};

}  // namespace assay::processes
