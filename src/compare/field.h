// The table of models and challenges on one device, from which every comparison starts. Each device
// has its own field, and devices are never mixed: CUDA on the simulator has modelled speeds and
// different weights than C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "grade/currency.h"
#include "grade/partial.h"
#include "measure/statistics.h"

namespace assay::compare {

// The figure of its attempts by which a model is judged.
enum class By : std::uint8_t { mean, best, first };
const char* to_string(By);  // "mean"
const char* title(By);      // "mean of attempts"
std::optional<By> by_from(const std::string&);

// A model's attempts at one challenge.
struct Cell {
  std::vector<const BoardRow*> attempts;  // all on the board, by number
  // Attempts that count: not stale, with a finite total; quick ones only if there is no full one.
  std::vector<const BoardRow*> graded;
  std::vector<const BoardRow*> stale;  // see grade/currency.h; shown, never counted
  // The attempt that tables show: the highest of `graded` (the first of equals), else the highest
  // of `stale`, else the first attempt; null if there is none.
  const BoardRow* best = nullptr;

  std::size_t count() const { return graded.size(); }
  // True if nothing counts and `best` is stale.
  bool is_stale() const;

  // Mean of the attempts that count; the interval covers attempts and timings, see bootstrap.h. 0
  // if there are none.
  Estimate mean;

  // These REQUIRE count() > 0. The intervals of first and best cover timings only.
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
  std::vector<DeviceGap> gaps;                   // for each challenge on this device
  std::vector<Player> players;                   // by name; only models with an attempt here
  std::vector<Yardstick> yardsticks;             // for each challenge, see grade/currency.h
  std::string gpu;                               // the board's, see grade/currency.h

  bool is_partial(std::size_t challenge) const { return gaps[challenge].partial; }
  // For a row of that challenge, see grade/currency.h.
  std::string currency_mark(std::size_t challenge, const BoardRow&) const;
  const Player* find(const std::string& model) const;  // null if it has no attempt here
};

// The field of the rows measured on the given device; rows of unknown challenges are left out.
// Stale rows are shown but compared with nothing: a model with only stale rows at a challenge has
// no score there. Board and specs must outlive the field.
Field make_field(const Scoreboard&, const std::vector<ChallengeSpec>&, Device);

// The devices on the board, sorted.
std::vector<Device> devices_of(const Scoreboard&);

// Orders attempts numerically if they are numbers.
bool attempt_before(const std::string& a, const std::string& b);

// An attempt's score with the interval of its timings. Always from 0 to 100 and inside the
// interval, even if the board's data is not. REQUIRES a finite total.
Estimate score_of(const BoardRow&);

// Whether a model's score at a challenge compares with others: a full total that counts, at a
// challenge that the device grades as a whole.
bool takes_part(const Field&, const Player&, std::size_t challenge);

// Why two scores at one challenge do not compare: one is quick and the other full, or why_apart()
// of grade/currency.h, whose `across_specs` this is. Empty: they compare.
std::string why_not_compared(const BoardRow&, const BoardRow&, bool across_specs = false);

// Every case that the spec requires passed.
bool is_correct(const BoardRow&);

// There was an answer, and it was built and loaded.
bool was_built(const BoardRow&);

}  // namespace assay::compare
