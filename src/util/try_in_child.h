// Tries something in a child process, so that this process is not affected.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "util/transient_fault.h"

namespace assay {

// Whether `work` returns true in a child of this process, which then exits. The child has no other
// threads, so `work` may neither allocate nor wait for them. Throws if no child can be made.
template <class Work>
bool try_in_child(Work work) {
  const pid_t child = ::_Fork();
  if (child < 0) throw_errno("cannot fork");
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw_errno("cannot wait for a child");
  }
  return status == 0;
}

}  // namespace assay
