// Who answered what on one device: the table of models and challenges that every comparison starts
// from. Devices are fields of their own, and are never mixed: CUDA on the simulator has modelled
// speeds and other weights than C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "grade/partial.h"
#include "measure/statistics.h"

namespace assay::compare {

// By which figure of its attempts a model is judged.
enum class By : std::uint8_t { mean, best, first };
const char* to_string(By);  // "mean"
const char* title(By);      // "mean of attempts"
std::optional<By> by_from(const std::string&);

// A model's attempts at one challenge.
struct Cell {
  std::vector<const BoardRow*> attempts;  // all on the board, by number
  // Those that count: of today, with a finite total; quick ones only where there is no full one.
  std::vector<const BoardRow*> graded;
  std::vector<const BoardRow*> stale;  // see grade/currency.h; shown, never counted
  // What tables show: of `graded` the highest, the first of equals; else the same of `stale`; else
  // the first attempt; null without one.
  const BoardRow* best = nullptr;

  std::size_t count() const { return graded.size(); }
  // Nothing counts, and `best` is stale.
  bool is_stale() const;

  // Of the attempts that count, over attempts and timings, see bootstrap.h. 0 without one.
  Estimate mean;

  // REQUIRE count() > 0. First and best have the intervals of their timings alone.
  Estimate figure(By) const;
  double worst() const;
  double spread() const;  // sample standard deviation of the attempts; 0 with one
};

struct Player {
  std::string model;
  std::vector<Cell> cells;  // one for each challenge of the field
};

struct Field {
  Device device = Device::cpu;
  std::vector<const ChallengeSpec*> challenges;  // in the order given
  std::vector<DeviceGap> gaps;                   // of each challenge on this device
  std::vector<Player> players;                   // by name; only models with an attempt here
  std::string gpu;                               // of the board, see grade/currency.h

  bool is_partial(std::size_t challenge) const { return gaps[challenge].partial; }
  // " (stale: older spec)" for a row of that challenge; "" when it is of today.
  std::string stale_mark(std::size_t challenge, const BoardRow&) const;
  const Player* find(const std::string& model) const;  // null when it has no attempt here
};

// Of the rows measured on `device`; rows of other challenges are left out. Stale rows are shown and
// compared with nothing: a model has no score where it has no other. Board and specs must outlive
// it.
Field make_field(const Scoreboard&, const std::vector<ChallengeSpec>&, Device);

// The devices of the board, sorted.
std::vector<Device> devices_of(const Scoreboard&);

// By number where attempts are numbers.
bool attempt_before(const std::string& a, const std::string& b);

// An attempt's score with the interval of its timings: from 0 to 100, the interval around it,
// whatever a board of others says. REQUIRES a finite total.
Estimate score_of(const BoardRow&);

// Whether a model's score at a challenge can stand beside others: a full total of today at a
// challenge that the device grades whole.
bool takes_part(const Field&, const Player&, std::size_t challenge);

// Every case that the spec requires passed.
bool is_correct(const BoardRow&);

// There was an answer, and it was built and loaded.
bool was_built(const BoardRow&);

}  // namespace assay::compare
