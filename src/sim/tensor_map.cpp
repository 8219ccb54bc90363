#include "sim/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace assay::sim {
namespace {

constexpr std::uint32_t kMostBox = 256, kMostStep = 8;
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 32, kMostStride = std::uint64_t{1} << 40;
// Of addresses, strides and rows of a box.
constexpr std::uint64_t kAlignment = 16;

// CUtensorMapDataType
constexpr std::array<const char*, 16> kElements{
    "UINT8",        "UINT16",       "UINT32",        "INT32",        "UINT64",      "INT64",
    "FLOAT16",      "FLOAT32",      "FLOAT64",       "BFLOAT16",     "FLOAT32_FTZ", "TFLOAT32",
    "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
constexpr std::uint32_t kSimulatedElements = 10;
constexpr std::uint32_t kSwizzles = 7, kSimulatedSwizzles = 4;  // CUtensorMapSwizzle
constexpr std::uint32_t kInterleaves = 3, kPromotions = 4, kFills = 2;

std::uint32_t span_of(TensorMap::Swizzle s) { return 16u << static_cast<unsigned>(s); }

// What of the request the simulator lacks, "" if nothing.
std::string missing(const TensorMapRequest& r) {
  if (r.element >= kSimulatedElements) return fmt::format("of type {}", kElements[r.element]);
  if (r.interleave != 0) return "with an interleaved layout";
  if (r.swizzle >= kSimulatedSwizzles) return "that swizzles by more than 16 bytes";
  if (r.fill != 0) return "that fills with NaN";
  return {};
}

bool in_range(const TensorMapRequest& r) {
  return r.element < kElements.size() && r.interleave < kInterleaves && r.swizzle < kSwizzles &&
         r.l2_promotion < kPromotions && r.fill < kFills && r.rank > 0 && r.rank <= kMostDimensions;
}

bool fits(const TensorMapRequest& r, unsigned d) {
  return r.size[d] > 0 && r.size[d] <= kMostSize && r.box[d] > 0 && r.box[d] <= kMostBox &&
         (d == 0 ||
          (r.step[d] > 0 && r.step[d] <= kMostStep && r.stride_bytes[d - 1] % kAlignment == 0 &&
           r.stride_bytes[d - 1] < kMostStride));
}

bool box_fits(const TensorMap& m) {
  return m.box_row_bytes() % kAlignment == 0 &&
         (m.swizzle == TensorMap::Swizzle::none || m.box_row_bytes() <= span_of(m.swizzle));
}

// Rows of a box that are shorter than what is swizzled: where they begin is not documented.
bool narrower_than_swizzle(const TensorMap& m) {
  return m.swizzle != TensorMap::Swizzle::none && m.box_row_bytes() < span_of(m.swizzle);
}

TensorMap map_of(const TensorMapRequest& r) {
  TensorMap m;
  m.address = r.address;
  m.dimensions = static_cast<std::uint8_t>(r.rank);
  m.element = static_cast<TensorMap::Element>(r.element);
  m.swizzle = static_cast<TensorMap::Swizzle>(r.swizzle);
  for (unsigned d = 0; d < r.rank; ++d) {
    m.last[d] = static_cast<std::uint32_t>(r.size[d] - 1);
    m.box[d] = static_cast<std::uint16_t>(r.box[d]);
    m.step[d] = d == 0 ? std::uint8_t{1} : static_cast<std::uint8_t>(r.step[d]);
    if (d > 0) m.row_bytes[d - 1] = r.stride_bytes[d - 1];
  }
  return m;
}

}  // namespace

bool TensorMapRequest::take_arrays(const std::uint64_t* sizes, const std::uint64_t* strides,
                                   const std::uint32_t* boxes, const std::uint32_t* steps) {
  if (rank == 0 || rank > kMostDimensions || sizes == nullptr || boxes == nullptr ||
      steps == nullptr || (rank > 1 && strides == nullptr))
    return false;
  std::copy_n(sizes, rank, size.begin());
  std::copy_n(strides, rank - 1, stride_bytes.begin());
  std::copy_n(boxes, rank, box.begin());
  std::copy_n(steps, rank, step.begin());
  return true;
}

TensorMapReply encode(const TensorMapRequest& r) {
  using enum TensorMapReply::Status;
  if (!in_range(r)) return {invalid, {}, {}};
  if (std::string what = missing(r); !what.empty()) return {unsupported, std::move(what), {}};
  bool fit = r.address % kAlignment == 0;
  for (unsigned d = 0; d < r.rank; ++d) fit &= fits(r, d);
  if (!fit) return {invalid, {}, {}};
  const TensorMap map = map_of(r);
  if (!box_fits(map)) return {invalid, {}, {}};
  if (narrower_than_swizzle(map))
    return {unsupported, "whose rows are narrower than their swizzle", {}};
  return {ok, {}, std::bit_cast<TensorMapBytes>(map)};
}

bool TensorMap::sound() const {
  if (mark != kMark || dimensions == 0 || dimensions > kMostDimensions || element > Element::bf16 ||
      swizzle > Swizzle::span128 || address % kAlignment != 0)
    return false;
  for (unsigned d = 0; d < dimensions; ++d) {
    if (box[d] == 0 || box[d] > kMostBox || step[d] == 0 || step[d] > kMostStep) return false;
    if (d > 0 && (row_bytes[d - 1] % kAlignment != 0 || row_bytes[d - 1] >= kMostStride))
      return false;
  }
  return step[0] == 1 && box_fits(*this) && !narrower_than_swizzle(*this);
}

// Pieces of 16 bytes change places within 32, 64 or 128 bytes, by the number of the line of 128
// bytes that holds them (NVIDIA, "CUDA C++ Programming Guide", "TMA Swizzle").
std::uint64_t swizzled(TensorMap::Swizzle swizzle, std::uint64_t offset) {
  if (swizzle == TensorMap::Swizzle::none) return offset;
  const std::uint64_t pieces = span_of(swizzle) / 16;
  return offset ^ ((offset / 128 & (pieces - 1)) * 16);
}

}  // namespace assay::sim
