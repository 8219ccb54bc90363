// Where the time of a run went, for people who tune the harness.
#pragma once

#include "cases/time_account.h"

namespace assay::cli {

// On stderr. `wall_s`: since the command began.
void tell_account(const cases::TimeAccount&, double wall_s);

}  // namespace assay::cli
