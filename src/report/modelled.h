// Explains the modelled speed of a simulated submission, case by case.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay::report {

// Times by the model of the GPU that the score names, what limits them, and the counts behind them.
std::string modelled_tables(const BoardEntry&);

}  // namespace assay::report
