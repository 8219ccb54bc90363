// Whether a row of the board says what this program would measure and grade today. The one place
// that decides it: a row that does not is stale, and compares with no row that does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"

namespace assay {

// The GPU of a row: simulated, the one whose model gave its speeds, by the name of its data sheet
// ("H200"); real, the one that it was measured on ("NVIDIA H200"). "" of C++, or where it is not
// known.
std::string gpu_of(const BoardRow&);

// The GPU of most rows of the board on that device: a board compares answers on one GPU. Of as many
// the default's, else the first by name; where there are none the default's on Device::sim, else
// "".
std::string gpu_of(const Scoreboard&, Device);

// What of a row is not of today, in words: "older measurement revision", "newer measurement
// revision", "older spec", "another GPU model", "another GPU". Empty: the row is current. `gpu` is
// that of its device on its board; a data sheet counts as it is today.
std::vector<std::string> stale_reasons(const BoardRow&, const ChallengeSpec&,
                                       const std::string& gpu);
bool is_stale(const BoardRow&, const ChallengeSpec&, const std::string& gpu);

// For tables, behind a score: " (stale: older spec, another GPU model)"; "" when it is current.
std::string stale_mark(const BoardRow&, const ChallengeSpec&, const std::string& gpu);

// A newer assay measured it: this one cannot measure it again.
bool is_of_newer_assay(const BoardRow&);

// Why two rows of one challenge do not compare, of whatever day they are: "measured at different
// revisions", "measured against different versions of the spec", "modelled on different GPUs",
// "measured on different GPUs". With `across_specs` the second is none. Empty: they do.
std::string why_apart(const BoardRow&, const BoardRow&, bool across_specs = false);

struct StaleCount {
  std::size_t rows = 0;   // of challenges that are known
  std::size_t stale = 0;  // of those
  std::size_t newer = 0;  // of the stale ones, of a newer assay
  std::string why;        // "3 older measurement revision, 1 older spec"
};
StaleCount count_stale(const Scoreboard&, const std::vector<ChallengeSpec>&);

// What a reader of the board must know, a sentence or two of plain text with the command that
// measures again; "" when all is current.
std::string stale_text(const StaleCount&);

}  // namespace assay
