// Copies and fills of boxes of memory.
//
// The pointers determine the direction; a kind that contradicts them is undefined in CUDA and
// cudaErrorInvalidValue here.
#pragma once

#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {

// What an API call describes, with its pitches checked.
CopyWork line(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
Rows rows_at(const cudaPitchedPtr&, const cudaPos&);
// The rows of an array from a place on, if the box fits there. Widths are in bytes.
cudaError_t part_of(const cudaArray&, const cudaPos& at, const cudaExtent& box, Rows&);
cudaError_t box_of(Runtime&, const cudaMemcpy3DParms*, CopyWork&);

// Executes it in the call's stream, or adds a node if that stream is captured.
cudaError_t copy_box(Runtime&, const Runtime::CopyCall&, const CopyWork&);
cudaError_t fill_box(Runtime&, const Runtime::CopyCall&, const FillWork&);

}  // namespace assay::sim::cuda
