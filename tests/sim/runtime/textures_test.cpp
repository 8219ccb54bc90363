// Arrays and texture objects: layouts and formats alone, then through the API on a fake device.
#include "sim/runtime/textures.h"

#include <array>
#include <numeric>

#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

using Element = TextureDescriptor::Element;
using Edge = TextureDescriptor::Edge;

constexpr cudaChannelFormatDesc kFloat{32, 0, 0, 0, cudaChannelFormatKindFloat};
constexpr cudaChannelFormatDesc kBytes{8, 8, 8, 8, cudaChannelFormatKindUnsigned};

TEST(TexelFormat, ChannelsAreAlike) {
  const auto bytes_of = [](int x, int y, int z, int w, cudaChannelFormatKind kind) {
    const auto format = format_of({x, y, z, w, kind});
    return format ? format->bytes() : 0;
  };
  EXPECT_EQ(bytes_of(8, 0, 0, 0, cudaChannelFormatKindSigned), 1u);
  EXPECT_EQ(bytes_of(16, 16, 0, 0, cudaChannelFormatKindFloat), 4u);
  EXPECT_EQ(bytes_of(32, 32, 32, 32, cudaChannelFormatKindUnsigned), 16u);
  EXPECT_EQ(bytes_of(32, 32, 32, 0, cudaChannelFormatKindFloat), 0u) << "three";
  EXPECT_EQ(bytes_of(32, 16, 0, 0, cudaChannelFormatKindFloat), 0u);
  EXPECT_EQ(bytes_of(32, 0, 32, 0, cudaChannelFormatKindFloat), 0u);
  EXPECT_EQ(bytes_of(8, 0, 0, 0, cudaChannelFormatKindFloat), 0u);
  EXPECT_EQ(bytes_of(64, 0, 0, 0, cudaChannelFormatKindSigned), 0u);
  EXPECT_EQ(bytes_of(0, 0, 0, 0, cudaChannelFormatKindNone), 0u);
}

class TexturesApi : public RuntimeTest {
 protected:
  static cudaArray_t array(cudaExtent extent, const cudaChannelFormatDesc& channels = kFloat) {
    cudaArray_t a = nullptr;
    EXPECT_EQ(cudaMalloc3DArray(&a, &channels, extent, 0), cudaSuccess);
    return a;
  }
  static cudaResourceDesc resource(cudaArray_t a) {
    cudaResourceDesc r{};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
  }
  static cudaTextureObject_t create(const cudaResourceDesc& r, const cudaTextureDesc& t = {}) {
    cudaTextureObject_t handle = 0;
    EXPECT_EQ(cudaCreateTextureObject(&handle, &r, &t, nullptr), cudaSuccess);
    return handle;
  }
  static cudaError_t refusal(const cudaResourceDesc& r, const cudaTextureDesc& t = {}) {
    cudaTextureObject_t handle = 0;
    return cudaCreateTextureObject(&handle, &r, &t, nullptr);
  }
  TextureDescriptor descriptor(cudaTextureObject_t handle) {
    TextureDescriptor d;
    std::memcpy(&d, state_.memory.at(handle).data(), sizeof d);
    return d;
  }
};

