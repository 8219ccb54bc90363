// fails: patience_half patience_script
// Active beams stay in the answer of an item that patience has ended.
#include "with_options.h"

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  bool takes_part(std::int32_t, const Beam&) const override { return true; }
};

}  // namespace

ANSWER_OPTIONS_WITH(Variant)
