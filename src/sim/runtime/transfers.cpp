#include "sim/runtime/transfers.h"

namespace assay::sim::cuda {
namespace {

// Managed memory belongs to both the host and the device.
cudaError_t check_kind(const Runtime& runtime, const void* to, const void* from,
                       cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool agree = (is_device(to) == to_device || runtime.is_managed(to)) &&
                     (is_device(from) == from_device || runtime.is_managed(from));
  return agree ? cudaSuccess : cudaErrorInvalidValue;
}

bool is_empty(const cudaExtent& box) { return box.width == 0 || box.height == 0 || box.depth == 0; }

// 32 bytes of traffic per nanosecond.
std::uint64_t work_of(const cudaExtent& box) { return box.width * box.height * box.depth / 32; }

// Runs `body(y, z)` for each row, until one call fails.
template <class Body>
cudaError_t each_row(Runtime& runtime, const cudaExtent& box, Body&& body) {
  cudaError_t error = cudaSuccess;
  for (std::size_t z = 0; z < box.depth && error == cudaSuccess; ++z) {
    for (std::size_t y = 0; y < box.height && error == cudaSuccess; ++y) {
      runtime.set_row(static_cast<std::uint32_t>(y));
      error = body(y, z);
    }
  }
  runtime.set_row(0);
  return error;
}

// Whether the work became a node or is not allowed; `error` then says what to return.
bool is_captured(Runtime& runtime, const Runtime::CopyCall& call, bool waits, const Work& work,
                 cudaError_t& error) {
  if (call.of_graph) return false;
  error = runtime.admit(call.stream, waits);
  if (error != cudaSuccess) return true;
  if (!runtime.is_captured(call.stream)) return false;
  const StreamKey key = Runtime::key_of(call.stream);
  error = waits ? runtime.captures().refuse(key) : runtime.captures().add(key, work);
  return true;
}

cudaError_t side_of(const cudaPitchedPtr& pointer, const cudaPos& at, const cudaExtent& box,
                    Rows& rows) {
  if (box.width + at.x > pointer.pitch && box.height * box.depth > 1)
    return cudaErrorInvalidPitchValue;
  if (box.depth > 1 && box.height + at.y > pointer.ysize) return cudaErrorInvalidValue;
  rows = rows_at(pointer, at);
  return cudaSuccess;
}

bool within(std::size_t at, std::size_t count, std::size_t size) {
  return at <= size && count <= size - at;
}

// Positions in an array count texels; `box` is in bytes.
cudaError_t side_of(const cudaArray& array, const cudaPos& at, const cudaExtent& box, Rows& rows) {
  if (at.x > array.extent.width) return cudaErrorInvalidValue;
  return part_of(array, {at.x * array.format.bytes(), at.y, at.z}, box, rows);
}

}  // namespace

CopyWork line(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return {{static_cast<char*>(to), bytes, bytes},
          {static_cast<char*>(const_cast<void*>(from)), bytes, bytes},
          {bytes, 1, 1},
          kind};
}

Rows rows_at(const cudaPitchedPtr& p, const cudaPos& at) {
  const Rows whole{static_cast<char*>(p.ptr), p.pitch, p.pitch * p.ysize};
  return {p.ptr == nullptr ? nullptr : whole.row(at.y, at.z) + at.x, p.pitch, p.pitch * p.ysize};
}

cudaError_t part_of(const cudaArray& array, const cudaPos& at, const cudaExtent& box, Rows& rows) {
  if (!within(at.x, box.width, array.extent.width * array.format.bytes()) ||
      !within(at.y, box.height, array.rows()) || !within(at.z, box.depth, array.slices())) {
    return cudaErrorInvalidValue;
  }
  const Rows whole{reinterpret_cast<char*>(array.address), array.row_bytes, array.slice_bytes};
  rows = {whole.row(at.y, at.z) + at.x, array.row_bytes, array.slice_bytes};
  return cudaSuccess;
}

// The width counts texels if an array takes part, else bytes.
cudaError_t box_of(Runtime& runtime, const cudaMemcpy3DParms* p, CopyWork& work) {
  if (p == nullptr) return cudaErrorInvalidValue;
  const cudaArray *const from = p->srcArray, *const to = p->dstArray;
  for (const cudaArray* array : {from, to}) {
    if (array != nullptr && !runtime.textures().valid(array)) return cudaErrorInvalidResourceHandle;
  }
  cudaExtent box = p->extent;
  if (const cudaArray* const array = from != nullptr ? from : to; array != nullptr) {
    if (from != nullptr && to != nullptr && from->format.bytes() != to->format.bytes())
      return cudaErrorInvalidValue;
    if (!within(0, box.width, array->extent.width)) return cudaErrorInvalidValue;
    box.width *= array->format.bytes();
  }
  cudaError_t error = from != nullptr ? side_of(*from, p->srcPos, box, work.from)
                                      : side_of(p->srcPtr, p->srcPos, box, work.from);
  if (error != cudaSuccess) return error;
  error = to != nullptr ? side_of(*to, p->dstPos, box, work.to)
                        : side_of(p->dstPtr, p->dstPos, box, work.to);
  work.box = box;
  work.kind = p->kind;
  return error;
}

cudaError_t copy_box(Runtime& runtime, const Runtime::CopyCall& call, const CopyWork& work) {
  const auto& [to, from, box, kind] = work;
  if (kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (is_empty(box)) return cudaSuccess;
  if (to.begin == nullptr || from.begin == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_kind(runtime, to.begin, from.begin, kind);
      error != cudaSuccess) {
    return error;
  }
  if (cudaError_t error{}; is_captured(runtime, call, !call.async, work, error)) return error;
  runtime.advance(work_of(box));
  runtime.begin_copy(call, to.begin, from.begin);
  const cudaError_t error = each_row(runtime, box, [&](std::size_t y, std::size_t z) {
    return runtime.copy(call, work.to.row(y, z), work.from.row(y, z), work.box.width);
  });
  if (!call.async) runtime.fetch_managed();
  return error;
}

cudaError_t fill_box(Runtime& runtime, const Runtime::CopyCall& call, const FillWork& work) {
  const auto& [to, value, box] = work;
  if (cudaError_t error{}; is_captured(runtime, call, false, work, error)) return error;
  runtime.issue(call.stream, call.name);
  if (is_empty(box)) return cudaSuccess;
  if (box.width > to.row_pitch && box.height * box.depth > 1) return cudaErrorInvalidValue;
  runtime.advance(work_of(box));
  return each_row(runtime, box, [&](std::size_t y, std::size_t z) {
    char* const row = work.to.row(y, z);
    if (!is_device(row)) return cudaErrorInvalidValue;
    const bool done = runtime.device().fill(reinterpret_cast<std::uintptr_t>(row),
                                            static_cast<std::byte>(work.value), work.box.width);
    return done ? cudaSuccess : cudaErrorInvalidValue;
  });
}

}  // namespace assay::sim::cuda
