// What the size of attention scores costs in accuracy.
#pragma once

#include <cstdint>

namespace assay {

// The roundings of a score in units of 2^-24, relative to the largest that its row can have: a plain
// sum of D products, and scores may be in units of log 2.
inline double score_roundings(std::int64_t D) { return 6 + static_cast<double>(D) / 16; }

}  // namespace assay
