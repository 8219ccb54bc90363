// System-call filters, compiled once per process to BPF with libseccomp.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <array>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

// Where the executable's descriptor is placed when it has no path. Beyond what limits on open files
// let a program reach: once exec has closed it, nothing else can be executed by that number.
inline constexpr int kExecDescriptor = 250;

// The program to hand to seccomp(2). Built on first use, then shared.
const std::vector<sock_filter>& seccomp_program(Policy, Tier);

// Signals and limits are for the process `own` alone: another filter, for tiers in which its id is
// known only once it exists. Async-signal-safe.
std::array<sock_filter, 13> own_process_filter(pid_t own);

}  // namespace assay::sandbox
