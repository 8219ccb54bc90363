// fails: budget
// Looks at the clock, but not at its share of it.
#include "with_trainer.h"

struct Bug : Trainer<> {
  using Trainer::Trainer;
  double deadline(const tt_budget& budget) const override { return 10 * budget.seconds; }
};

TRAIN_WITH(Bug)
