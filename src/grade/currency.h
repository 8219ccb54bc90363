// Decides which rows of the board count. This is the only place that decides it.
//
// A row is current if this program would measure and grade it alike today. Other rows are stale:
// they do not compare with current ones, and enter nothing. There is one exception. A challenge's
// spec may change where there is no device to measure again. As long as all its rows on that device
// are of the same older spec, they compare with one another: they count, and are called dated. The
// first row of today's spec makes them stale.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
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

// What the rows of one challenge on one device must have in common to count.
struct Yardstick {
  std::string gpu;        // "" for C++
  std::string spec_hash;  // ChallengeSpec's
  bool is_dated = false;  // the hash is not today's: every row that counts is dated
};

// What counts on no particular board: rows of today's spec.
Yardstick yardstick_of_today(const ChallengeSpec&, std::string gpu);

// The yardsticks of a board.
class Yardsticks {
 public:
  Yardsticks(const Scoreboard&, const std::vector<ChallengeSpec>&);

  // For a challenge of those given. REQUIRES that it is one of them.
  const Yardstick& of(Device device, const std::string& challenge) const {
    return all_.at({device, challenge});
  }
  const Yardstick& of(const CellKey& key) const { return of(key.device, key.challenge); }

 private:
  std::map<std::pair<Device, std::string>, Yardstick> all_;
};

// Why a row is stale, in words: "older measurement revision", "newer measurement revision", "older
// spec", "another GPU model", "another GPU". Empty: the row counts. Data sheets are compared with
// their current text.
std::vector<std::string> stale_reasons(const BoardRow&, const Yardstick&);
bool is_stale(const BoardRow&, const Yardstick&);
bool is_dated(const BoardRow&, const Yardstick&);

// For tables, after a score: " (stale: older spec, another GPU model)", " (older spec)" for a dated
// row, "" for a current one.
std::string currency_mark(const BoardRow&, const Yardstick&);

// What a reader of a single row must know, without a period; "" if the row is current.
std::string currency_note(const BoardRow&, const Yardstick&);

// Whether a newer assay measured the row, so that this one cannot measure it again.
bool is_of_newer_assay(const BoardRow&);

// Why two rows of one challenge do not compare, whether current or not: "measured at different
// revisions", "measured against different versions of the spec", "modelled on different GPUs",
// "measured on different GPUs". With `across_specs`, different specs are no reason. Empty: they
// compare.
std::string why_apart(const BoardRow&, const BoardRow&, bool across_specs = false);

struct StaleCount {
  std::size_t rows = 0;   // rows of known challenges
  std::size_t dated = 0;  // of those
  std::size_t stale = 0;  // of those
  std::size_t newer = 0;  // of the stale ones, those of a newer assay
  std::string why;        // why they are stale: "3 older measurement revision, 1 older spec"
};
StaleCount count_stale(const Scoreboard&, const std::vector<ChallengeSpec>&);

// What a reader of the board must know, as a few sentences of plain text with the command that
// measures again; "" if all rows are current.
std::string stale_text(const StaleCount&);

}  // namespace assay
