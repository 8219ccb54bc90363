// Decides whether a row of the board is what this program would measure and grade today. This is
// the only place that decides it: any other row is stale, and does not compare with current ones.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"

namespace assay {

// The GPU of a row. Simulated: the GPU on which its speeds were modelled, by its data sheet's name
// ("H200"). Real: the GPU it was measured on ("NVIDIA H200"). "" for C++, or if unknown.
std::string gpu_of(const BoardRow&);

// The GPU of most rows of the board on that device, because a board compares submissions on one
// GPU. Ties go to the default GPU, then to the first by name. Without rows: the default GPU on
// Device::sim, else "".
std::string gpu_of(const Scoreboard&, Device);

// Why a row is stale, in words: "older measurement revision", "newer measurement revision", "older
// spec", "another GPU model", "another GPU". Empty: the row is current. `gpu` is the GPU of the
// row's device on its board; data sheets are compared with their current text.
std::vector<std::string> stale_reasons(const BoardRow&, const ChallengeSpec&,
                                       const std::string& gpu);
bool is_stale(const BoardRow&, const ChallengeSpec&, const std::string& gpu);

// For tables, after a score: " (stale: older spec, another GPU model)"; "" if the row is current.
std::string stale_mark(const BoardRow&, const ChallengeSpec&, const std::string& gpu);

// Whether a newer assay measured the row, so that this one cannot measure it again.
bool is_of_newer_assay(const BoardRow&);

// Why two rows of one challenge do not compare, whether current or not: "measured at different
// revisions", "measured against different versions of the spec", "modelled on different GPUs",
// "measured on different GPUs". With `across_specs`, different specs are no reason. Empty: they
// compare.
std::string why_apart(const BoardRow&, const BoardRow&, bool across_specs = false);

struct StaleCount {
  std::size_t rows = 0;   // rows of known challenges
  std::size_t stale = 0;  // of those
  std::size_t newer = 0;  // of the stale ones, those of a newer assay
  std::string why;        // "3 older measurement revision, 1 older spec"
};
StaleCount count_stale(const Scoreboard&, const std::vector<ChallengeSpec>&);

// What a reader of the board must know, as a sentence or two of plain text with the command that
// measures again; "" if all rows are current.
std::string stale_text(const StaleCount&);

}  // namespace assay
