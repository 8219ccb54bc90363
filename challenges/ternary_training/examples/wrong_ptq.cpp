// fails: ptq
// Trains in fp32 and rounds at the end.
#include "with_trainer.h"

struct Bug : Trainer<> {
  using Trainer::Trainer;
  void round_weights() override { std::copy_n(latent_.data, at_.size, used_.data); }
};

TRAIN_WITH(Bug)
