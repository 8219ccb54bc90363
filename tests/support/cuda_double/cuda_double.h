// A test double of the CUDA driver: libcuda_double.so exports what gpu/driver.h uses of the driver
// API, on top of the simulator, so that tests need no GPU.
//
// One device, which calls itself a simulated H200. Every call does its work before it returns, in
// the order of the calls. A kernel that faults breaks the context, as on hardware: its launch
// succeeds, and every later call that needs a context returns the fault.
//
// Where the double differs from a driver:
// - Memory exists as soon as its addresses are reserved. Copies and fills outside mapped and
//   accessible memory fail; a kernel's accesses do only outside the reservation.
// - Reserved addresses are never those that were wished for.
// - A physical allocation is mapped once. A second mapping of the same bytes is not supported.
// - A kernel cannot access host memory that cuMemHostAlloc returned.
// - Time is simulated: only launches, copies and fills take some. Matrix units are far
//   slower than any.
// - The double's device takes the addresses of any other sim::Device in its process: whichever is
//   made second fails.
//
// Faults are a text, see support/faults.h. Calls count from 1 since the faults were set. The
// environment variable ASSAY_CUDA_DOUBLE holds the text at first; a text there that is no fault
// text ends the process.
#pragma once

#define ASSAY_CUDA_DOUBLE_EXPORT extern "C" __attribute__((visibility("default")))

// Replaces all faults; "" removes them. Returns 0; 1, after a line on stderr, and without a change
// when `text` is no fault text.
ASSAY_CUDA_DOUBLE_EXPORT int assay_cuda_double_faults(const char* text);

// Everything becomes as before cuInit, without faults. All handles and addresses are void.
ASSAY_CUDA_DOUBLE_EXPORT void assay_cuda_double_reset();
