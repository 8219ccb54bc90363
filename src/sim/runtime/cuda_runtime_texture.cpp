// Arrays, copies of them, and texture objects.
#include <algorithm>

#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"
#include "sim/runtime/transfers.h"

namespace assay::sim::cuda {
namespace {

using CopyCall = Runtime::CopyCall;

// For surfaces, which no kernel can have.
constexpr unsigned kSurfaces = 2;  // cudaArraySurfaceLoadStore

cudaError_t allocate_array(cudaArray_t* handle, const cudaChannelFormatDesc* channels,
                           const cudaExtent& extent, unsigned flags) {
  return call([&](Runtime& runtime) {
    if (handle == nullptr || channels == nullptr) return cudaErrorInvalidValue;
    if (runtime.device().is_hardware()) return runtime.unsupported("arrays on a GPU");
    if ((flags & ~kSurfaces) != 0)
      return runtime.unsupported("arrays with layers, of cubes, for gathers or sparse");
    cudaArray array;
    cudaError_t error = lay_out(*channels, extent, flags, array);
    if (error != cudaSuccess) return error;
    if (error = runtime.admit_unsafe(); error != cudaSuccess) return error;
    void* texels = nullptr;
    error = runtime.allocate(array.slice_bytes * array.slices(), &texels);
    if (error != cudaSuccess) return error;
    array.address = reinterpret_cast<std::uintptr_t>(texels);
    *handle = runtime.textures().add(array);
    return cudaSuccess;
  });
}

// A box of so many bytes and rows, from or to memory with that pitch.
struct ArrayCopy {
  CopyCall call;
  const cudaArray* array;
  std::size_t byte, row;  // where it begins in the array
  const void* memory;
  std::size_t pitch, width, height;
  cudaMemcpyKind kind;
};

cudaError_t copy_rows(Runtime& runtime, const ArrayCopy& c, bool to_array) {
  if (!runtime.valid(c.call.stream)) return cudaErrorInvalidResourceHandle;
  if (c.width > c.pitch) return cudaErrorInvalidPitchValue;
  if (!runtime.textures().valid(c.array)) return cudaErrorInvalidResourceHandle;
  const cudaExtent box{c.width, c.height, 1};
  const Rows of_memory{static_cast<char*>(const_cast<void*>(c.memory)), c.pitch, 0};
  Rows of_array;
  const cudaError_t error = part_of(*c.array, {c.byte, c.row, 0}, box, of_array);
  if (error != cudaSuccess) return error;
  return copy_box(runtime, c.call,
                  to_array ? CopyWork{of_array, of_memory, box, c.kind}
                           : CopyWork{of_memory, of_array, box, c.kind});
}

cudaError_t copy(const ArrayCopy& c, bool to_array) {
  return call_blocking([&](Runtime& runtime) { return copy_rows(runtime, c, to_array); });
}

// So many bytes, row after row of the array from the place on; they are contiguous in memory.
struct RunCopy {
  CopyCall call;
  const cudaArray* array;
  std::size_t byte, row;
  const void* memory;
  std::size_t bytes;
  cudaMemcpyKind kind;
};

// The rest of the first row, whole rows, and a part of the last one.
cudaError_t copy(RunCopy c, bool to_array) {
  return call_blocking([&](Runtime& runtime) {
    if (!runtime.textures().valid(c.array)) return cudaErrorInvalidResourceHandle;
    const std::size_t width = c.array->extent.width * c.array->format.bytes();
    if (c.byte >= width || c.row >= c.array->rows()) return cudaErrorInvalidValue;
    if (c.bytes > width * (c.array->rows() - c.row) - c.byte) return cudaErrorInvalidValue;
    cudaError_t error = cudaSuccess;
    while (c.bytes > 0 && error == cudaSuccess) {
      const bool whole = c.byte == 0 && c.bytes >= width;
      const std::size_t bytes = whole ? width : std::min(width - c.byte, c.bytes);
      const std::size_t rows = whole ? c.bytes / width : 1;
      error =
          copy_rows(runtime, {c.call, c.array, c.byte, c.row, c.memory, bytes, bytes, rows, c.kind},
                    to_array);
      c.memory = static_cast<const char*>(c.memory) + bytes * rows;
      c.bytes -= bytes * rows;
      c.row += rows;
      c.byte = 0;
    }
    return error;
  });
}

}  // namespace

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, size_t width,
                            size_t height, unsigned flags) {
  return allocate_array(array, channels, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                              cudaExtent extent, unsigned flags) {
  return allocate_array(array, channels, extent, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return call_blocking([&](Runtime& runtime) {
    if (array == nullptr) return cudaSuccess;
    if (!runtime.textures().valid(array)) return cudaErrorInvalidValue;
    if (const cudaError_t error = runtime.admit_unsafe(); error != cudaSuccess) return error;
    runtime.host_waits_for_all();
    const cudaError_t error = runtime.free(reinterpret_cast<void*>(array->address));
    runtime.textures().remove(array);
    return error;
  });
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channels, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  return call([&](Runtime& runtime) {
    if (!runtime.textures().valid(array)) return cudaErrorInvalidValue;
    if (channels != nullptr) *channels = array->channels;
    if (extent != nullptr) *extent = array->extent;
    if (flags != nullptr) *flags = array->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
  return call([&](Runtime& runtime) {
    if (channels == nullptr || !runtime.textures().valid(array)) return cudaErrorInvalidValue;
    *channels = array->channels;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t byte, size_t row, const void* from,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return copy({{nullptr, "cudaMemcpy2DToArray"}, to, byte, row, from, pitch, width, height, kind},
              true);
}
ASSAY_CUDA_PER_THREAD(8, cudaMemcpy2DToArray, _ptds);

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t byte, size_t row, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return copy(
      {{stream, "cudaMemcpy2DToArrayAsync", true}, to, byte, row, from, pitch, width, height, kind},
      true);
}
ASSAY_CUDA_PER_THREAD(9, cudaMemcpy2DToArrayAsync, _ptsz);

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t byte,
                                  size_t row, size_t width, size_t height, cudaMemcpyKind kind) {
  return copy({{nullptr, "cudaMemcpy2DFromArray"}, from, byte, row, to, pitch, width, height, kind},
              false);
}
ASSAY_CUDA_PER_THREAD(8, cudaMemcpy2DFromArray, _ptds);

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t byte,
                                       size_t row, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return copy({{stream, "cudaMemcpy2DFromArrayAsync", true},
               from,
               byte,
               row,
               to,
               pitch,
               width,
               height,
               kind},
              false);
}
ASSAY_CUDA_PER_THREAD(9, cudaMemcpy2DFromArrayAsync, _ptsz);

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t byte, size_t row, const void* from,
                              size_t bytes, cudaMemcpyKind kind) {
  return copy(RunCopy{{nullptr, "cudaMemcpyToArray"}, to, byte, row, from, bytes, kind}, true);
}
ASSAY_CUDA_PER_THREAD(6, cudaMemcpyToArray, _ptds);

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t byte, size_t row, const void* from,
                                   size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy(RunCopy{{stream, "cudaMemcpyToArrayAsync", true}, to, byte, row, from, bytes, kind},
              true);
}
ASSAY_CUDA_PER_THREAD(7, cudaMemcpyToArrayAsync, _ptsz);

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t byte, size_t row,
                                size_t bytes, cudaMemcpyKind kind) {
  return copy(RunCopy{{nullptr, "cudaMemcpyFromArray"}, from, byte, row, to, bytes, kind}, false);
}
ASSAY_CUDA_PER_THREAD(6, cudaMemcpyFromArray, _ptds);

cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, size_t byte, size_t row,
                                     size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy(RunCopy{{stream, "cudaMemcpyFromArrayAsync", true}, from, byte, row, to, bytes, kind},
              false);
}
ASSAY_CUDA_PER_THREAD(7, cudaMemcpyFromArrayAsync, _ptsz);

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* handle, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture,
                                    const cudaResourceViewDesc* view) {
  return call([&](Runtime& runtime) {
    if (handle == nullptr || resource == nullptr || texture == nullptr)
      return cudaErrorInvalidValue;
    if (runtime.device().is_hardware()) return runtime.unsupported("textures on a GPU");
    if (view != nullptr) return runtime.unsupported("a resource view of a texture");
    const TextureObject object{*resource, *texture};
    TextureDescriptor descriptor;
    const char* why = "";
    cudaError_t error = describe_texture(runtime.textures(), object, descriptor, why);
    if (error == cudaErrorNotSupported) return runtime.unsupported(why);
    if (error != cudaSuccess) return error;
    void* place = nullptr;
    if (error = runtime.allocate(sizeof descriptor, &place); error != cudaSuccess) return error;
    *handle = reinterpret_cast<std::uintptr_t>(place);
    runtime.device().write(*handle, std::as_bytes(std::span(&descriptor, 1)));
    runtime.textures().add(*handle, object);
    return cudaSuccess;
  });
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) {
  return call([&](Runtime& runtime) {
    if (handle == 0) return cudaSuccess;
    if (!runtime.textures().remove(handle)) return cudaErrorInvalidValue;
    return runtime.free(reinterpret_cast<void*>(handle));
  });
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaTextureObject_t handle) {
  return call([&](Runtime& runtime) {
    const TextureObject* const object = runtime.textures().find(handle);
    if (resource == nullptr || object == nullptr) return cudaErrorInvalidValue;
    *resource = object->resource;
    return cudaSuccess;
  });
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t handle) {
  return call([&](Runtime& runtime) {
    const TextureObject* const object = runtime.textures().find(handle);
    if (texture == nullptr || object == nullptr) return cudaErrorInvalidValue;
    *texture = object->texture;
    return cudaSuccess;
  });
}

}  // namespace assay::sim::cuda
