// fails: keep_finished_falls_behind
// With keep_finished an item ends when K finished beams are better than all that its active beams
// can become, but these stay in its answer. With a negative alpha they score more as they are.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool extends(std::int32_t b) const override {
    double bound = -kInf;
    std::int64_t active = 0, better = 0;
    each_beam(b, [&](const Beam& beam) {
      if (beam.finished != 0) return;
      ++active;
      bound = std::max(
          {bound, score(beam.acc, beam.len + 1), score(beam.acc, static_cast<std::int32_t>(T_))});
    });
    const auto count = [&](const Beam& beam) {
      better += beam.finished != 0 && beam.score > bound ? 1 : 0;
    };
    each_beam(b, count);
    for (std::int64_t i = 0; i < banked_[b]; ++i) count(bank_[b * K_ + i]);
    return active > 0 && (p_.keep_finished == 0 || better < K_);
  }
};

ANSWER_WITH(Bug)
