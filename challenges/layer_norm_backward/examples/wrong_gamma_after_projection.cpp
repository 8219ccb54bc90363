// fails: gamma_forgotten gamma_zero_neg basic
// gamma multiplies dx at the end instead of dy at the start.
#include "gradient.h"

struct Bug : RightGradient {
  static double g(double dy, double) { return dy; }
  static double dx(double rest, double gamma) { return rest * gamma; }
};

LAYER_NORM(WithGradient<Bug>)
