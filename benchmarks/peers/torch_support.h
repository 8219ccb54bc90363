// Buffers of a case as torch tensors, without copies.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>
#include <vector>

#include "peers/peer.h"

namespace assay::peers {

inline at::Tensor tensor(const PeerCase& c, int handle) {
  const auto& plan = c.plan.buffers[static_cast<std::size_t>(handle)];
  return at::from_blob(c.buffers[static_cast<std::size_t>(handle)].data, plan.shape,
                       at::TensorOptions().dtype(at::kFloat));
}

inline void copy_out(const at::Tensor& from, const BufferView& to) {
  const at::Tensor packed = from.contiguous();
  if (to.bytes != 0) std::memcpy(to.data, packed.data_ptr(), to.bytes);
}

}  // namespace assay::peers
