// fails: columns_beyond_16_bits
// The width of the feed-forward layers is kept in 16 bits: of 65,664 columns 128 are left.
#include "with_config.h"

static void misread(tt_config& c) { c.ff = static_cast<std::uint16_t>(c.ff); }

LOGITS_OF(misread)
