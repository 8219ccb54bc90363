// Arrays and texture objects. Both are memory of the device: an array's texels lie in rows, and the
// handle of an object is the address of a TextureDescriptor, which `tex` instructions read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "sim/runtime/abi.h"
#include "sim/texture.h"

namespace assay::sim::cuda {

// How texels are stored; nullopt: no format of a texture.
struct TexelFormat {
  std::uint8_t channels = 0, bits = 0;
  TextureDescriptor::Element element{};
  std::size_t bytes() const { return channels * bits / std::size_t{8}; }
};
std::optional<TexelFormat> format_of(const cudaChannelFormatDesc&);

// What the opaque handle of an array points to.
struct cudaArray {
  cudaChannelFormatDesc channels{};
  cudaExtent extent{};  // as the program gave it: 0 where the array has no such dimension
  unsigned flags = 0;
  TexelFormat format;
  std::uint64_t address = 0;  // of its texels on the device
  std::size_t row_bytes = 0, slice_bytes = 0;

  std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  std::size_t slices() const { return extent.depth == 0 ? 1 : extent.depth; }
};

struct TextureObject {
  cudaResourceDesc resource{};
  cudaTextureDesc texture{};
};

class Textures {
 public:
  cudaArray* add(const cudaArray&);
  bool valid(const cudaArray*) const;
  bool remove(const cudaArray*);

  void add(cudaTextureObject_t handle, const TextureObject& object) { objects_[handle] = object; }
  const TextureObject* find(cudaTextureObject_t) const;
  bool remove(cudaTextureObject_t handle) { return objects_.erase(handle) > 0; }

 private:
  std::map<const cudaArray*, std::unique_ptr<cudaArray>> arrays_;
  std::map<cudaTextureObject_t, TextureObject> objects_;
};

// Whether CUDA has such an array, and where its texels lie; cudaErrorInvalidValue otherwise.
cudaError_t lay_out(const cudaChannelFormatDesc&, const cudaExtent&, unsigned flags, cudaArray&);

// The descriptor of a texture of memory or of an array. `why`: what is not simulated, if the result
// is cudaErrorNotSupported.
cudaError_t describe_texture(const Textures&, const TextureObject&, TextureDescriptor&,
                             const char*& why);

}  // namespace assay::sim::cuda
