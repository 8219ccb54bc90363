// Reports where a run's time went, for people who tune the harness.
#pragma once

#include "cases/time_account.h"

namespace assay::cli {

// Prints to stderr. `wall_s`: seconds since the command began.
void tell_account(const cases::TimeAccount&, double wall_s);

}  // namespace assay::cli
