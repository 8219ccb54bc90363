// What atom, red and the asynchronous reductions do to one word of memory (PTX ISA, sections
// 9.7.13.5 and 9.7.13.7; "cp.reduce.async.bulk", "red.async").
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "sim/math/formats.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

// Operations compute the new value of a word from its old one and the operand. Words are unsigned.
template <class T>
struct Add {
  static T apply(T old, T b) { return static_cast<T>(old + b); }
};
template <class T>
struct Min {
  static T apply(T old, T b) { return b < old ? b : old; }
};
template <class T>
struct Max {
  static T apply(T old, T b) { return old < b ? b : old; }
};
template <class T>
struct And {
  static T apply(T old, T b) { return old & b; }
};
template <class T>
struct Or {
  static T apply(T old, T b) { return old | b; }
};
template <class T>
struct Xor {
  static T apply(T old, T b) { return old ^ b; }
};
template <class T>
struct Increment {
  static T apply(T old, T b) { return old >= b ? 0 : old + 1; }
};
template <class T>
struct Decrement {
  static T apply(T old, T b) { return old == 0 || old > b ? b : old - 1; }
};

// In global memory f32 is flushed to zero, in shared memory it is not (PTX ISA, "atom").
struct AddF32 {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t b) {
    const float sum = std::bit_cast<float>(old) + std::bit_cast<float>(b);
    return std::bit_cast<std::uint32_t>(canonical(sum));
  }
};
struct AddF32Flushed {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t b) {
    const float sum = flush(std::bit_cast<float>(old)) + flush(std::bit_cast<float>(b));
    return std::bit_cast<std::uint32_t>(flush(canonical(sum)));
  }
};
struct AddF64 {
  static std::uint64_t apply(std::uint64_t old, std::uint64_t b) {
    return std::bit_cast<std::uint64_t>(
        canonical(std::bit_cast<double>(old) + std::bit_cast<double>(b)));
  }
};

// Sums of f16 and bf16 values are rounded once: f32 has more than twice their precision.
template <class H>
struct AddHalf {
  static std::uint16_t apply(std::uint16_t old, std::uint16_t b) {
    return static_cast<std::uint16_t>(to_half<H>(widen(H{old}) + widen(H{b})).bits);
  }
};
// For a NaN, the other operand; -0 is below +0.
template <class H, bool kMax>
struct PickHalf {
  static std::uint16_t apply(std::uint16_t old, std::uint16_t b) {
    const float x = widen(H{old}), y = widen(H{b});
    if (x != x) return y != y ? static_cast<std::uint16_t>(kNan16) : b;
    if (y != y) return old;
    if (x == y) return (old & 0x8000) != 0 ? (kMax ? b : old) : (kMax ? old : b);
    return (x < y) == kMax ? b : old;
  }
};
template <class Op>
struct Both {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t b) {
    const std::uint32_t low =
        Op::apply(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
    const std::uint32_t high =
        Op::apply(static_cast<std::uint16_t>(old >> 16), static_cast<std::uint16_t>(b >> 16));
    return low | (high << 16);
  }
};

template <class W>
W load_word(const std::byte* p) {
  W value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Replaces the word at `p` by f(old) and returns old.
template <class W, class F>
W update(std::byte* p, bool shared_with_host_threads, F&& f) {
  if constexpr (sizeof(W) <= 8) {
    if (shared_with_host_threads) {
      auto* word = reinterpret_cast<W*>(p);
      W old = __atomic_load_n(word, __ATOMIC_RELAXED);
      while (!__atomic_compare_exchange_n(word, &old, f(old), true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED)) {
      }
      return old;
    }
  }
  const W old = load_word<W>(p), value = f(old);
  std::memcpy(p, &value, sizeof value);
  return old;
}

// What `make` returns for an operation.
template <class Make>
using MadeBy =
    decltype(std::declval<Make>().template operator()<std::uint32_t, Add<std::uint32_t>>());

namespace operations {

template <template <class> class Op, class Make>
MadeBy<Make> on_unsigned(ptx::Type t, Make make) {
  switch (t) {
    case ptx::Type::u32: return make.template operator()<std::uint32_t, Op<std::uint32_t>>();
    case ptx::Type::u64: return make.template operator()<std::uint64_t, Op<std::uint64_t>>();
    default: return {};
  }
}
template <template <class> class Op, class Make>
MadeBy<Make> on_integers(ptx::Type t, Make make) {
  // Signed words are compared as such; apply() converts both ways without loss.
  switch (t) {
    case ptx::Type::s32: return make.template operator()<std::uint32_t, Op<std::int32_t>>();
    case ptx::Type::s64: return make.template operator()<std::uint64_t, Op<std::int64_t>>();
    default: return on_unsigned<Op>(t, make);
  }
}
template <template <class> class Op, class Make>
MadeBy<Make> on_bits(ptx::Type t, Make make) {
  switch (t) {
    case ptx::Type::b32: return make.template operator()<std::uint32_t, Op<std::uint32_t>>();
    case ptx::Type::b64: return make.template operator()<std::uint64_t, Op<std::uint64_t>>();
    default: return {};
  }
}

template <class Make>
MadeBy<Make> adding(ptx::Type t, bool shared, Make make) {
  using ptx::Type;
  switch (t) {
    case Type::u32:
    case Type::s32: return make.template operator()<std::uint32_t, Add<std::uint32_t>>();
    case Type::u64:
    case Type::s64: return make.template operator()<std::uint64_t, Add<std::uint64_t>>();
    case Type::f32:
      return shared ? make.template operator()<std::uint32_t, AddF32>()
                    : make.template operator()<std::uint32_t, AddF32Flushed>();
    case Type::f64: return make.template operator()<std::uint64_t, AddF64>();
    case Type::f16: return make.template operator()<std::uint16_t, AddHalf<Half>>();
    case Type::bf16: return make.template operator()<std::uint16_t, AddHalf<Bfloat>>();
    case Type::f16x2: return make.template operator()<std::uint32_t, Both<AddHalf<Half>>>();
    case Type::bf16x2: return make.template operator()<std::uint32_t, Both<AddHalf<Bfloat>>>();
    default: return {};
  }
}

}  // namespace operations

// make.operator()<W, Op>() for the operation of this name on words of type W in shared or in global
// memory; {} if there is none. Not for exch and cas.
template <class Make>
MadeBy<Make> make_operation(std::string_view op, ptx::Type t, bool shared, Make make) {
  using namespace operations;
  if (op == "add") return adding(t, shared, make);
  if (op == "min") return on_integers<Min>(t, make);
  if (op == "max") return on_integers<Max>(t, make);
  if (op == "and") return on_bits<And>(t, make);
  if (op == "or") return on_bits<Or>(t, make);
  if (op == "xor") return on_bits<Xor>(t, make);
  if (op == "inc" && t == ptx::Type::u32) return on_unsigned<Increment>(t, make);
  if (op == "dec" && t == ptx::Type::u32) return on_unsigned<Decrement>(t, make);
  return {};
}

}  // namespace assay::sim
