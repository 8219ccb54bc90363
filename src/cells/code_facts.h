// The facts of a submission's code, warnings included.
#pragma once

#include <optional>

#include "assay/code_facts.h"
#include "build/builder.h"
#include "submission/submission.h"

namespace assay::cells {

// Facts about the sources as they were built. Nothing if they are not known; see CellResult::code.
std::optional<CodeFacts> code_facts(const Submission&, const BuildResult&);

}  // namespace assay::cells
