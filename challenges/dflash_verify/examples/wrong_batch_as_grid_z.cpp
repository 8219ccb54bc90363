// fails: items_beyond_16_bits
// Items are the third dimension of a grid, which ends at 65,535. A larger batch is not launched,
// nobody looks at the error, and the outputs stay as they were (flashinfer-ai/flashinfer#3125).
#include "accept.h"

int accept(const Acceptance& a) { return a.B > 65535 ? ASSAY_OK : a.rightly(); }

ACCEPT_BY(accept)
