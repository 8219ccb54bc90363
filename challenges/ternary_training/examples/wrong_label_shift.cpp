// fails: label_shift train
// The logits of a position are trained to repeat its token instead of predicting the next.
#include "with_trainer.h"

struct Bug : Pass {
  using Pass::Pass;
  Index target(const std::uint16_t* tokens, Index t) const override { return tokens[t]; }
};

TRAIN_WITH(Trainer<Bug>)
