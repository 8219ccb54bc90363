// fails: tied_grad
// Tied embeddings learn from what they are looked up for, not from the logits.
#include "with_trainer.h"

struct Bug : Pass {
  using Pass::Pass;
  void head_gradient(float*) const override {}
};

TRAIN_WITH(Trainer<Bug>)
