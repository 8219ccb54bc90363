// fails: resumed
// The state is the weights alone: the optimiser's moments begin at zero again.
#define tt_train_part naive_tt_train_part
#include "naive.cpp"
#undef tt_train_part

struct Bug : Trainer<> {
  using Trainer<>::Trainer;
  void load(const std::uint8_t* state) override {
    Trainer<>::load(state);
    std::fill_n(first_.data, at_.size, 0.0f);
    std::fill_n(second_.data, at_.size, 0.0f);
  }
};

extern "C" int tt_train_part(assay_ctx* ctx, const tt_config* c, const uint16_t* docs,
                             int64_t n_docs, const tt_budget* budget, int32_t resume, int64_t until,
                             void* state, void* blob) {
  return train_part_with<Bug>(ctx, *c, docs, n_docs, *budget, resume == 1, until,
                              static_cast<std::uint8_t*>(state), static_cast<std::uint8_t*>(blob));
}
