// Converts a graded cell to a row of the board.
#pragma once

#include "assay/results.h"

namespace assay {

// A cell as the board shows it; `evidence` refers to the rest of it.
BoardRow board_row(const BoardEntry&, EvidenceRef evidence);

}  // namespace assay
