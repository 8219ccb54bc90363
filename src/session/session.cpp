#include "session/session.h"

#include <fmt/format.h>

#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "cases/fault.h"
#include "numerics/jobs.h"
#include "util/transient_fault.h"

namespace assay::session {
namespace {

class Run {
 public:
  Run(std::size_t jobs, Steps& steps, const Sink& sink, const Watcher& watcher)
      : jobs_(jobs), steps_(steps), sink_(sink), watcher_(watcher) {}

  void simulate(const std::vector<const Submission*>& submissions) {
    for_each_job(submissions.size(), jobs_, [&](std::size_t i) {
      CellResult cell = check(*submissions[i], 0);
      run_own_tests(*submissions[i], cell, submissions.size() == 1 ? jobs_ : 1);
      finish(std::move(cell), 0);
    });
  }

  void run_batch(const std::vector<Group>& groups) {
    std::vector<std::vector<CellResult>> cells;
    for (const Group& group : groups) cells.emplace_back(group.size());
    check_all(groups, cells);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < groups[g].size(); ++i)
        run_own_tests(*groups[g][i], cells[g][i], jobs_);
    }
    const std::size_t places = steps_.places();
    for_each_job(places, places, [&](std::size_t place) {
      for (std::size_t g = place; g < cells.size(); g += places) time(cells[g], place);
    });
  }

 private:
  // Runs a step about one cell.
  template <class Step>
  void guarded(CellResult& cell, Step step) {
    try {
      step();
    } catch (const std::exception& fault) {
      cases::end_with_fault(cell, fault);
    }
  }

  CellResult check(const Submission& submission, std::size_t place) {
    CellResult cell;
    const Activity activity = watcher_("checking " + to_string(key_of(submission)));
    guarded(cell, [&] { cell = steps_.check(submission, place); });
    cell.key = key_of(submission);
    return cell;
  }

  void run_own_tests(const Submission& submission, CellResult& cell, std::size_t jobs) {
    const Activity activity = watcher_("trying the tests of " + to_string(cell.key));
    guarded(cell, [&] { steps_.run_own_tests(submission, cell, jobs); });
  }

  // Checks take longest, so they come first and small builds fill the gaps.
  void check_all(const std::vector<Group>& groups, std::vector<std::vector<CellResult>>& cells) {
    std::vector<std::function<void()>> work;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < groups[g].size(); ++i)
        work.emplace_back([&, g, i] { cells[g][i] = check(*groups[g][i], g % steps_.places()); });
    }
    for (const Group& group : groups) add_builds(group, work);
    for_each_job(work.size(), jobs_, [&](std::size_t i) { work[i](); });
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::vector<std::string> faults = take_faults(groups[g].front()->challenge);
      for (CellResult& cell : cells[g])
        cell.faults.insert(cell.faults.end(), faults.begin(), faults.end());
    }
  }

  void add_builds(const Group& group, std::vector<std::function<void()>>& work) {
    const std::string& challenge = group.front()->challenge;
    bool own_tests = false;
    for (const Submission* s : group) own_tests = own_tests || !s->test_source.empty();
    if (!prepared_.insert({challenge, own_tests}).second) return;
    std::vector<cells::SharedBuild> builds;
    try {
      builds = steps_.builds_for(challenge, own_tests);
    } catch (const std::exception&) {
      return;  // a cell that needs them hits the same fault and reports it
    }
    for (cells::SharedBuild& build : builds) {
      work.emplace_back([this, challenge, build = std::move(build)] {
        const Activity activity = watcher_("building " + build.name);
        try {
          build.run();
        } catch (const TransientFault& fault) {  // likewise, but by then it may have passed
          const std::lock_guard lock(faults_mutex_);
          faults_[challenge].push_back(
              fmt::format("while building {}: {}", build.name, fault.what()));
        } catch (const std::exception&) {  // likewise
        }
      });
    }
  }

  // Faults of the builds for the challenge; each is returned once.
  std::vector<std::string> take_faults(const std::string& challenge) {
    const std::lock_guard lock(faults_mutex_);
    return std::exchange(faults_[challenge], {});
  }

  void time(std::vector<CellResult>& cells, std::size_t place) {
    {
      const std::string names = cells.size() == 1 ? to_string(cells.front().key)
                                                  : fmt::format("{} answers to {}", cells.size(),
                                                                cells.front().key.challenge);
      const Activity activity = watcher_("timing " + names);
      try {
        steps_.time_together(cells, place);
      } catch (const std::exception& fault) {
        for (CellResult& cell : cells) cases::end_with_fault(cell, fault);
      }
    }
    for (CellResult& cell : cells) {
      {
        const Activity activity = watcher_("timing " + to_string(cell.key));
        guarded(cell, [&] { steps_.run_exclusive(cell, place); });
      }
      finish(std::move(cell), place);
    }
  }

  void finish(CellResult cell, std::size_t place) {
    const std::lock_guard lock(sink_mutex_);
    sink_(std::move(cell), place);
  }

  const std::size_t jobs_;
  Steps& steps_;
  const Sink& sink_;
  const Watcher& watcher_;
  std::mutex sink_mutex_;
  std::set<std::pair<std::string, bool>> prepared_;  // challenges, without and with own tests
  std::mutex faults_mutex_;
  std::map<std::string, std::vector<std::string>> faults_;  // by challenge; see check_all()
};

}  // namespace

void run(const Order& order, std::size_t jobs, Steps& steps, const Sink& sink,
         const Watcher& watcher) {
  Run run(jobs, steps, sink, watcher);
  if (order.first != nullptr) run.run_batch({Group{order.first}});
  run.simulate(order.simulated);
  for (const std::vector<Group>& batch : order.batches) run.run_batch(batch);
}

}  // namespace assay::session
