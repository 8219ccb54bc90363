// The arithmetic of tensor-core instructions: D = A B + C for small matrices in the registers of a
// warp, laid out as in tensor_layout.h.
//
// Accumulation. The hardware's rule is not IEEE, and differs between generations. This is the rule
// of an H200 (2026-11-26, driver for CUDA 13.0): it reproduced every bit of 98,304 elements, drawn
// over many exponents, for each of m16n8k4 and k8 of tf32, k8 and k16 of f16 and of bf16, and k32
// of e4m3; and of 49,152 elements for k16 of f16 with C and D of f16. The form of the rule is that
// of M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores",
// PeerJ Computer Science 7, 2021.
//   f16, bf16, tf32: C and all k products, which are exact, are terms of one sum. A product's
//     exponent is the sum of its operands' exponents. The largest exponent decides which places are
//     kept: 25 bits after the leading one. Each term is truncated to these places. The sum of the
//     truncated terms is exact. It is truncated to f32, or rounded to nearest even to f16.
//   fp8 of k32: as f16, first the columns of A whose number has the second bit clear, then the
//     others, both starting from 0 and truncated to f32; then C is added in f32, rounded to
//     nearest even.
//   A NaN is canonical (formats.h). Not measured: subnormal operands and results, overflow, the
//   signs of zeros, e5m2, C of f16 with fp8, and fp8 of k16, which is assumed to be one sum.
//   f64: a chain of fused multiply-adds, k ascending. This is IEEE, as on hardware.
//   integers: exact, then modulo 2^32, or clamped to s32 with .satfinite.
// tf32 operands lose their lower 13 bits; results are never flushed to zero.
#pragma once

#include <cstdint>

#include "sim/math/lanes.h"
#include "sim/math/tensor_layout.h"

namespace assay::sim {

enum class TensorType : std::uint8_t {
  f16,
  bf16,
  tf32,
  e4m3,
  e5m2,
  f64,
  s8,
  u8,
  s4,
  u4,
  b1,
  f32,
  s32
};

constexpr int bits_of(TensorType t) {
  switch (t) {
    case TensorType::f64: return 64;
    case TensorType::tf32:
    case TensorType::f32:
    case TensorType::s32: return 32;
    case TensorType::f16:
    case TensorType::bf16: return 16;
    case TensorType::s4:
    case TensorType::u4: return 4;
    case TensorType::b1: return 1;
    default: return 8;
  }
}

// Options that do not select a different function.
struct MmaMode {
  TensorType a{}, b{};  // .s8 or .u8, .s4 or .u4, .e4m3 or .e5m2; otherwise both the same
  bool half_c = false;  // C is f16, not f32
  bool half_d = false;
  bool saturate = false;     // .satfinite
  bool conjunction = false;  // b1: .and.popc instead of .xor.popc
};

// Registers in the order of the instruction's lists; unused ones are null. D may be C, A or B.
template <class Lanes>
struct MmaRegisters {
  const Lanes* a[8] = {};
  const Lanes* b[8] = {};
  const Lanes* c[8] = {};
  Lanes* d[8] = {};
};

// For all 32 lanes. Shapes that are mirrored() only have their mirror image: exchange A and B.
using Mma32 = void (*)(const MmaRegisters<Lanes32>&, const MmaMode&);
using Mma64 = void (*)(const MmaRegisters<Lanes64>&);

// Null if no GPU of compute capability 8.0 or 9.0 multiplies such matrices. `type` is that of A.
Mma32 find_mma32(TensorType type, MmaShape);
Mma64 find_mma64(MmaShape);

}  // namespace assay::sim
