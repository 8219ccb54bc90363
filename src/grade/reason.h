// A score in one line.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay {

// The best single explanation of the score: why there is none, what capped it, or the dimension
// that lost most. At most kReasonBytes of untrusted, unsanitised text.
std::string main_reason(const CellResult&, const Score&);

inline constexpr std::size_t kReasonBytes = 400;

}  // namespace assay
