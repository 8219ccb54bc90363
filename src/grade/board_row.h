// A graded cell on its way to the board.
#pragma once

#include "assay/results.h"

namespace assay {

// A cell as the board shows it, `evidence` being where the rest of it lies.
BoardRow board_row(const BoardEntry&, EvidenceRef evidence);

}  // namespace assay
