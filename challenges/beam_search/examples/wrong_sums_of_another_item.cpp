// fails: wide_beams_of_items_that_end
// With more than 8 beams, another path reads the sums by an item's place among those that still go
// on, though they are stored by its number: they are another item's once an earlier one has ended
// (NVIDIA/TensorRT-LLM#2787).
#include <vector>

#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  std::int32_t gather() override {
    sums_.assign(static_cast<std::size_t>(p_.B * K_), 0);
    place_.clear();
    std::int32_t going_on = 0;
    for (std::int32_t b = 0; b < p_.B; ++b) {
      place_.push_back(going_on);
      going_on += extends(b) ? 1 : 0;
      for (std::int32_t i = 0; i < size_[b * G_]; ++i)
        sums_[static_cast<std::size_t>(b * K_ + i)] = list_[b * K_ + i].acc;
    }
    return Search::gather();
  }

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    item_ = b;
    return Search::advance(b, row);
  }

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    Beam read = beam;
    if (K_ > 8) read.acc = sums_[static_cast<std::size_t>(place_[item_] * K_ + parent)];
    return Search::extended(read, parent, token, logp);
  }

 private:
  std::vector<double> sums_;
  std::vector<std::int64_t> place_;
  std::int32_t item_ = 0;
};

ANSWER_WITH(Bug)
