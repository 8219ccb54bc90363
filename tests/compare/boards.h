// Boards with given scores, not measured ones.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "../grade/samples.h"
#include "assay/results.h"
#include "compare/field.h"

namespace assay::testing {

struct GivenScore {
  const char* model;
  std::size_t challenge;
  const char* attempt;
  double total;
  double half = 0;  // of the interval
  Verdict verdict = Verdict::ok;
  std::vector<FailedCase> failed{};
  double speed = 0;  // relative to par; 0: not timed
};

// Three challenges like sample_spec(): "first", "second", "third".
inline std::vector<ChallengeSpec> three_specs() {
  std::vector<ChallengeSpec> specs;
  for (const char* name : {"first", "second", "third"}) {
    specs.push_back(sample_spec(name));
    specs.back().title = std::string("The ") + name;
  }
  return specs;
}

inline BoardRow given_row(const GivenScore& g, const ChallengeSpec& spec, Device device) {
  BoardRow row;
  row.key = {g.model, spec.name, g.attempt, device};
  row.score.verdict = g.verdict;
  row.score.total = g.total;
  row.score.interval = {g.total - g.half, g.total + g.half};
  row.score.letter = "B";
  row.score.dimensions = {{"correctness", g.total / 2, 50, {g.total / 2, g.total / 2}, "why"}};
  if (g.speed > 0)
    row.score.speeds = {{"timed_a", g.speed, {0.9 * g.speed, 1.1 * g.speed}, 4 * g.speed, 0.5}};
  row.failed = g.failed;
  row.spec_hash = spec.hash;
  row.source_hash = std::string(g.model) + g.attempt;
  row.finished_at = "2026-11-21T04:00:00Z";
  row.evidence.sha256 = std::string(g.model) + spec.name + g.attempt;
  return row;
}

inline Scoreboard given_board(const std::vector<GivenScore>& scores, Device device = Device::cpu) {
  const auto specs = three_specs();
  Scoreboard board;
  for (const GivenScore& g : scores) {
    BoardRow row = given_row(g, specs[g.challenge], device);
    board.entries.emplace(row.key, row);
  }
  return board;
}

}  // namespace assay::testing
