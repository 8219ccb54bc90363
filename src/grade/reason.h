// A score in one line.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay {

// The one thing that explains the score best: why there is none, what capped it, or the dimension
// that lost most. Untrusted text, not made safe, of at most kReasonBytes.
std::string main_reason(const CellResult&, const Score&);

inline constexpr std::size_t kReasonBytes = 400;

}  // namespace assay
