// What a process that loads NVIDIA's driver may see of the machine, and which tier confines it.
//
// The driver is a library of some forty megabytes that compiles the PTX of an answer inside the
// process that loads it, so that process is confined. The driver reads the system's libraries,
// /proc and /sys, and uses NVIDIA's device files. It writes nowhere else, except to the entries of
// /proc by which it names its own threads.
#pragma once

#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

// The strongest tier that this machine offers for such a process: landlock, else filter.
Tier tier_for_driver();

// The name of `driver` as the confined process needs it: a path is made absolute, a bare name is
// left to the dynamic linker.
std::string driver_inside(const std::string& driver);

// Gives the program the driver's policy, files and devices. Throws Error when the process, which is
// not root, could not reach one of the driver's libraries.
void show_driver(Tier, Program&, const std::vector<std::string>& libraries);

// The end of an error message about a driver that did not start: why it may start outside its
// sandbox all the same, and the remedy. "" without a sandbox.
std::string driver_hint(Tier);

}  // namespace assay::sandbox
