// Training on a user's text, byte by byte. Such a text has no known entropy; a compressor's result
// on the same bytes stands in for it.
#pragma once

#include <cstdint>
#include <string>

#include "trusted.h"

namespace assay::ternary_training {

// The file that a case trains on, or "" if it trains on one of the harness's languages.
std::string text_file(const CaseSpec&);

// Training documents from random places in the first nine tenths of the text; consecutive held-out
// ones from a random place in the rest. Their cost is what xz needs for them, in nats per byte,
// after it has seen the first part. Throws Error if the text is too short.
void fill_text(const CaseSpec&, const Shape&, std::uint64_t seed, BufferViews);

// Bits per byte that xz (LZMA2, preset 6 extreme) needs for `held_out` right after compressing
// `seen`.
double xz_bits_per_byte(const std::string& seen, const std::string& held_out);

}  // namespace assay::ternary_training
