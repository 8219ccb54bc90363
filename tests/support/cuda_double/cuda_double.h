// A test double of the CUDA driver: libcuda_double.so exports what gpu/driver.h uses of the driver
// API, on top of the simulator, so that tests need no GPU.
//
// There are three GPUs: 0 and 1 call themselves a simulated H200, 2 a simulated H100. A process
// sees one of them, which CUDA_VISIBLE_DEVICES names by its number; the first without it.
//
// Every call does its work before it returns, in the order of the calls. A kernel that faults
// breaks the context, as on hardware: its launch succeeds, and every later call that needs a
// context returns the fault.
//
// Where the double differs from a driver:
// - Memory exists as soon as its addresses are reserved. Copies and fills fail outside mapped and
//   accessible memory; a kernel's accesses fail only outside the reservation.
// - A reservation never gets the addresses it asks for.
// - A physical allocation is mapped once. A second mapping of the same bytes is not supported.
// - A kernel cannot access host memory that cuMemHostAlloc returned.
// - Time is simulated: only launches, copies and fills take any. Matrix units are far
//   slower than real ones.
// - The double's device uses the same addresses as any other sim::Device in its process:
//   whichever is made second fails.
//
// Faults are given as text, see support/faults.h. Calls count from 1 since the faults were set.
// The environment variable ASSAY_CUDA_DOUBLE holds the initial text; if it is not a valid fault
// text, the process exits.
#pragma once

#define ASSAY_CUDA_DOUBLE_EXPORT extern "C" __attribute__((visibility("default")))

// Replaces all faults; "" removes them. Returns 0. If `text` is not a valid fault text, changes
// nothing, prints a line on stderr and returns 1.
ASSAY_CUDA_DOUBLE_EXPORT int assay_cuda_double_faults(const char* text);

// Resets everything to the state before cuInit, without faults. All handles and addresses become
// invalid.
ASSAY_CUDA_DOUBLE_EXPORT void assay_cuda_double_reset();
