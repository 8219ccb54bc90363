// Compiled so that the optimiser assumes no rounding mode: the modes change here, and only here.
// The loops' operands are in memory that, as far as the compiler knows, fesetround() might change,
// so no operation moves across those calls.
#pragma GCC optimize("rounding-math")

#include "sim/math/rounding.h"

#include <cfenv>

namespace assay::sim {
namespace {

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero: return FE_TOWARDZERO;
    case Rounding::down: return FE_DOWNWARD;
    case Rounding::up: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) : before_(std::fegetround()) {
    std::fesetround(host_mode(rounding));
  }
  ~RoundingScope() { std::fesetround(before_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int before_;
};

}  // namespace

void add_f64(Rounding rounding, const double* a, const double* b, double* out, int n) {
  const RoundingScope scope(rounding);
  for (int i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void mul_f64(Rounding rounding, const double* a, const double* b, double* out, int n) {
  const RoundingScope scope(rounding);
  for (int i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

void fma_f64(Rounding rounding, const double* a, const double* b, const double* c, double* out,
             int n) {
  const RoundingScope scope(rounding);
  for (int i = 0; i < n; ++i) out[i] = std::fma(a[i], b[i], c[i]);
}

void div_f64(Rounding rounding, const double* a, const double* b, double* out, int n) {
  const RoundingScope scope(rounding);
  for (int i = 0; i < n; ++i) out[i] = a[i] / b[i];
}

void sqrt_f64(Rounding rounding, const double* a, double* out, int n) {
  const RoundingScope scope(rounding);
  for (int i = 0; i < n; ++i) out[i] = std::sqrt(a[i]);
}

}  // namespace assay::sim