TEST_F(TexturesApi, ArraysAreRowsOfSectors) {
  const cudaArray_t a = array({10, 3, 2});
  EXPECT_EQ(a->row_bytes, 64u);
  EXPECT_EQ(state_.memory.at(a->address).size(), 64u * 3 * 2);
  cudaChannelFormatDesc channels{};
  cudaExtent extent{};
  unsigned flags = 1;
  EXPECT_EQ(cudaArrayGetInfo(&channels, &extent, &flags, a), cudaSuccess);
  EXPECT_EQ(channels.x, 32);
  EXPECT_EQ(extent.depth, 2u);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(cudaGetChannelDesc(&channels, a), cudaSuccess);
  const std::uint64_t address = a->address;
  EXPECT_EQ(cudaFreeArray(a), cudaSuccess);
  EXPECT_FALSE(state_.memory.contains(address));
  EXPECT_EQ(cudaFreeArray(a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeArray(nullptr), cudaSuccess);
}

TEST_F(TexturesApi, ArraysThatCannotBe) {
  cudaArray_t a = nullptr;
  const cudaChannelFormatDesc three{8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  EXPECT_EQ(cudaMallocArray(&a, &three, 4, 4, 0), cudaErrorInvalidChannelDescriptor);
  EXPECT_EQ(cudaMallocArray(&a, &kFloat, 0, 4, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocArray(&a, &kFloat, 131073, 0, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocArray(&a, &kFloat, 4, 65537, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocArray(nullptr, &kFloat, 4, 4, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocArray(&a, &kFloat, 1024, 1024, 0), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc3DArray(&a, &kFloat, {4, 4, 4}, 1), cudaErrorNotSupported) << "layers";
  EXPECT_EQ(a, nullptr);
}

TEST_F(TexturesApi, CopiesOfRows) {
  const cudaArray_t a = array({4, 3, 0});
  std::array<float, 12> in{}, out{};
  std::iota(in.begin(), in.end(), 1.0f);
  EXPECT_EQ(cudaMemcpy2DToArray(a, 0, 0, in.data(), 16, 16, 3, cudaMemcpyHostToDevice),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpy2DFromArray(out.data(), 16, a, 0, 0, 16, 3, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(out, in);
  float part[2] = {};
  EXPECT_EQ(cudaMemcpy2DFromArray(part, 4, a, 8, 1, 4, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(part[0], 7.0f);
  EXPECT_EQ(part[1], 11.0f);
  for (const auto& [byte, row, width, height] :
       {std::array{4u, 0u, 16u, 1u}, std::array{0u, 1u, 16u, 3u}, std::array{20u, 0u, 1u, 1u}}) {
    EXPECT_EQ(
        cudaMemcpy2DToArray(a, byte, row, in.data(), 16, width, height, cudaMemcpyHostToDevice),
        cudaErrorInvalidValue);
  }
  EXPECT_EQ(cudaMemcpy2DToArray(a, 0, 0, in.data(), 8, 16, 1, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemcpy2DToArray(a, 0, 0, in.data(), 16, 16, 1, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
}

TEST_F(TexturesApi, CopiesOfRunsGoOnInTheNextRow) {
  const cudaArray_t a = array({4, 3, 0});
  std::array<float, 12> zeros{}, in{}, out{};
  std::iota(in.begin(), in.end(), 1.0f);
  EXPECT_EQ(cudaMemcpyToArray(a, 0, 0, zeros.data(), 48, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyToArrayAsync(a, 12, 0, in.data(), 28, cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpyFromArray(out.data(), a, 0, 0, 48, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(out, (std::array<float, 12>{0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0}));
  float part[3] = {};
  EXPECT_EQ(cudaMemcpyFromArrayAsync(part, a, 8, 1, 12, cudaMemcpyDeviceToHost, nullptr),
            cudaSuccess);
  EXPECT_EQ(part[0], 4.0f);
  EXPECT_EQ(part[2], 6.0f);
  EXPECT_EQ(cudaMemcpyToArray(a, 0, 0, in.data(), 0, cudaMemcpyHostToDevice), cudaSuccess);
  for (const auto& [byte, row, bytes] : {std::array{16u, 0u, 4u}, std::array{0u, 3u, 4u},
                                         std::array{4u, 0u, 48u}, std::array{0u, 1u, 36u}}) {
    EXPECT_EQ(cudaMemcpyToArray(a, byte, row, in.data(), bytes, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
  }
}

TEST_F(TexturesApi, CopiesOfBoxesCountTexels) {
  const cudaArray_t a = array({4, 2, 2}), b = array({4, 2, 2});
  std::array<float, 16> in{}, out{};
  std::iota(in.begin(), in.end(), 1.0f);
  cudaMemcpy3DParms p{};
  p.srcPtr = {in.data(), 16, 4, 2};
  p.dstArray = a;
  p.extent = {4, 2, 2};
  p.kind = cudaMemcpyHostToDevice;
  EXPECT_EQ(cudaMemcpy3D(&p), cudaSuccess);
  p = {};
  p.srcArray = a;
  p.dstArray = b;
  p.srcPos = {1, 0, 1};
  p.extent = {3, 2, 1};
  p.kind = cudaMemcpyDeviceToDevice;
  EXPECT_EQ(cudaMemcpy3D(&p), cudaSuccess);
  p = {};
  p.srcArray = b;
  p.dstPtr = {out.data(), 12, 3, 2};
  p.extent = {3, 2, 1};
  p.kind = cudaMemcpyDeviceToHost;
  EXPECT_EQ(cudaMemcpy3D(&p), cudaSuccess);
  EXPECT_THAT(std::vector(out.begin(), out.begin() + 6),
              testing::ElementsAre(10.0f, 11.0f, 12.0f, 14.0f, 15.0f, 16.0f));
  p.extent = {5, 1, 1};
  EXPECT_EQ(cudaMemcpy3D(&p), cudaErrorInvalidValue);
  p.extent = {4, 1, 1};
  p.srcPos = {1, 0, 0};
  EXPECT_EQ(cudaMemcpy3D(&p), cudaErrorInvalidValue);
  p.dstArray = array({4, 2, 2}, {8, 0, 0, 0, cudaChannelFormatKindUnsigned});
  p.srcPos = {};
  EXPECT_EQ(cudaMemcpy3D(&p), cudaErrorInvalidValue) << "texels of other sizes";
}

TEST_F(TexturesApi, AnObjectDescribesItsArray) {
  const cudaArray_t a = array({10, 3, 0}, kBytes);
  cudaTextureDesc t{};
  t.addressMode[0] = cudaAddressModeMirror;
  t.addressMode[1] = cudaAddressModeBorder;
  t.filterMode = cudaFilterModeLinear;
  t.readMode = cudaReadModeNormalizedFloat;
  t.normalizedCoords = 1;
  t.borderColor[2] = 0.5f;
  const cudaTextureObject_t handle = create(resource(a), t);
  const TextureDescriptor d = descriptor(handle);
  EXPECT_EQ(d.mark, TextureDescriptor::kMark);
  EXPECT_EQ(d.address, a->address);
  EXPECT_EQ(d.row_bytes, 64u);
  EXPECT_EQ(d.slice_bytes, 192u);
  EXPECT_THAT(d.size, testing::ElementsAre(10, 3, 1));
  EXPECT_EQ(d.dimensions, 2);
  EXPECT_EQ(d.channels, 4);
  EXPECT_EQ(d.channel_bits, 8);
  EXPECT_EQ(d.element, Element::is_unsigned);
  EXPECT_EQ(d.edges[0], Edge::mirror);
  EXPECT_EQ(d.edges[1], Edge::border);
  EXPECT_TRUE(d.linear && d.normalized && d.as_float);
  EXPECT_EQ(d.border[2], 0.5f);

  cudaResourceDesc r{};
  cudaTextureDesc same{};
  EXPECT_EQ(cudaGetTextureObjectResourceDesc(&r, handle), cudaSuccess);
  EXPECT_EQ(r.res.array.array, a);
  EXPECT_EQ(cudaGetTextureObjectTextureDesc(&same, handle), cudaSuccess);
  EXPECT_EQ(same.filterMode, cudaFilterModeLinear);
  EXPECT_EQ(cudaDestroyTextureObject(handle), cudaSuccess);
  EXPECT_FALSE(state_.memory.contains(handle));
  EXPECT_EQ(cudaDestroyTextureObject(handle), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetTextureObjectTextureDesc(&same, handle), cudaErrorInvalidValue);
}

TEST_F(TexturesApi, AnObjectOfMemory) {
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeLinear;
  r.res.linear = {reinterpret_cast<void*>(kGlobalRange.begin + 1024), kFloat, 103};
  cudaTextureDesc t{};
  t.borderColor[0] = 7;
  TextureDescriptor d = descriptor(create(r, t));
  EXPECT_EQ(d.dimensions, 1);
  EXPECT_EQ(d.size[0], 25u);
  EXPECT_EQ(d.edges[0], Edge::border);
  EXPECT_EQ(d.border[0], 0.0f) << "beyond the end is zero";
  r.res.linear.devPtr = reinterpret_cast<void*>(kGlobalRange.begin + 64);
  EXPECT_EQ(refusal(r), cudaErrorInvalidValue) << "not aligned";

  r.resType = cudaResourceTypePitch2D;
  r.res.pitch2D = {reinterpret_cast<void*>(kGlobalRange.begin + 1024), kFloat, 10, 4, 64};
  d = descriptor(create(r));
  EXPECT_EQ(d.dimensions, 2);
  EXPECT_EQ(d.row_bytes, 64u);
  EXPECT_THAT(d.size, testing::ElementsAre(10, 4, 1));
  r.res.pitch2D.pitchInBytes = 48;
  EXPECT_EQ(refusal(r), cudaErrorInvalidValue) << "no multiple of a sector";
  r.res.pitch2D.pitchInBytes = 32;
  EXPECT_EQ(refusal(r), cudaErrorInvalidValue) << "less than a row";
}

TEST_F(TexturesApi, ObjectsThatCannotBe) {
  const cudaResourceDesc whole =
      resource(array({8, 8, 0}, {32, 0, 0, 0, cudaChannelFormatKindSigned}));
  cudaTextureDesc t{};
  t.readMode = cudaReadModeNormalizedFloat;
  EXPECT_EQ(refusal(whole, t), cudaErrorInvalidValue) << "32 bits are no fraction";
  t.readMode = cudaReadModeElementType;
  t.filterMode = cudaFilterModeLinear;
  EXPECT_EQ(refusal(whole, t), cudaErrorInvalidValue) << "integers are not interpolated";
  t = {};
  t.sRGB = 1;
  EXPECT_EQ(refusal(whole, t), cudaErrorNotSupported);
  cudaResourceDesc mipmapped = whole;
  mipmapped.resType = cudaResourceTypeMipmappedArray;
  EXPECT_EQ(refusal(mipmapped), cudaErrorNotSupported);
  EXPECT_EQ(refusal(resource(nullptr)), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(Runtime::instance().unsupported_api(),
              testing::ElementsAre("a texture of sRGB colours", "a texture of a mipmapped array"));
}

TEST_F(TexturesApi, ResetEndsThem) {
  const cudaArray_t a = array({8, 8, 0});
  const cudaTextureObject_t handle = create(resource(a));
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_TRUE(state_.memory.empty());
  EXPECT_EQ(cudaFreeArray(a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDestroyTextureObject(handle), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace assay::sim::cuda
