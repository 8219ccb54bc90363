// The exported functions, declared from the list in gpu/driver.h: a definition with different
// parameters does not compile, and a missing one does not link.
#pragma once

#include "gpu/driver.h"

namespace assay::gpu {

#define ASSAY_DECLARE_EXPORT(member, name, parameters) \
  extern "C" __attribute__((visibility("default"))) CUresult name parameters;
ASSAY_DRIVER_FUNCTIONS(ASSAY_DECLARE_EXPORT)
#undef ASSAY_DECLARE_EXPORT

}  // namespace assay::gpu
