#pragma once

#include "assay/challenge.h"

namespace assay::cases {

// Calls challenge.fill(), with memory, all zero, for the inputs that the case withholds.
void fill_inputs(const Challenge&, const CaseSpec&, const CasePlan&, const Seeds&, BufferViews);

}  // namespace assay::cases
