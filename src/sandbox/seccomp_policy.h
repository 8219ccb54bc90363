// System-call filters, compiled once per process to BPF with libseccomp.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <array>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

// The descriptor of an executable that has no path. It lies beyond the limit on open files, so once
// exec has closed it, no other file can get that number and be executed.
inline constexpr int kExecDescriptor = 250;

// The program to hand to seccomp(2). Built on first use, then shared.
const std::vector<sock_filter>& seccomp_program(Policy, Tier);

// A further filter that permits signals and limits for the process `own` alone, for tiers in which
// its id is known only once it exists. Async-signal-safe.
std::array<sock_filter, 13> own_process_filter(pid_t own);

}  // namespace assay::sandbox
