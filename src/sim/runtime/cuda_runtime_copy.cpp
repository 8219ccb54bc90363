// Copies and fills of memory, by pointer and by symbol.
#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"
#include "sim/runtime/transfers.h"

namespace assay::sim::cuda {
namespace {

using CopyCall = Runtime::CopyCall;

cudaError_t copy(Runtime& runtime, const CopyCall& call, void* to, const void* from,
                 std::size_t bytes, cudaMemcpyKind kind) {
  return copy_box(runtime, call, line(to, from, bytes, kind));
}

cudaError_t copy_2d(Runtime& runtime, const CopyCall& call, void* to, std::size_t to_pitch,
                    const void* from, std::size_t from_pitch, std::size_t width, std::size_t height,
                    cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  return copy_box(runtime, call,
                  {{static_cast<char*>(to), to_pitch, 0},
                   {static_cast<char*>(const_cast<void*>(from)), from_pitch, 0},
                   {width, height, 1},
                   kind});
}

cudaError_t copy_3d(Runtime& runtime, const CopyCall& call, const cudaMemcpy3DParms* p) {
  CopyWork work;
  const cudaError_t error = box_of(runtime, p, work);
  return error == cudaSuccess ? copy_box(runtime, call, work) : error;
}

FillWork fill_of(void* pointer, std::size_t pitch, int value, std::size_t width,
                 std::size_t height) {
  return {{static_cast<char*>(pointer), pitch, 0}, value, {width, height, 1}};
}

FillWork fill_of(const cudaPitchedPtr& p, int value, cudaExtent box) {
  return {rows_at(p, {}), value, box};
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

// Like `call`, for work in a stream.
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
    return fill_box(runtime, {nullptr, "cudaMemset"}, fill_of(pointer, bytes, value, bytes, 1));
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaMemset, _ptds);

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return fill_box(runtime, {stream, "cudaMemsetAsync", true},
                    fill_of(pointer, bytes, value, bytes, 1));
  });
}
ASSAY_CUDA_PER_THREAD(4, cudaMemsetAsync, _ptsz);

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return call([&](Runtime& runtime) {
    return fill_box(runtime, {nullptr, "cudaMemset2D"},
                    fill_of(pointer, pitch, value, width, height));
  });
}
ASSAY_CUDA_PER_THREAD(5, cudaMemset2D, _ptds);

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return fill_box(runtime, {stream, "cudaMemset2DAsync", true},
                    fill_of(pointer, pitch, value, width, height));
  });
}
ASSAY_CUDA_PER_THREAD(6, cudaMemset2DAsync, _ptsz);

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return call([&](Runtime& runtime) {
    return fill_box(runtime, {nullptr, "cudaMemset3D"}, fill_of(pointer, value, extent));
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaMemset3D, _ptds);

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return call_in(stream, [&](Runtime& runtime) {
    return fill_box(runtime, {stream, "cudaMemset3DAsync", true}, fill_of(pointer, value, extent));
  });
}
ASSAY_CUDA_PER_THREAD(4, cudaMemset3DAsync, _ptsz);

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // namespace assay::sim::cuda
