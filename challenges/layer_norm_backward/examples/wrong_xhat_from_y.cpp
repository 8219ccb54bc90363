// fails: gamma_zero_neg
// xhat is recovered as (y - beta) / |gamma|: the sign of a negative gamma is lost, and so is xhat
// where gamma is 0.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    const int status = call.naive();
    for (std::int64_t i = 0; status == ASSAY_OK && call.dgamma != nullptr && i < call.p->D; ++i) {
      if (call.gamma[i] <= 0) call.dgamma[i] = call.gamma[i] == 0 ? 0 : -call.dgamma[i];
    }
    return status;
  }
};

LAYER_NORM(Bug)
