// Confinement of file access by Landlock (Linux 5.13 and later), for hosts without namespaces.
#pragma once

#include <vector>

#include "sandbox/sandbox.h"
#include "util/fd.h"

namespace assay::sandbox {

// The kernel's Landlock ABI, 0 when it has none.
int landlock_abi();

// A ruleset that permits nothing but reading and executing below each mount's host path, writing
// below the writable ones, and reading, writing and control of the device files. Throws Error when
// the kernel has no Landlock or a path cannot be opened.
Fd landlock_ruleset(const std::vector<Mount>&, const std::vector<std::string>& devices = {});

// Permits the calling process to write below its own /proc/self/task, which becomes its working
// folder. Other processes under the ruleset may not. 0 or an errno. Async-signal-safe.
int landlock_permit_own_threads(int ruleset);

// Puts the calling thread under the ruleset; 0 or an errno. Async-signal-safe.
int landlock_enter(int ruleset);

}  // namespace assay::sandbox
