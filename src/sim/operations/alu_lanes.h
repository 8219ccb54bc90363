// Makes handlers from scalar functions. An operation is a struct with one static function,
//
//   template <class T> struct Add { static T apply(T a, T b) { return a + b; } };
//
// and lanewise<Add<float>>() is a handler that applies it to the lanes of a warp, with the operand
// forms that its parameter types imply (an operation may instead define its own handler, run). The
// loops have no branches, so that they vectorise. Lanes outside the active mask are computed too
// and blended away, so their stale operands must be harmless.
#pragma once

#include <bit>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "sim/execution/warp.h"
#include "sim/math/formats.h"
#include "sim/operations/alu_modifiers.h"
#include "sim/operations/alu_values.h"
#include "sim/operations/instruction_set.h"

namespace assay::sim {

// A source operand: indexable by lane.
template <class T>
struct Source {
  const LaneWord<T>* lanes;
  Source(Warp& w, const Instr&, std::uint32_t slot) {
    if constexpr (sizeof(LaneWord<T>) == 8) {
      lanes = w.r64(slot).v;
    } else {
      lanes = w.r32(slot).v;
    }
  }
  [[gnu::always_inline]] T operator[](int l) const { return from_lane<T>(lanes[l]); }
};
template <>
struct Source<bool> {
  std::uint32_t mask;
  Source(Warp& w, const Instr&, std::uint32_t slot) : mask(w.preds[slot]) {}
  [[gnu::always_inline]] bool operator[](int l) const { return (mask >> l & 1) != 0; }
};
template <>
struct Source<Immediate> {
  std::uint64_t value;
  Source(Warp&, const Instr& in, std::uint32_t) : value(in.imm) {}
  [[gnu::always_inline]] Immediate operator[](int) const { return {value}; }
};
template <>
struct Source<Fixed> {
  std::uint64_t value;
  Source(Warp&, const Instr& in, std::uint32_t) : value(in.imm) {}
  [[gnu::always_inline]] Fixed operator[](int) const { return {value}; }
};

// Selects by a mask of all ones or zeros. Not a condition, since compilers would turn it into a
// branch.
template <class Word>
[[gnu::always_inline]] inline Word blend(std::uint32_t mask, Word ones, Word zeros) {
  const auto wide = static_cast<Word>(static_cast<std::int64_t>(static_cast<std::int32_t>(mask)));
  return (ones & wide) | (zeros & ~wide);
}

// Moves the active lanes of `from` to a destination register.
inline void write_active(Warp& w, std::uint32_t slot, const Lanes32& from) {
  std::uint32_t* out = w.r32(slot).v;
  const std::uint32_t* mask = w.lane_mask.v;
#pragma omp simd
  for (int l = 0; l < 32; ++l) out[l] = blend(mask[l], from.v[l], out[l]);
}
inline void write_active(Warp& w, std::uint32_t slot, const Lanes64& from) {
  std::uint64_t* out = w.r64(slot).v;
  const std::uint32_t* mask = w.lane_mask.v;
#pragma omp simd
  for (int l = 0; l < 32; ++l) out[l] = blend(mask[l], from.v[l], out[l]);
}

namespace detail {

template <class T>
constexpr bool is_register =
    !std::is_same_v<T, bool> && !std::is_same_v<T, Immediate> && !std::is_same_v<T, Fixed>;

template <class Op, class R, class... A>
struct Lanewise {
  using Word = LaneWord<R>;
  // Slots of different width may overlap (a register that dies here passes its place to the
  // result), so such results must be complete before any is stored.
  static constexpr bool kAlike = ((!is_register<A> || sizeof(LaneWord<A>) == sizeof(Word)) && ...);

  [[gnu::always_inline]] static void store_all(Word* out, Source<A>... a) {
#pragma omp simd
    for (int l = 0; l < 32; ++l) out[l] = to_lane<R>(Op::apply(a[l]...));
  }
  [[gnu::always_inline]] static void store_active(Word* out, const std::uint32_t* mask,
                                                  Source<A>... a) {
#pragma omp simd
    for (int l = 0; l < 32; ++l) {
      out[l] = blend<Word>(mask[l], to_lane<R>(Op::apply(a[l]...)), out[l]);
    }
  }

