// Training on a text of the user's, byte by byte. Such a text has no known entropy: what a
// compressor makes of the same bytes stands in for it.
#pragma once

#include <cstdint>
#include <string>

#include "trusted.h"

namespace assay::ternary_training {

// The text that a case trains on, or "" if it trains on a language of the harness's.
std::string text_file(const CaseSpec&);

// Training documents from random places in the first nine tenths of the text; held-out ones side by
// side from a random place in the rest. Their cost is what xz needs for them, in nats a byte, after
// it has seen the first part. Throws Error when the text is too short.
void fill_text(const CaseSpec&, const Shape&, std::uint64_t seed, BufferViews);

// Bits a byte that xz (LZMA2, preset 6 extreme) needs for `held_out` when it has compressed `seen`
// just before.
double xz_bits_per_byte(const std::string& seen, const std::string& held_out);

}  // namespace assay::ternary_training
