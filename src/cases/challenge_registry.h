// The challenges compiled in, found by folder at configure time.
#pragma once

#include <span>
#include <vector>

#include "assay/challenge.h"

namespace assay {

struct ChallengeRow {
  const char* name;
  const Challenge& (*get)();
};

std::span<const ChallengeRow> challenge_rows();  // sorted by name

}  // namespace assay
