#include "sim/runtime/textures.h"

#include <algorithm>
#include <array>

namespace assay::sim::cuda {
namespace {

using Edge = TextureDescriptor::Edge;

// Limits of compute capability 9.0: CUDA C++ Programming Guide 13.0, "Compute Capabilities".
constexpr std::size_t kMost1D = 131072, kMost2D[] = {131072, 65536}, kMost3D = 16384;
constexpr std::size_t kMostLinear = std::size_t{1} << 28;  // texels
// In bytes. The simulated cudaMalloc aligns no better; that of a GPU does, to its textureAlignment.
constexpr std::size_t kAlignment = 256, kPitchUnit = 32;

bool fits(const cudaExtent& e) {
  if (e.width == 0 || (e.height == 0 && e.depth != 0)) return false;
  if (e.height == 0) return e.width <= kMost1D;
  if (e.depth == 0) return e.width <= kMost2D[0] && e.height <= kMost2D[1];
  return std::max({e.width, e.height, e.depth}) <= kMost3D;
}

std::uint32_t texels(std::size_t n) { return static_cast<std::uint32_t>(n == 0 ? 1 : n); }

cudaError_t of_array(const Textures& textures, const cudaArray* array, TextureDescriptor& d) {
  if (!textures.valid(array)) return cudaErrorInvalidResourceHandle;
  const cudaExtent& e = array->extent;
  d.address = array->address;
  d.row_bytes = array->row_bytes;
  d.slice_bytes = array->slice_bytes;
  d.size = {texels(e.width), texels(e.height), texels(e.depth)};
  d.dimensions = e.height == 0 ? 1 : e.depth == 0 ? 2 : 3;
  return cudaSuccess;
}

cudaError_t of_memory(const void* begin, std::size_t row_bytes, std::size_t width,
                      std::size_t height, TextureDescriptor& d) {
  d.address = reinterpret_cast<std::uintptr_t>(begin);
  if (d.address % kAlignment != 0 || width == 0) return cudaErrorInvalidValue;
  d.row_bytes = row_bytes;
  d.size = {texels(width), texels(height), 1};
  return cudaSuccess;
}

cudaError_t of_resource(const Textures& textures, const cudaResourceDesc& r, TextureDescriptor& d,
                        TexelFormat& format, const char*& why) {
  const auto take_format = [&](const cudaChannelFormatDesc& channels) {
    const auto known = format_of(channels);
    if (known) format = *known;
    return known.has_value();
  };
  switch (r.resType) {
    case cudaResourceTypeArray: {
      const cudaError_t error = of_array(textures, r.res.array.array, d);
      if (error == cudaSuccess) format = r.res.array.array->format;
      return error;
    }
    case cudaResourceTypeLinear: {
      const auto& linear = r.res.linear;
      if (!take_format(linear.desc)) return cudaErrorInvalidChannelDescriptor;
      const std::size_t width = linear.sizeInBytes / format.bytes();
      if (width > kMostLinear) return cudaErrorInvalidValue;
      d.dimensions = 1;
      return of_memory(linear.devPtr, linear.sizeInBytes, width, 1, d);
    }
    case cudaResourceTypePitch2D: {
      const auto& rows = r.res.pitch2D;
      if (!take_format(rows.desc)) return cudaErrorInvalidChannelDescriptor;
      const bool wide = rows.width > kMost2D[0] || rows.height > kMost2D[1] || rows.height == 0;
      if (wide || rows.pitchInBytes % kPitchUnit != 0 ||
          rows.pitchInBytes < rows.width * format.bytes()) {
        return cudaErrorInvalidValue;
      }
      d.dimensions = 2;
      return of_memory(rows.devPtr, rows.pitchInBytes, rows.width, rows.height, d);
    }
    case cudaResourceTypeMipmappedArray:
      why = "a texture of a mipmapped array";
      return cudaErrorNotSupported;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

std::optional<TexelFormat> format_of(const cudaChannelFormatDesc& c) {
  const std::array<int, 4> bits{c.x, c.y, c.z, c.w};
  const auto channels = static_cast<std::size_t>(std::ranges::find(bits, 0) - bits.begin());
  const bool known_count = channels == 1 || channels == 2 || channels == 4;
  const bool known_bits = bits[0] == 8 || bits[0] == 16 || bits[0] == 32;
  if (!known_count || !known_bits) return std::nullopt;
  for (std::size_t i = 0; i < 4; ++i) {
    if (bits[i] != (i < channels ? bits[0] : 0)) return std::nullopt;
  }
  TexelFormat f{static_cast<std::uint8_t>(channels), static_cast<std::uint8_t>(bits[0]), {}};
  switch (c.f) {
    case cudaChannelFormatKindSigned: f.element = TextureDescriptor::Element::is_signed; break;
    case cudaChannelFormatKindUnsigned: f.element = TextureDescriptor::Element::is_unsigned; break;
    case cudaChannelFormatKindFloat:
      if (f.bits == 8) return std::nullopt;
      f.element = TextureDescriptor::Element::is_float;
      break;
    default: return std::nullopt;
  }
  return f;
}

cudaArray* Textures::add(const cudaArray& array) {
  auto owned = std::make_unique<cudaArray>(array);
  cudaArray* const handle = owned.get();
  arrays_[handle] = std::move(owned);
  return handle;
}

bool Textures::valid(const cudaArray* array) const { return arrays_.contains(array); }

bool Textures::remove(const cudaArray* array) { return arrays_.erase(array) > 0; }

const TextureObject* Textures::find(cudaTextureObject_t handle) const {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : &found->second;
}

cudaError_t lay_out(const cudaChannelFormatDesc& channels, const cudaExtent& extent, unsigned flags,
                    cudaArray& array) {
  const auto format = format_of(channels);
  if (!format) return cudaErrorInvalidChannelDescriptor;
  if (!fits(extent)) return cudaErrorInvalidValue;
  array = {channels, extent, flags, *format};
  array.row_bytes = (extent.width * format->bytes() + kPitchUnit - 1) / kPitchUnit * kPitchUnit;
  array.slice_bytes = array.row_bytes * array.rows();
  return cudaSuccess;
}

cudaError_t describe_texture(const Textures& textures, const TextureObject& object,
                             TextureDescriptor& d, const char*& why) {
  const cudaTextureDesc& t = object.texture;
  d = {};
  TexelFormat format;
  const cudaError_t error = of_resource(textures, object.resource, d, format, why);
  if (error != cudaSuccess) return error;
  d.channels = format.channels;
  d.channel_bits = format.bits;
  d.element = format.element;
  if (t.sRGB != 0) {
    why = "a texture of sRGB colours";
    return cudaErrorNotSupported;
  }
  const bool is_float = format.element == TextureDescriptor::Element::is_float;
  d.normalized = t.normalizedCoords != 0;
  d.linear = t.filterMode == cudaFilterModeLinear;
  d.as_float = !is_float && t.readMode == cudaReadModeNormalizedFloat;
  if (d.as_float && format.bits == 32) return cudaErrorInvalidValue;
  if (d.linear && !is_float && !d.as_float) return cudaErrorInvalidValue;
  std::ranges::copy(t.borderColor, d.border.begin());
  for (std::size_t i = 0; i < 3; ++i) {
    if (t.addressMode[i] > cudaAddressModeBorder) return cudaErrorInvalidValue;
    d.edges[i] = static_cast<Edge>(t.addressMode[i]);
  }
  if (object.resource.resType == cudaResourceTypeLinear) {
    // Fetched by tex1Dfetch only: by number, and zero beyond the end.
    d.normalized = d.linear = false;
    d.edges.fill(Edge::border);
    d.border = {};
  }
  return cudaSuccess;
}

}  // namespace assay::sim::cuda
