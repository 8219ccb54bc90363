// Runs all attacks of a folder, each in its own process, so that the next goes on whatever happens
// to the harness in one. Afterwards an honest neighbour must give the same result as before, and
// nothing may be left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attack/attack.h"
#include "attack/in_child.h"
#include "attack/judgement.h"
#include "attack/run_attack.h"
#include "util/temporary_folder.h"

namespace assay::attack {

// An attack and its result.
struct Row {
  Attack attack;
  Observation seen;
  std::string complaint;  // empty if all is as expected

  bool skipped() const { return seen.outcome == kSkipped && complaint.empty(); }
};

struct SuiteSettings {
  Places places;
  sandbox::Tier tier = sandbox::Tier::none;
  std::size_t jobs = 1;  // attacks in parallel; timed ones always run alone
  std::uint64_t seed = 1;
  std::function<std::unique_ptr<Builder>()> make_builder;  // also called in the attacks' processes
};

// Receives the suite's progress.
class SuiteProgress {
 public:
  virtual ~SuiteProgress() = default;
  virtual void expect(std::size_t rows) = 0;  // before any other call
  // The activity lasts as long as the returned object.
  virtual std::shared_ptr<void> begin(const std::string& activity) = 0;
  virtual void finished(const Row&) = 0;
};

class Suite {
 public:
  // The specs and the progress must outlive it. Throws Error if the compiler does not work.
  Suite(SuiteSettings, const std::vector<ChallengeSpec>&, SuiteProgress&);

  // Fills in each row's observation and complaint.
  void run(std::vector<Row>&, const Attack& neighbour);

 private:
  struct Running {
    Row* row;
    std::unique_ptr<Child> child;
    std::shared_ptr<void> activity;
  };

  template <class Work>
  auto in_own_world(const std::string& name, Work) const;
  std::string ask_neighbour(const Attack&) const;
  void clear(const std::string& name) const;
  void run_until_settled(Row*&, const Attack& neighbour);
  void run_group(std::span<Row* const>, const Attack& neighbour);
  void run_side_by_side(std::span<Row* const>);
  Running start(Row&) const;
  bool take(Running&);

  SuiteSettings settings_;
  const std::vector<ChallengeSpec>& specs_;
  SuiteProgress& progress_;
  std::unique_ptr<Builder> builder_;
  const TemporaryFolder scratch_{"assay-suite-"};
  std::string honest_;  // the neighbour's result when nothing ran before it
};

// Counts over all rows.
struct Tally {
  explicit Tally(const std::vector<Row>&);

  // Every attack that ran was caught, and every canary that ran was reported.
  bool good() const { return missed == 0 && blind.empty(); }
  // "320 of 320 attacks caught (100.0 %), 3 skipped; namespaces+seccomp; 9 of 9 canaries reported"
  std::string text(sandbox::Tier) const;

  std::size_t caught = 0, missed = 0, skipped = 0;
  std::size_t reported = 0;        // canaries
  std::vector<std::string> blind;  // mechanisms whose canaries were not reported
};

}  // namespace assay::attack
