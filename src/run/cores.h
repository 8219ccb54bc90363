// Which cores workers run on.
#pragma once

#include <vector>

namespace assay::run {

// `n` cores of those that this program may use, ascending; all of them where there are no more. One
// thread's workers share theirs, so that what is compared runs on the same cores; threads that drive
// workers side by side get different ones as far as there are enough. Cores of their own come before
// two threads of one core.
std::vector<int> worker_cores(int n);

}  // namespace assay::run
