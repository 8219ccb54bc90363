// A tensor map: what a TMA instruction (cp.async.bulk.tensor) finds at the address that names a
// tensor in global memory. The host program makes it with cuTensorMapEncodeTiled (NVIDIA, "CUDA
// Driver API", "Tensor Map Object Management") and passes it to kernels like any other 128 bytes.
//
// NVIDIA does not document these bytes; the layout below is our own. The program can write such
// bytes itself, so an instruction trusts nothing of them: see sound(). The elements that it copies
// are checked like any access.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::sim {

inline constexpr unsigned kMostDimensions = 5;

// Dimension 0 is the one whose elements are adjacent in memory.
struct TensorMap {
  static constexpr std::uint64_t kMark = 0x70616d726f736e74;

  // Numbers as in CUtensorMapDataType.
  enum class Element : std::uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16 };
  // Numbers as in CUtensorMapSwizzle.
  enum class Swizzle : std::uint8_t { none, span32, span64, span128 };

  std::uint64_t mark = kMark;
  // Not read, because CUTLASS clears a bit here for the sake of some drivers.
  std::uint64_t changed_by_programs = 0;
  std::uint64_t address = 0;                                   // of the first element
  std::array<std::uint64_t, kMostDimensions - 1> row_bytes{};  // from one index of dimension i + 1
                                                               // to the next
  std::array<std::uint32_t, kMostDimensions> last{};           // the largest index
  std::array<std::uint16_t, kMostDimensions> box{};  // indices that a copy spans: 1 to 256
  std::array<std::uint8_t, kMostDimensions> step{};  // it takes every step-th of them: 1 to 8, and
                                                     // 1 in dimension 0
  std::uint8_t dimensions = 1;
  Element element = Element::u8;
  Swizzle swizzle = Swizzle::none;
  std::array<std::uint8_t, 34> unused{};

  std::uint32_t element_bytes() const {
    constexpr std::array<std::uint8_t, 10> kBytes{1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    return kBytes[static_cast<std::size_t>(element)];
  }
  // How many elements a copy has in a dimension.
  std::uint32_t extent(unsigned d) const { return (box[d] + step[d] - 1u) / step[d]; }
  std::uint32_t box_row_bytes() const { return box[0] * element_bytes(); }
  std::uint64_t box_bytes() const {
    std::uint64_t bytes = box_row_bytes();
    for (unsigned d = 1; d < dimensions; ++d) bytes *= extent(d);
    return bytes;
  }
  // Whether the runtime could have written it.
  bool sound() const;
};
static_assert(sizeof(TensorMap) == 128);

// The arguments of cuTensorMapEncodeTiled, as numbers. Arrays beyond the rank are zero.
struct TensorMapRequest {
  std::uint32_t element = 0, rank = 0, interleave = 0, swizzle = 0, l2_promotion = 0, fill = 0;
  std::uint64_t address = 0;
  std::array<std::uint64_t, kMostDimensions> size{};
  std::array<std::uint64_t, kMostDimensions - 1> stride_bytes{};
  std::array<std::uint32_t, kMostDimensions> box{}, step{};

  // Copies the arrays, `rank` numbers each, but one less of strides. False, having copied nothing, if
  // there is no such rank or one of them is missing.
  bool take_arrays(const std::uint64_t* sizes, const std::uint64_t* strides,
                   const std::uint32_t* boxes, const std::uint32_t* steps);
};

// The bytes of a tensor map, as the GPU wants them.
using TensorMapBytes = std::array<std::byte, sizeof(TensorMap)>;

struct TensorMapReply {
  enum class Status : std::uint8_t {
    ok,
    invalid,      // an argument is outside its documented range
    unsupported,  // the simulator lacks something
  };
  Status status = Status::ok;
  std::string message;   // if unsupported: what is lacking
  TensorMapBytes map{};  // if ok
};

// A TensorMap for the simulator.
TensorMapReply encode(const TensorMapRequest&);

// Where a byte of a box that begins somewhere in shared memory lies, given its offset in shared
// memory without swizzling. Only the offset within kSwizzlePeriod changes.
std::uint64_t swizzled(TensorMap::Swizzle, std::uint64_t offset);
inline constexpr std::uint64_t kSwizzlePeriod = 1024;

}  // namespace assay::sim
