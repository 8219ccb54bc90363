// Who stands where: what the tables of a report say, before they are tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"

namespace assay::report {

struct Standing {
  std::string model;
  // One per challenge of Standings, null where there is no submission. Among several attempts a
  // full measurement before a quick one, then the highest total, then the first.
  std::vector<const BoardRow*> best;
  std::vector<std::vector<const BoardRow*>> attempts;
  int attempted = 0;              // challenges with a total
  std::optional<double> average;  // over those; absent when there are none
  Interval interval;              // of the average, 95 %
  // The same with the first attempt at each challenge, and with the mean of all attempts, in place of
  // the best. Attempts without a total are left out, quick ones beside a full one too.
  std::optional<double> first, mean;
  int rank = 0;       // 1 + the models that are clearly better; 0 without an average
  bool tied = false;  // another model has the same rank
  // It does not stand below some model that attempted more: its average is of fewer challenges.
  bool over_fewer = false;
};

// What a model's attempts at one challenge came to.
struct Attempts {
  std::size_t count = 0;  // with a total
  double best = 0, first = 0, mean = 0;
};

// Of those that count, see Standing. In the order given.
Attempts attempts_of(const std::vector<const BoardRow*>&);

// The challenges without a total of this model.
std::vector<const ChallengeSpec*> left_out(const struct Standings&, const Standing&);

struct Record {
  int wins = 0, ties = 0, losses = 0;
  int games() const { return wins + ties + losses; }
};

struct Standings {
  std::vector<const ChallengeSpec*> challenges;  // in the order given
  std::vector<Standing> models;                  // by rank, then average, then name
};

// Of the entries measured on `device`; entries for other challenges are left out.
Standings make_standings(const Scoreboard&, const std::vector<ChallengeSpec>&, Device device);

// Over the challenges for which both have a total; overlapping intervals are a tie.
Record head_to_head(const Standing& a, const Standing& b);

// How far one score of a model can be compared: its attempts at the challenge, if there are several, and the
// challenges that its average leaves out, if any. Lines of plain text.
std::string place_among_others(const Standings&, const std::string& model,
                               const std::string& challenge);

// The devices of the board, sorted.
std::vector<Device> devices(const Scoreboard&);

// Whether the whole of `a` lies above the whole of `b`, by more than the tables show.
bool clearly_above(Interval a, Interval b);

// By number where attempts are numbers.
bool attempt_before(const std::string& a, const std::string& b);

}  // namespace assay::report
