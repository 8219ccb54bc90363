// Shows the sources of a simulated program with what each line executed and what was found there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/runtime/run_log.h"

namespace assay::cli {

// For each file a listing of the lines that executed something or have findings, with the lines
// around them. Code inlined from the headers of a CUDA Toolkit counts for the line that calls it.
// What no line of a readable file can be named for stands in a table of its own. Empty if nothing
// was counted or found.
//
// `programs`: the files that were compiled. A finding has only the name of its file, which is looked
// for among these too: a kernel that failed counts nothing.
std::string annotated_sources(const sim::RunSummary&,
                              const std::vector<std::filesystem::path>& programs);

}  // namespace assay::cli
