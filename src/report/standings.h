// The standings of models: the content of a report's tables.
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
  // From the field, one cell per challenge. Tables show its Cell::best.
  const compare::Player* player = nullptr;
  int attempted = 0;  // whole challenges with a total; partial ones enter no average
  int partial = 0;    // partial ones with a total
  int stale = 0;      // whole ones with only stale grades: treated as left out
  // Over the attempted whole challenges, by the standings' figure; absent if there are none.
  std::optional<double> average;
  Interval interval;                        // of the average, 95 %
  std::optional<double> first, mean, best;  // the average by each figure
  // It attempted every whole challenge of the device. Only such models are ranked by their average:
  // averages over different challenges are not comparable.
  bool complete = false;
  bool reference = false;  // not a model: shown below them, without a rank
  int rank = 0;            // 1 + the number of complete models that are clearly better; 0 if not
                           // ranked
  bool tied = false;       // another model has the same rank
  // Against all other models, over the challenges that both attempted; see bradley_terry.h.
  std::optional<compare::Strength> strength;
  compare::Record record;
};

struct Standings {
  compare::Field field;
  compare::By by = compare::By::mean;
  std::size_t whole = 0;  // challenges of the field that are not partial
  // Complete ones by rank, then average; then the others by challenges attempted, then average;
  // then by name. References come last, in the same order.
  std::vector<Standing> models;
  // How many models the strengths cover; on a large board fewer than there are.
  std::size_t met = 0;
};

// The most models compared head to head: those with the most challenges, then the highest averages.
inline constexpr std::size_t kMostMet = 50;

// Standings of the entries measured on `device`. Entries for other challenges are left out. Board
// and specs must outlive it.
Standings make_standings(const Scoreboard&, const std::vector<ChallengeSpec>&, Device device,
                         compare::By by = compare::By::mean);

// The whole challenges for which this model has no current total.
std::vector<const ChallengeSpec*> left_out(const Standings&, const Standing&);

// A ranking over exactly the challenges that some model attempted, of all models that attempted at
// least these.
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

// The rankings of all such sets with two models or more, except the set of all challenges. Sets
// with the most models come first; at most `most`.
std::vector<SubsetRanking> subset_rankings(const Standings&, std::size_t most);

// How far one score of a model can be compared: its attempts at the challenge if there are several,
// and the challenges that its average leaves out, if any. Lines of plain text.
std::string place_among_others(const Standings&, const std::string& model,
                               const std::string& challenge);

// On a large board, the pairs that get a page each: the leaders among themselves, then neighbours
// in the order of the standings. The better model comes first.
inline constexpr std::size_t kPairsOfLeaders = 4, kPairPages = 12;
std::vector<std::pair<const Standing*, const Standing*>> pairs_that_matter(const Standings&);

// Whether all of `a` lies above all of `b`, by more than the tables show.
bool clearly_above(Interval a, Interval b);

}  // namespace assay::report
