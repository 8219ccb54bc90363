// The exact peak of a process's resident memory, including memory that it takes and returns within
// a call.
//
// Resident memory shrinks only by a few system calls: munmap, mremap, brk, mmap at a fixed address,
// and two kinds of madvise. A watched worker has a filter that reports these calls to the harness
// before they are executed (worker/seal.h). The harness records the resident size and lets the call
// continue. The largest of these sizes and the final one is therefore the exact peak. With several
// threads, one can still take memory in the microseconds between the reading and another thread's
// call. What that hides is less than the error of the kernel's own peak, which is used as well.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>

#include "util/fd.h"

namespace assay::processes {

class MemoryWatch {
 public:
  // Whether the kernel and this process's environment permit it; tested in a child. Throws if no
  // child can be made.
  static bool works();

  // `listener`: the descriptor that receives the filtered calls of process `pid`, from
  // worker::watch_memory().
  MemoryWatch(pid_t pid, Fd listener) : pid_(pid), listener_(std::move(listener)) {}

  // Readable when a call is waiting for serve().
  int fd() const { return listener_.get(); }
  // Lets one waiting call continue, if there is one. Never blocks.
  void serve();

  // Largest resident size, in bytes, before any of these calls since the last reset.
  std::uint64_t peak() const { return peak_; }
  void reset() { peak_ = 0; }

 private:
  void look();

  pid_t pid_;
  Fd listener_;
  std::uint64_t peak_ = 0;
};

}  // namespace assay::processes
