// The exact peak of a process's resident memory, also of what it takes and gives back within a
// call.
//
// Resident memory only shrinks by a few system calls: munmap, mremap, brk, mmap at a fixed place,
// and two pieces of advice to madvise. A worker that is watched has a filter which hands these to
// the harness before they are carried out (worker/seal.h). The harness adds up the resident pages
// and lets the call go on. So the largest sum, with the one at the end, is the peak to the page.
// With several threads one may still take memory in the microseconds between the sum and the call
// of another; what is hidden by that is less than the kernel's own peak is off by, which is looked
// at as well.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>

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

  // Largest sum of resident bytes before any of the calls since the last reset.
  std::uint64_t peak() const { return peak_; }
  void reset() { peak_ = 0; }

 private:
  void look();

  pid_t pid_;
  Fd listener_;
  std::uint64_t peak_ = 0;
};

}  // namespace assay::processes
