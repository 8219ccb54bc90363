// How well the challenges' traps separate models: the share that falls for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::compare {

struct TrapFigure {
  const ChallengeSpec* challenge = nullptr;
  std::string trap, catches;
  std::size_t models = 0, answers = 0;  // that ran the trap case
  std::size_t fallen = 0;               // answers
  double share = 0;                     // mean over models of the share of their answers that fell
  Interval interval;                    // 95 %, Wilson's over models
  // The mean over all pairs of models of the difference of their shares: with one answer each, the
  // share of pairs that the trap tells apart. At most about a half. 0 with fewer than two models.
  double separation = 0;
  std::vector<std::string> fell;  // models with a fallen answer, by name, at most kFallenNamed

  enum class Use : std::uint8_t {
    separates,  // some fell, some did not
    nobody,     // none fell
    everybody,  // all did
  };
  Use use() const;
  // False if there are too few models to judge traps that do not separate.
  bool enough() const { return models >= kEnoughModels; }

  static constexpr std::size_t kEnoughModels = 5, kFallenNamed = 8;
};

// Figures for every trap case of the field's challenges on its device, except drawn ones; those
// that separate most come first. Only submissions that ran all cases of the current spec count: not
// quick, stale, dated or unbuilt ones.
std::vector<TrapFigure> trap_figures(const Field&);

// How many of a field's submissions could not be counted because their board keeps no failed cases,
// or because they were measured by other rules than today's.
std::size_t uncounted_answers(const Field&);

}  // namespace assay::compare
