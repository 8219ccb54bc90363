// The embedded worker executable.
#pragma once

#include "util/fd.h"

namespace assay::sandbox {

// A sealed memfd with the worker's ELF image, made on first use and kept.
int worker_image_fd();

}  // namespace assay::sandbox
