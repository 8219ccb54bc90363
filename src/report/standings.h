// Who stands where: what the tables of a report say, before they are tables.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "compare/bradley_terry.h"
#include "compare/field.h"
#include "compare/pairwise.h"

namespace assay::report {

struct Standing {
  std::string model;
  // Of the field, one cell per challenge. What tables show of it is Cell::best.
  const compare::Player* player = nullptr;
  int attempted = 0;  // whole challenges with a total; what is partial enters no average
  int partial = 0;    // partial ones with a total
  int stale = 0;      // whole ones of which all that was graded is stale: as if left out
  // Over the attempted whole challenges, by the figure of the standings; absent when there are
  // none.
  std::optional<double> average;
  Interval interval;                        // of the average, 95 %
  std::optional<double> first, mean, best;  // the average by each figure
  // It attempted every whole challenge of the device. Only such models are ranked by their average:
  // averages over different challenges do not compare.
  bool complete = false;
  bool reference = false;  // no model: shown below them, without a rank
  int rank = 0;            // 1 + the complete models that are clearly better; 0 when not ranked
  bool tied = false;       // another model has the same rank
  // Against all others it met, over the challenges that both attempted; see bradley_terry.h.
  std::optional<compare::Strength> strength;
  compare::Record record;
};

struct Standings {
  compare::Field field;
  compare::By by = compare::By::mean;
  std::size_t whole = 0;  // challenges of the field that are not partial
  // Complete ones by rank, then average; then the others by challenges attempted, then average;
  // then by name; references last, likewise.
  std::vector<Standing> models;
  // Of how many the strengths are; fewer than there are models on a large board.
  std::size_t met = 0;
};

// How many models are compared head to head at most: those with most challenges, then the highest
// averages.
inline constexpr std::size_t kMostMet = 50;

// Of the entries measured on `device`; entries for other challenges are left out. Board and specs
// must outlive it.
Standings make_standings(const Scoreboard&, const std::vector<ChallengeSpec>&, Device device,
                         compare::By by = compare::By::mean);

// The whole challenges without a total of today of this model.
std::vector<const ChallengeSpec*> left_out(const Standings&, const Standing&);

// A ranking over a set of challenges that some model attempted and no more, of all models that
// attempted at least these.
struct SubsetRanking {
  struct Place {
    const Standing* standing = nullptr;
    double average = 0;
    Interval interval;
    int rank = 0;  // 0: a reference
    bool tied = false;
  };
  std::vector<std::size_t> challenges;  // indices
  std::vector<Place> places;            // by rank, then average, then name
};

// Of every such set with two models or more, but for the set of all; the sets of most models first,
// at most `most`.
std::vector<SubsetRanking> subset_rankings(const Standings&, std::size_t most);

// How far one score of a model can be compared: its attempts at the challenge, if there are
// several, and the challenges that its average leaves out, if any. Lines of plain text.
std::string place_among_others(const Standings&, const std::string& model,
                               const std::string& challenge);

// Of a large board those that a page of their own compares: the leaders among themselves, then
// neighbours in the order of the standings, the better first.
inline constexpr std::size_t kPairsOfLeaders = 4, kPairPages = 12;
std::vector<std::pair<const Standing*, const Standing*>> pairs_that_matter(const Standings&);

// Whether the whole of `a` lies above the whole of `b`, by more than the tables show.
bool clearly_above(Interval a, Interval b);

}  // namespace assay::report
