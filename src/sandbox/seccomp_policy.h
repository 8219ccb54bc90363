// System-call filters, compiled once per process to BPF with libseccomp.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

// The program to hand to seccomp(2). Built on first use, then shared.
const std::vector<sock_filter>& seccomp_program(Policy, Tier);

}  // namespace assay::sandbox
