#include "attack/run_attack.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

#include "assay/error.h"
#include "cells/cell.h"
#include "grade/grade.h"
#include "spec/spec.h"

namespace assay::attack {
namespace fs = std::filesystem;
namespace {

bool is_timed(const CaseSpec& c) { return c.group == CaseGroup::timed || c.exclusive; }

bool any_timed(const Attack& attack, const ChallengeSpec& spec) {
  return attack.language == Language::cpp &&
         std::ranges::any_of(attack.cases, [&](const std::string& name) {
           const CaseSpec* const c = find_case(spec, name);
           return c != nullptr && is_timed(*c);
         });
}

Submission submission_in(const fs::path& folder, const Attack& attack, const std::string& model) {
  for (Submission& s : read_submissions(folder, model, attack.challenge, "")) {
    if (s.language == attack.language) return std::move(s);
  }
  throw Error(fmt::format("{} holds no {}", folder.string(), main_file(attack.language)));
}

// The cells of the attack and, if it is graded, of its twin. Timed attacks have a second twin,
// last.
class Contest {
 public:
  Contest(const Attack& attack, const Door& door)
      : attack_(attack),
        spec_(spec_named(door.specs, attack.challenge)),
        runner_(world(door.builder), {door.tier, door.seed, filter(), 1}) {
    lay_out(attack, door.places, false, door.scratch / "attack");
    submissions_.push_back(submission_in(door.scratch / "attack", attack, "attack"));
    if (attack.dimension.empty()) return;
    lay_out_twin(attack, door.places, door.scratch / "twin");
    const Submission twin = submission_in(door.scratch / "twin", attack, "twin");
    submissions_.push_back(twin);
    if (any_timed(attack, spec_)) submissions_.push_back(twin);
  }

  Observation run() {
    for (const Submission& s : submissions_) cells_.push_back(runner_.check(spec_, s));
    if (attack_.dimension == "tests") {
      for (std::size_t i = 0; i < cells_.size(); ++i)
        runner_.run_own_tests(spec_, submissions_[i], cells_[i], 1);
    }
    if (any_timed(attack_, spec_)) {
      runner_.time_together(spec_, cells_);
      for (CellResult& cell : cells_) runner_.run_exclusive(spec_, cell);
    }
    Observation seen = outcome_of(cells_.front());
    seen.said_witness = said_witness_;
    if (cells_.size() > 1) compare(seen);
    return seen;
  }

 private:
  // The real world, except that workers' output is searched for the witness. Twins print none.
  cases::World world(Builder& builder) {
    cases::World world = cases::real_world(builder);
    world.make_worker = [this, usual = world.make_worker](
                            const processes::WorkerSettings& settings, processes::Arena& input,
                            std::size_t bytes, processes::Arena* device) {
      processes::WorkerSettings watched = settings;
      watched.on_text = [this](std::string_view printed) {
        if (says_witness(attack_, printed)) said_witness_ = true;
      };
      return usual(watched, input, bytes, device);
    };
    return world;
  }

  cases::CaseFilter filter() const {
    // Own tests run only in full runs.
    return {.quick = attack_.dimension != "tests", .named = attack_.cases};
  }

  void compare(Observation& seen) const {
    const Observation twin = outcome_of(cells_[1]);
    if (twin.outcome != kHonest && seen.outcome != kSkipped) {
      throw Error(
          fmt::format("{}: its honest twin is {} ({})", attack_.id, twin.outcome, twin.detail));
    }
    if (cells_.size() > 2) seen.gain = gain();
    const ChallengeSpec spec = narrowed(spec_for(cells_[0].key.device, spec_), attack_.cases);
    const auto score = [&](std::size_t i) { return grade(spec, cells_[i]); };
    if (cells_.size() > 2) {
      const Score again = score(2);
      seen.points_gained = points_gained(score(0), score(1), &again);
    } else {
      seen.points_gained = points_gained(score(0), score(1), nullptr);
    }
  }

  // The gain in the timed case most damning for the attack.
  std::optional<Gain> gain() const {
    std::vector<Gain> gains;
    for (const CaseResult& c : cells_[0].cases) {
      const auto same = [&](const CellResult& cell) {
        const auto at = std::ranges::find(cell.cases, c.name, &CaseResult::name);
        return at == cell.cases.end() ? std::vector<TimingSample>{} : at->samples;
      };
      if (const auto found = gain_of(c.samples, same(cells_[1]), same(cells_[2])))
        gains.push_back(*found);
    }
    return worst_of(gains);
  }

  const Attack& attack_;
  const ChallengeSpec& spec_;
  std::atomic<bool> said_witness_{false};
  cells::CellRunner runner_;
  std::vector<Submission> submissions_;
  std::vector<CellResult> cells_;
};

}  // namespace

bool needs_quiet(const Attack& attack, const std::vector<ChallengeSpec>& specs) {
  return any_timed(attack, spec_named(specs, attack.challenge));
}

Observation run_attack(const Attack& attack, const Door& door) {
  return Contest(attack, door).run();
}

std::string run_neighbour(const Attack& honest, const Door& door) {
  lay_out_twin(honest, door.places, door.scratch / "neighbour");
  const Submission submission = submission_in(door.scratch / "neighbour", honest, "neighbour");
  cells::CellRunner runner(cases::real_world(door.builder),
                           {door.tier, door.seed, {.quick = true, .named = honest.cases}, 1});
  const CellResult cell = runner.check(spec_named(door.specs, honest.challenge), submission);
  std::string all = fmt::format("build {}", code(cell.build.verdict));
  for (const CaseResult& c : cell.cases) {
    all += fmt::format("; {} {} error {} {}", c.name, code(c.verdict),
                       c.error ? fmt::format("{:.17g}", *c.error) : "-", c.detail);
  }
  return all;
}

}  // namespace assay::attack
