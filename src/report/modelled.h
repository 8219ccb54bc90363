// How the modelled speed of a simulated submission comes about, case by case.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay::report {

// Times by the model of the GPU that the score names, what binds them, and the counts that they
// come from.
std::string modelled_tables(const BoardEntry&);

}  // namespace assay::report
