// fails: biased_D3 d2 d7 basic
// Variance divided by D - 1.
#include "around_naive.h"

struct Bug : Right {
  static int forward(const Forward& call) {
    const auto D = static_cast<double>(call.p->D);
    return with_rstd(call, [&](double var) {
      const double unbiased = D > 1 ? var * D / (D - 1) : var;
      return 1 / std::sqrt(std::max(unbiased, 0.0) + call.p->eps);
    });
  }
};

LAYER_NORM(Bug)