  template <std::size_t... I>
  [[gnu::always_inline]] static void run_with(Warp& w, const Instr& in, std::index_sequence<I...>) {
    const std::uint32_t slots[] = {in.a, in.b, in.c, in.e};
    if constexpr (kAlike) {
      Word* out;
      if constexpr (sizeof(Word) == 8) {
        out = w.r64(in.d).v;
      } else {
        out = w.r32(in.d).v;
      }
      if (w.full()) {
        store_all(out, Source<A>(w, in, slots[I])...);
      } else {
        store_active(out, w.lane_mask.v, Source<A>(w, in, slots[I])...);
      }
    } else {
      std::conditional_t<sizeof(Word) == 8, Lanes64, Lanes32> out;
      store_all(out.v, Source<A>(w, in, slots[I])...);
      write_active(w, in.d, out);
    }
  }
  static void run(Warp& w, const Instr& in) { run_with(w, in, std::index_sequence_for<A...>()); }
};

template <class T>
constexpr OperandForm form_of() {
  if (std::is_same_v<T, bool>) return OperandForm::src_pred;
  if (std::is_same_v<T, Immediate>) return OperandForm::immediate;
  return sizeof(LaneWord<T>) == 8 ? OperandForm::src64 : OperandForm::src32;
}

template <class Op, class R, class... A>
Selection select_lanewise(R (*)(A...), InstrClass cls, int flops, std::uint64_t fixed) {
  static constexpr OperandForm kForms[] = {
      sizeof(LaneWord<R>) == 8 ? OperandForm::dst64 : OperandForm::dst32, form_of<A>()...};
  // A Fixed parameter comes last and is not an operand.
  constexpr std::size_t kOperands = std::size(kForms) - (std::is_same_v<A, Fixed> + ... + 0);
  Handler run;
  if constexpr (requires { &Op::run; }) {
    run = &Op::run;
  } else {
    run = &Lanewise<Op, R, A...>::run;
  }
  return make_selection(run, {kForms, kOperands}, cls, flops, fixed);
}

}  // namespace detail

template <class Op>
Selection lanewise(InstrClass cls, int flops = 0, std::uint64_t fixed = 0) {
  return detail::select_lanewise<Op>(&Op::apply, cls, flops, fixed);
}

// An operation on scalars, applied to both halves.
template <class Op, class Signature = decltype(&Op::apply)>
struct Packed;
template <class Op, class R, class... A>
struct Packed<Op, R (*)(A...)> {
  [[gnu::always_inline]] static Pair<R> apply(Pair<A>... a) {
    return pair_of<R>(Op::apply(low_half(a)...), Op::apply(high_half(a)...));
  }
};

// The handler for an integer type of 16 to 64 bits; none (run == nullptr) for other types.
template <template <class> class Op>
Selection lanewise_integer(AluType type) {
  constexpr InstrClass kClass = InstrClass::integer;
  switch (type) {
    case AluType::u16: return lanewise<Op<std::uint16_t>>(kClass);
    case AluType::s16: return lanewise<Op<std::int16_t>>(kClass);
    case AluType::u32: return lanewise<Op<std::uint32_t>>(kClass);
    case AluType::s32: return lanewise<Op<std::int32_t>>(kClass);
    case AluType::u64: return lanewise<Op<std::uint64_t>>(kClass);
    case AluType::s64: return lanewise<Op<std::int64_t>>(kClass);
    default: return {};
  }
}

// Likewise for b16, b32 and b64.
template <template <class> class Op>
Selection lanewise_bits(AluType type) {
  switch (type) {
    case AluType::b16: return lanewise<Op<std::uint16_t>>(InstrClass::integer);
    case AluType::b32: return lanewise<Op<std::uint32_t>>(InstrClass::integer);
    case AluType::b64: return lanewise<Op<std::uint64_t>>(InstrClass::integer);
    default: return {};
  }
}

}  // namespace assay::sim
