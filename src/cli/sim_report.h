// Reports a simulated run, as text for people and as JSON.
#pragma once

#include <string>

#include "cli/sim_process.h"
#include "grade/gpu.h"

namespace assay::cli {

inline constexpr int kFindings = 3;  // exit status

// A table of the kernels, a table of their cost if a GPU is given, a table of the lines with bank
// conflicts, every finding in words, and unsupported features the program requested.
std::string sim_text(const SimulatedRun&, const Gpu* = nullptr);

// {"program": {...}, "kernels": [...], "findings": [...], "unsupported": [...], "notes": [...]}:
// every counter of sim/counters.h under its name, and for each kernel all lines with replays and
// "residency": {"warps", "most", "limit"}, see sim/occupancy.h.
//
// With DeviceOptions::count_lines each kernel has "lines": [{"file", "line", "inlined_at": [{"file",
// "line"}, ...], "instructions", "active_lanes", "shared_replays"}]. "file" is "" where the line is
// one of the PTX.
//
// With a GPU, each kernel has "modelled": {"gpu", "seconds", "bound"}.
std::string sim_json(const SimulatedRun&, const Gpu* = nullptr);

// kUsageOrHarnessError if the program did not start or needed something the simulator lacks, else
// kFindings if there are findings, else the program's own status; 128 + N if signal N killed it, as
// in shells.
int exit_status(const SimulatedRun&);

}  // namespace assay::cli
