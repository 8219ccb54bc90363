// fails: groups_without_penalty
// A text that another group holds already is left out of the answer.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  void write(std::int32_t b, const Outputs& to) override {
    for (std::int64_t g = 1; g < G_; ++g) {
      const std::int64_t l = b * G_ + g;
      std::int64_t n = 0;
      for (std::int64_t i = 0; i < size_[l]; ++i) {
        if (held(b, g, l * W_ + i)) continue;
        std::copy_n(text_.data() + (l * W_ + i) * T_, T_, text_.data() + (l * W_ + n) * T_);
        list_[l * W_ + n++] = list_[l * W_ + i];
      }
      size_[l] = static_cast<std::int32_t>(n);
    }
    OptionSearch::write(b, to);
  }

  // Whether a group before g holds the text of beam i.
  bool held(std::int32_t b, std::int64_t g, std::int64_t i) const {
    for (std::int64_t l = b * G_; l < b * G_ + g; ++l) {
      for (std::int64_t j = l * W_; j < l * W_ + size_[l]; ++j) {
        if (list_[i].len == list_[j].len &&
            std::equal(text_.data() + i * T_, text_.data() + i * T_ + list_[i].len,
                       text_.data() + j * T_))
          return true;
      }
    }
    return false;
  }
};

ANSWER_OPTIONS_WITH(Bug)
