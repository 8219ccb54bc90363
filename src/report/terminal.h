// Text for a terminal. Whatever a submission wrote is made printable.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"

namespace assay {

// The table at the end of a run: one line per entry, in the order given, then what the flags mean
// for comparisons. Entries whose challenge is not among the specs are left out.
std::string summary(const std::vector<BoardEntry>&, const std::vector<ChallengeSpec>&);

// Everything that led to a score: dimensions, failed cases and how to replay each, timings, build.
// For an answer without a model's name, which is not in the submissions folder, omits everything
// that needs one. `currency`: currency_note() of its row on a board, see grade/currency.h.
std::string explain(const BoardEntry&, const ChallengeSpec&, const std::string& currency = "");
// The parts that the board alone knows.
std::string explain(const BoardRow&, const ChallengeSpec&, const std::string& currency = "");

// One failed case: its verdict, its shape, the first mismatch, the error beside its bound. If
// `replay` is given, it is a command that replays the case, and the seed is shown too.
std::string describe_failure(const CaseResult&, const ChallengeSpec&,
                             const std::string& replay = "");

// The command that runs a cell again for the same target; a seed or a case may be appended. Ready
// to paste into a shell.
std::string rerun_command(const CellKey&, const std::string& target);

// The command that runs one case again with the same inputs. Ready to paste into a shell.
std::string replay_command(const CellResult&, const std::string& case_name);

// The command that measures a cell again and so creates its evidence. Ready to paste into a shell.
std::string measuring_command(const CellKey&);

}  // namespace assay
