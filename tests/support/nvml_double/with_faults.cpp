// The double, which this library depends on, has these faults from the first call on.
#include <cstdlib>

namespace {

[[gnu::constructor]] void set_faults() { ::setenv("ASSAY_NVML_DOUBLE", ASSAY_FAULTS, 1); }

}  // namespace
