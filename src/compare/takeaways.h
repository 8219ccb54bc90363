// Findings from a board beyond its ranking, as generated sentences: each states the numbers behind
// it, and none is made without enough data.
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
    attempts,        // how far one model's attempts at one challenge differ
    challenge,       // which challenge separates the models most, and which least
    trap,            // which trap separates the models most
    slow_and_fast,   // correct but slow against fast but wrong
    shared_mistake,  // the same case failed by several models
  };
  Kind kind = Kind::consistency;
  std::string text;  // one sentence; contains untrusted, unsanitised model names
};

const char* to_string(Takeaway::Kind);

// For one device; `traps` is trap_figures() of the field. A few of each kind at most. Partial
// challenges and quick scores are excluded, except that attempts are compared with each other.
std::vector<Takeaway> takeaways(const Field&, const std::vector<TrapFigure>& traps, By);

}  // namespace assay::compare
