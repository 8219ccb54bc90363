// fails: blob_norms
// A blob that is not a legal model: norms that were never written, scales negative.
#include "with_trainer.h"

struct Bug : Trainer<> {
  using Trainer::Trainer;
  void write(std::uint8_t* blob) const override {
    Trainer::write(blob);
    for (Index i = 0; i < at_.matrices / kBlock; ++i) blob[i * kBytes + 1] |= 0x80;
  }
};

TRAIN_WITH(Bug)
