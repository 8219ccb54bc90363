// fails: overfit
// Goes over the documents for as long as the budget lasts, however few they are.
#include "with_trainer.h"

struct Bug : Trainer<> {
  using Trainer::Trainer;
  double most_tokens(Index, const tt_budget& budget) const override {
    return static_cast<double>(budget.max_tokens);
  }
};

TRAIN_WITH(Bug)
