// dx in the steps of its formula, rstd (g - mean(g) - xhat mean(g xhat)) with g = dy gamma, for the
// examples that get one of them wrong. The column sums are naive's.
#pragma once

#include "around_naive.h"

struct RightGradient {
  static double g(double dy, double gamma) { return dy * gamma; }
  static double mean_g(double sum, double D) { return sum / D; }
  static double mean_gx(double sum, double D) { return sum / D; }
  static double dx(double rest, double) { return rest; }  // of the row, and gamma
  // Whether the sum over g xhat starts anew at column i of D.
  static bool restarts(std::int64_t, std::int64_t) { return false; }
};

// Right, but with dx as `Steps` has it.
template <class Steps>
struct WithGradient : Right {
  static int backward(const Backward& call) {
    const int status = call.naive();
    if (status != ASSAY_OK || call.dx == nullptr || call.p->D == 0) return status;
    for (std::int64_t r = 0; r < call.p->rows; ++r) row(call, call.statistics()[r], r * call.p->D);
    return ASSAY_OK;
  }

 private:
  static void row(const Backward& call, Statistics s, std::int64_t first) {
    const ln_params& p = *call.p;
    const auto g = [&](std::int64_t i) {
      return Steps::g(load(call.dy, p.dtype, first + i), call.gamma[i]);
    };
    const auto xhat = [&](std::int64_t i) {
      return (static_cast<double>(load(call.x, p.dtype, first + i)) - s.mean) * s.rstd;
    };
    double sum_g = 0, sum_gx = 0;
    for (std::int64_t i = 0; i < p.D; ++i) {
      sum_g += g(i);
      if (Steps::restarts(i, p.D)) sum_gx = 0;
      sum_gx += g(i) * xhat(i);
    }
    const auto D = static_cast<double>(p.D);
    const double mean_g = Steps::mean_g(sum_g, D), mean_gx = Steps::mean_gx(sum_gx, D);
    for (std::int64_t i = 0; i < p.D; ++i) {
      const double dx = Steps::dx(s.rstd * (g(i) - mean_g - xhat(i) * mean_gx), call.gamma[i]);
      store(call.dx, p.dtype, first + i, static_cast<float>(dx));
    }
  }
};
