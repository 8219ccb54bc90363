// The exact peak of a process's resident memory, memory that a call takes and gives back included.
//
// Resident memory shrinks by a few system calls only: munmap, mremap, brk, mmap at a fixed address,
// and two kinds of madvise. The filter of a watched worker hands each of them to the harness before
// it is carried out (worker/seal.h). The harness adds up the resident pages and lets the call go
// on. The largest sum, the one at the end included, is the peak to the page. Another thread may
// take memory in the microseconds between the sum and the call. It can hide less in this way than
// the error of the kernel's own peak, which is held against the sum as well.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>

#include "processes/memory_figures.h"
#include "util/fd.h"

namespace assay::processes {

class MemoryWatch {
 public:
  // Whether the kernel and what surrounds this process permit it, tried on a child. Throws where no
  // child can be made.
  static bool works();

  // `listener`: what the filter of process `pid` hands its calls to, by worker::watch_memory().
  MemoryWatch(pid_t pid, Fd listener) : pid_(pid), listener_(std::move(listener)) {}

  // Readable when a call waits for serve().
  int fd() const { return listener_.get(); }
  // Lets one waiting call go on, if there is one. Never blocks.
  void serve();

  // The most that was resident before any of the calls since the last reset.
  const Resident& peak() const { return peak_; }
  void reset() { peak_ = {}; }

 private:
  void look();

  pid_t pid_;
  Fd listener_;
  Resident peak_;
};

}  // namespace assay::processes
