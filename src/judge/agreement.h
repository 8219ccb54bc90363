// How well a judge's opinions agree with measurements. A function of the board and the opinions; it
// never affects a score.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "judge/opinion.h"

namespace assay::judge {

// An opinion and a score contradict each other if the judge gives at least kHighOpinion and the
// score is below kFailedScore (a failed core case caps it below that), or if the judge gives at
// most kLowOpinion and the score is at least kGoodScore.
inline constexpr double kHighOpinion = 7, kLowOpinion = 4, kFailedScore = 60, kGoodScore = 80;

// A submission with an opinion that can be compared with its score.
struct Judged {
  const BoardRow* row = nullptr;
  const Opinion* opinion = nullptr;
  double value = 0;  // Opinion::value()
  double score = 0;
};

// Rank correlations of opinions and scores; absent if either has no two different values.
struct Agreement {
  Device device = Device::cpu;
  const ChallengeSpec* challenge = nullptr;  // null: all challenges that the device grades whole
  std::size_t cells = 0;
  std::optional<double> tau_b, rho;
};

// Opinions that are not compared.
struct LeftOut {
  std::size_t other_sources = 0;  // the submission was replaced since
  std::size_t no_marks = 0;       // no reply of the judge could be parsed
  std::size_t no_score = 0;       // not on the board, or without a full, current score

  std::size_t all() const { return other_sources + no_marks + no_score; }
};

// One judge with one rubric.
struct JudgeView {
  std::string judge;
  const Rubric* rubric = nullptr;
  std::vector<Judged> judged;  // in the order of the board
  LeftOut left_out;
  // By device: each challenge with an opinion, in the order of the specs, then all.
  std::vector<Agreement> agreements;
  // Largest contradictions first. Only challenges that the device grades whole.
  std::vector<const Judged*> praised_failures, scorned_successes;
};

// By judge, then rubric. Board, specs and opinions must outlive it.
std::vector<JudgeView> judge_views(const Scoreboard&, const std::vector<ChallengeSpec>&,
                                   const std::vector<Opinion>&);

}  // namespace assay::judge
