// What a simulated run did, for people and as JSON.
#pragma once

#include <string>

#include "cli/sim_process.h"
#include "grade/gpu.h"

namespace assay::cli {

inline constexpr int kFindings = 3;  // exit status

// A table of the kernels, one of what they cost on a GPU if one is given, one of the lines with
// bank conflicts, every finding in words, and what the program asked for in vain.
std::string sim_text(const SimulatedRun&, const Gpu* = nullptr);

// {"program": {...}, "kernels": [...], "findings": [...], "unsupported": [...], "notes": [...]}:
// every counter of sim/counters.h under its name, and of each kernel all lines with replays.
//
// With a GPU each kernel has "modelled": {"gpu", "seconds", "bound"}.
std::string sim_json(const SimulatedRun&, const Gpu* = nullptr);

// kUsageOrHarnessError if the program did not start or needed what the simulator lacks, else
// kFindings if there are findings, else the program's own: 128 and the number of the signal that
// ended it, as in shells.
int exit_status(const SimulatedRun&);

}  // namespace assay::cli
