// fails: val_leak
// Trains on the first documents again and again, and looks good on those.
#include "with_trainer.h"

struct Bug : Trainer<> {
  using Trainer::Trainer;
  Index next_document(Index n_docs) override { return next_++ % std::min<Index>(n_docs, 8); }
};

TRAIN_WITH(Bug)
