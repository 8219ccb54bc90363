// The embedded executables that run in sandboxes.
#pragma once

#include "util/fd.h"

namespace assay::sandbox {

// Sealed memfds with ELF images, made on first use and kept open.
int worker_image_fd();       // loads submissions in C++
int cuda_worker_image_fd();  // loads submissions in CUDA: with a CUDA runtime
int device_image_fd();       // the simulated GPU behind it

}  // namespace assay::sandbox
