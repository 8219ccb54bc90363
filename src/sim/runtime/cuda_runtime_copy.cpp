// Copies and fills of memory, by pointer and by symbol.
//
// The direction follows from the pointers; a kind that contradicts them is undefined in CUDA and
// cudaErrorInvalidValue here.
#include <cstring>

#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

cudaError_t check_kind(const void* to, const void* from, cudaMemcpyKind kind) {
  if (kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool agree = is_device(to) == to_device && is_device(from) == from_device;
  return agree ? cudaSuccess : cudaErrorInvalidValue;
}

// 32 bytes of traffic a nanosecond.
std::uint64_t work_of(std::uint64_t bytes) { return bytes / 32; }

using CopyCall = Runtime::CopyCall;

cudaError_t copy(Runtime& runtime, const CopyCall& call, void* to, const void* from,
                 std::size_t bytes, cudaMemcpyKind kind) {
  if (kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_kind(to, from, kind); error != cudaSuccess) return error;
  runtime.advance(work_of(bytes));
  runtime.begin_copy(call, to, from);
  return runtime.copy(call, to, from, bytes);
}

// A box of rows in one memory.
struct Rows {
  char* begin;
  std::size_t row_pitch, slice_pitch;
  char* row(std::size_t y, std::size_t z) const { return begin + z * slice_pitch + y * row_pitch; }
};

cudaError_t copy_box(Runtime& runtime, const CopyCall& call, const Rows& to, const Rows& from,
                     cudaExtent box, cudaMemcpyKind kind) {
  if (kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (box.width == 0 || box.height == 0 || box.depth == 0) return cudaSuccess;
  if (to.begin == nullptr || from.begin == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_kind(to.begin, from.begin, kind); error != cudaSuccess) {
    return error;
  }
  runtime.advance(work_of(box.width * box.height * box.depth));
  runtime.begin_copy(call, to.begin, from.begin);
  for (std::size_t z = 0; z < box.depth; ++z) {
    for (std::size_t y = 0; y < box.height; ++y) {
      const cudaError_t error = runtime.copy(call, to.row(y, z), from.row(y, z), box.width);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

cudaError_t copy_2d(Runtime& runtime, const CopyCall& call, void* to, std::size_t to_pitch,
                    const void* from, std::size_t from_pitch, std::size_t width, std::size_t height,
                    cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  return copy_box(runtime, call, {static_cast<char*>(to), to_pitch, 0},
                  {static_cast<char*>(const_cast<void*>(from)), from_pitch, 0}, {width, height, 1},
                  kind);
}

Rows rows_at(const cudaPitchedPtr& p, const cudaPos& at) {
  const Rows whole{static_cast<char*>(p.ptr), p.pitch, p.pitch * p.ysize};
  return {p.ptr == nullptr ? nullptr : whole.row(at.y, at.z) + at.x, p.pitch, p.pitch * p.ysize};
}

cudaError_t copy_3d(Runtime& runtime, const CopyCall& call, const cudaMemcpy3DParms* p) {
  if (p == nullptr) return cudaErrorInvalidValue;
  if (p->srcArray != nullptr || p->dstArray != nullptr) {
    return runtime.unsupported("cudaMemcpy3D of a cudaArray");
  }
  const cudaExtent& box = p->extent;
  for (const auto& [pointer, at] :
       {std::pair{p->srcPtr, p->srcPos}, std::pair{p->dstPtr, p->dstPos}}) {
    if (box.width + at.x > pointer.pitch && box.height * box.depth > 1)
      return cudaErrorInvalidPitchValue;
    if (box.depth > 1 && box.height + at.y > pointer.ysize) return cudaErrorInvalidValue;
  }
  return copy_box(runtime, call, rows_at(p->dstPtr, p->dstPos), rows_at(p->srcPtr, p->srcPos), box,
                  p->kind);
}

cudaError_t fill(Runtime& runtime, void* pointer, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!is_device(pointer)) return cudaErrorInvalidValue;
  const bool done = runtime.device().fill(reinterpret_cast<std::uintptr_t>(pointer),
                                          static_cast<std::byte>(value), bytes);
  return done ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t fill_box(Runtime& runtime, const Rows& to, int value, cudaExtent box) {
  if (box.width == 0 || box.height == 0 || box.depth == 0) return cudaSuccess;
  if (box.width > to.row_pitch && box.height * box.depth > 1) return cudaErrorInvalidValue;
  runtime.advance(work_of(box.width * box.height * box.depth));
  for (std::size_t z = 0; z < box.depth; ++z) {
    for (std::size_t y = 0; y < box.height; ++y) {
      const cudaError_t error = fill(runtime, to.row(y, z), value, box.width);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

// The device address of [offset, offset + bytes) of a variable.
cudaError_t part_of_symbol(Runtime& runtime, const void* name, std::size_t offset,
                           std::size_t bytes, char*& address) {
  const Symbol* symbol = nullptr;
  VariableInfo where;
  if (const cudaError_t error = runtime.find_symbol(name, symbol, where); error != cudaSuccess) {
    return error;
  }
  if (offset > where.bytes || bytes > where.bytes - offset) return cudaErrorInvalidValue;
  address = reinterpret_cast<char*>(where.address + offset);
  return cudaSuccess;
}

cudaError_t to_symbol(Runtime& runtime, const CopyCall& call, const void* symbol, const void* from,
                      std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost) {
    return cudaErrorInvalidMemcpyDirection;
  }
  char* to = nullptr;
  const cudaError_t error = part_of_symbol(runtime, symbol, offset, bytes, to);
  return error == cudaSuccess ? copy(runtime, call, to, from, bytes, kind) : error;
}

cudaError_t from_symbol(Runtime& runtime, const CopyCall& call, void* to, const void* symbol,
                        std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice) {
    return cudaErrorInvalidMemcpyDirection;
  }
  char* from = nullptr;
  const cudaError_t error = part_of_symbol(runtime, symbol, offset, bytes, from);
  return error == cudaSuccess ? copy(runtime, call, to, from, bytes, kind) : error;
}

// As `call`, for work in a stream.
template <class Body>
cudaError_t call_in(cudaStream_t stream, Body&& body) {
  return call([&](Runtime& runtime) {
    return runtime.valid(stream) ? body(runtime) : cudaErrorInvalidResourceHandle;
  });
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call_blocking([&](Runtime& runtime) {
    return copy(runtime, {nullptr, "cudaMemcpy", false}, to, from, bytes, kind);
  });
}
ASSAY_CUDA_PER_THREAD(4, cudaMemcpy, _ptds);

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return copy(runtime, {stream, "cudaMemcpyAsync", true}, to, from, bytes, kind);
  });
}
ASSAY_CUDA_PER_THREAD(5, cudaMemcpyAsync, _ptsz);

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  return call_blocking([&](Runtime& runtime) {
    if (to_device != 0 || from_device != 0) return cudaErrorInvalidDevice;
    return copy(runtime, {nullptr, "cudaMemcpyPeer", false}, to, from, bytes,
                cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    if (to_device != 0 || from_device != 0) return cudaErrorInvalidDevice;
    return copy(runtime, {stream, "cudaMemcpyPeerAsync", true}, to, from, bytes,
                cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return call_blocking([&](Runtime& runtime) {
    return copy_2d(runtime, {nullptr, "cudaMemcpy2D", false}, to, to_pitch, from, from_pitch, width,
                   height, kind);
  });
}
ASSAY_CUDA_PER_THREAD(7, cudaMemcpy2D, _ptds);

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return copy_2d(runtime, {stream, "cudaMemcpy2DAsync", true}, to, to_pitch, from, from_pitch,
                   width, height, kind);
  });
}
ASSAY_CUDA_PER_THREAD(8, cudaMemcpy2DAsync, _ptsz);

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return call_blocking([&](Runtime& runtime) {
    return copy_3d(runtime, {nullptr, "cudaMemcpy3D", false}, p);
  });
}
ASSAY_CUDA_PER_THREAD(1, cudaMemcpy3D, _ptds);

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return copy_3d(runtime, {stream, "cudaMemcpy3DAsync", true}, p);
  });
}
ASSAY_CUDA_PER_THREAD(2, cudaMemcpy3DAsync, _ptsz);

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return call_blocking([&](Runtime& runtime) {
    return to_symbol(runtime, {nullptr, "cudaMemcpyToSymbol", false}, symbol, from, bytes, offset,
                     kind);
  });
}
ASSAY_CUDA_PER_THREAD(5, cudaMemcpyToSymbol, _ptds);

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return to_symbol(runtime, {stream, "cudaMemcpyToSymbolAsync", true}, symbol, from, bytes,
                     offset, kind);
  });
}
ASSAY_CUDA_PER_THREAD(6, cudaMemcpyToSymbolAsync, _ptsz);

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return call_blocking([&](Runtime& runtime) {
    return from_symbol(runtime, {nullptr, "cudaMemcpyFromSymbol", false}, to, symbol, bytes, offset,
                       kind);
  });
}
ASSAY_CUDA_PER_THREAD(5, cudaMemcpyFromSymbol, _ptds);

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return from_symbol(runtime, {stream, "cudaMemcpyFromSymbolAsync", true}, to, symbol, bytes,
                       offset, kind);
  });
}
ASSAY_CUDA_PER_THREAD(6, cudaMemcpyFromSymbolAsync, _ptsz);

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return call([&](Runtime& runtime) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    char* address = nullptr;
    const cudaError_t error = part_of_symbol(runtime, symbol, 0, 0, address);
    if (error == cudaSuccess) *pointer = address;
    return error;
  });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return call([&](Runtime& runtime) {
    if (bytes == nullptr) return cudaErrorInvalidValue;
    const Symbol* found = nullptr;
    VariableInfo where;
    const cudaError_t error = runtime.find_symbol(symbol, found, where);
    if (error == cudaSuccess) *bytes = where.bytes;
    return error;
  });
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return call([&](Runtime& runtime) {
    runtime.issue(nullptr, "cudaMemset");
    runtime.advance(work_of(bytes));
    return fill(runtime, pointer, value, bytes);
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaMemset, _ptds);

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    runtime.issue(stream, "cudaMemsetAsync");
    runtime.advance(work_of(bytes));
    return fill(runtime, pointer, value, bytes);
  });
}
ASSAY_CUDA_PER_THREAD(4, cudaMemsetAsync, _ptsz);

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return call([&](Runtime& runtime) {
    runtime.issue(nullptr, "cudaMemset2D");
    return fill_box(runtime, {static_cast<char*>(pointer), pitch, 0}, value, {width, height, 1});
  });
}
ASSAY_CUDA_PER_THREAD(5, cudaMemset2D, _ptds);

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    runtime.issue(stream, "cudaMemset2DAsync");
    return fill_box(runtime, {static_cast<char*>(pointer), pitch, 0}, value, {width, height, 1});
  });
}
ASSAY_CUDA_PER_THREAD(6, cudaMemset2DAsync, _ptsz);

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return call([&](Runtime& runtime) {
    runtime.issue(nullptr, "cudaMemset3D");
    return fill_box(runtime, rows_at(pointer, {}), value, extent);
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaMemset3D, _ptds);

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    runtime.issue(stream, "cudaMemset3DAsync");
    return fill_box(runtime, rows_at(pointer, {}), value, extent);
  });
}
ASSAY_CUDA_PER_THREAD(4, cudaMemset3DAsync, _ptsz);

// Arrays are refused, but headers build descriptors in passing.
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // namespace assay::sim::cuda
