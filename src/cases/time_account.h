// Where the wall time of a run goes.
#pragma once

#include <mutex>

#include "util/clock.h"

namespace assay::cases {

struct TimeAccount {
  double submission = 0;  // calls into submissions, baselines and examples; all in seconds
  double reference = 0;   // drawing inputs, fp64 references, checks
  double timing = 0;      // cost of fair timing: cold caches, poison, page warm-up
  double workers = 0;     // starting workers and loading submissions
  double total = 0;       // everything; the remainder is harness overhead
  int cases = 0, workers_started = 0;

  void add(const TimeAccount& other) {
    submission += other.submission;
    reference += other.reference;
    timing += other.timing;
    workers += other.workers;
    total += other.total;
    cases += other.cases;
    workers_started += other.workers_started;
  }
};

// An account to which several threads may add.
class SharedAccount {
 public:
  void add(const TimeAccount& account) {
    const std::lock_guard lock(mutex_);
    total_.add(account);
  }
  TimeAccount total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  mutable std::mutex mutex_;
  TimeAccount total_;
};

// Adds its own lifetime to one entry of an account.
class Charge {
 public:
  explicit Charge(double& entry) : entry_(entry) {}
  ~Charge() { entry_ += steady_seconds() - start_; }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  double& entry_;
  const double start_ = steady_seconds();
};

}  // namespace assay::cases
