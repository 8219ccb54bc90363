// What a board says beyond its ranking, in sentences that are computed: each carries the numbers it
// comes from, and none is made where the data does not carry it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"
#include "compare/traps.h"

namespace assay::compare {

struct Takeaway {
  enum class Kind : std::uint8_t {
    consistency,     // a model's best and worst challenge
    attempts,        // how far attempts of one model at one challenge lie apart
    challenge,       // which challenge separates the models most, and which least
    trap,            // which trap does
    slow_and_fast,   // correct but slow against fast but wrong
    shared_mistake,  // the same case failed by several models
  };
  Kind kind = Kind::consistency;
  std::string text;  // one sentence; holds names of models, untrusted, not made safe
};

const char* to_string(Takeaway::Kind);

// Of one device; `traps` are trap_figures() of the field. At most a few of each kind. Partial
// challenges and quick scores take no part, except that attempts are compared among themselves.
std::vector<Takeaway> takeaways(const Field&, const std::vector<TrapFigure>& traps, By);

}  // namespace assay::compare
