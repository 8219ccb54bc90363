// The approximate functions of f32 and f64, of class special (MUFU) and counted without flops.
#include "sim/math/approx.h"
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

// Flushing ex2's operand would change nothing: either gives 1.
template <bool kFtz>
struct Ex2 {
  [[gnu::always_inline]] static float apply(float a) {
    return kFtz ? flush(approx::ex2(a)) : approx::ex2(a);
  }
};
template <float (*kFunction)(float), bool kFtz>
struct Unary {
  [[gnu::always_inline]] static float apply(float a) {
    return kFtz ? flush(kFunction(flush(a))) : kFunction(a);
  }
};
template <float (*kFunction)(float, float), bool kFtz>
struct Binary {
  [[gnu::always_inline]] static float apply(float a, float b) {
    return kFtz ? flush(kFunction(flush(a), flush(b))) : kFunction(a, b);
  }
};
struct Rcp64 {
  static double apply(double a) { return approx::rcp_upper(a); }
};
struct Rsqrt64Upper {
  static double apply(double a) { return approx::rsqrt_upper(a); }
};
// Without .ftz, the f64 root is a full-precision software sequence.
struct Rsqrt64 {
  static double apply(double a) { return canonical(1.0 / std::sqrt(a)); }
};

constexpr InstrClass kClass = InstrClass::special;

template <float (*kFunction)(float)>
Selection unary(bool ftz) {
  return ftz ? lanewise<Unary<kFunction, true>>(kClass) : lanewise<Unary<kFunction, false>>(kClass);
}
template <float (*kFunction)(float, float)>
Selection binary(bool ftz) {
  return ftz ? lanewise<Binary<kFunction, true>>(kClass)
             : lanewise<Binary<kFunction, false>>(kClass);
}

Selection select_f32(std::string_view op, bool ftz) {
  if (op == "ex2") return ftz ? lanewise<Ex2<true>>(kClass) : lanewise<Ex2<false>>(kClass);
  if (op == "lg2") return unary<&approx::lg2>(ftz);
  if (op == "sin") return unary<&approx::sin>(ftz);
  if (op == "cos") return unary<&approx::cos>(ftz);
  if (op == "rcp") return unary<&approx::rcp>(ftz);
  if (op == "sqrt") return unary<&approx::sqrt>(ftz);
  if (op == "rsqrt") return unary<&approx::rsqrt>(ftz);
  if (op == "div") return binary<&approx::div>(ftz);
  if (op == "tanh" && !ftz) return unary<&approx::tanh>(false);
  return {};
}

Selection select_f64(std::string_view op, bool ftz) {
  if (op == "rcp" && ftz) return lanewise<Rcp64>(kClass);
  if (op == "rsqrt") return ftz ? lanewise<Rsqrt64Upper>(kClass) : lanewise<Rsqrt64>(kClass);
  return {};
}

}  // namespace

std::optional<Selection> select_special(Modifiers& m) {
  const std::string_view op = m.opcode();
  const AluType type = m.type();
  if (type != AluType::f32 && type != AluType::f64) return std::nullopt;
  if (op == "div" && type == AluType::f32 && m.take("full")) {
    return m.finish(binary<&approx::div_full>(m.take("ftz")));
  }
  if (!m.take("approx")) return std::nullopt;
  const bool ftz = m.take("ftz");
  return m.finish(type == AluType::f32 ? select_f32(op, ftz) : select_f64(op, ftz));
}

}  // namespace assay::sim
