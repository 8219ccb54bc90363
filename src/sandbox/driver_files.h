// What a process that loads NVIDIA's driver may see of the machine, and which tier confines it.
//
// The driver is a library of some forty megabytes that compiles what an answer hands over: its PTX.
// It lives in the process that it is loaded into, so that process is confined. It needs the
// system's libraries, /proc and /sys to read, and NVIDIA's device files. It writes to nothing else
// but what /proc shows of its own threads, whose names it sets.
#pragma once

#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

// The strongest tier that the machine offers such a process: landlock, else filter.
Tier tier_for_driver();

// `driver` as the confined process has to be told it: a path is made absolute, a name is left to
// the dynamic linker.
std::string driver_inside(const std::string& driver);

// Gives the program the driver's policy, files and devices. Throws Error when one of the driver's
// libraries lies where the process, which is not root, could not reach it.
void show_driver(Tier, Program&, const std::vector<std::string>& libraries);

// Why the driver may not start in its sandbox and yet start outside, and what to do about it: what
// a message about it ends with, "" without a sandbox.
std::string driver_hint(Tier);

}  // namespace assay::sandbox
