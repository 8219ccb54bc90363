// Copies and fills of boxes of memory.
//
// The direction follows from the pointers; a kind that contradicts them is undefined in CUDA and
// cudaErrorInvalidValue here.
#pragma once

#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {

// What an API call describes; its pitches are checked.
CopyWork line(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
Rows rows_at(const cudaPitchedPtr&, const cudaPos&);
cudaError_t box_of(Runtime&, const cudaMemcpy3DParms*, CopyWork&);

// Does it in the stream of the call, or adds a node to what is captured there.
cudaError_t copy_box(Runtime&, const Runtime::CopyCall&, const CopyWork&);
cudaError_t fill_box(Runtime&, const Runtime::CopyCall&, const FillWork&);

}  // namespace assay::sim::cuda
