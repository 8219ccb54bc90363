#include "attack/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "assay/parallel.h"
#include "attack/leftovers.h"
#include "util/stop.h"

namespace assay::attack {
namespace {

constexpr double kPatience = 3;  // seconds for dead processes' remains to disappear
// Rows per job between two checks of the neighbour and of leftovers.
constexpr std::size_t kBetweenLooks = 8;

void wait_a_little() {
  check_stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// The neighbour canary is its own neighbour, which therefore differs from the usual one.
const Attack& neighbour_of(std::span<Row* const> group, const Attack& neighbour) {
  const Attack& attack = group.front()->attack;
  return attack.canary == name_of(Mechanism::neighbour) ? attack : neighbour;
}

}  // namespace

Suite::Suite(SuiteSettings settings, const std::vector<ChallengeSpec>& specs,
             SuiteProgress& progress)
    : settings_(std::move(settings)),
      specs_(specs),
      progress_(progress),
      builder_(settings_.make_builder()) {
  builder_->check();
  adopt_orphans();
}

void Suite::run(std::vector<Row>& rows, const Attack& neighbour) {
  std::vector<Row*> beside, canaries, alone;
  for (Row& row : rows) {
    if (std::ranges::find(row.attack.tiers, settings_.tier) == row.attack.tiers.end()) {
      row.seen.outcome = kSkipped;
      row.seen.detail = "this tier does not promise it";
    } else if (needs_quiet(row.attack, specs_)) {
      alone.push_back(&row);
    } else {
      (row.attack.canary.empty() ? beside : canaries).push_back(&row);
    }
  }
  progress_.expect(canaries.size() + beside.size() + alone.size());
  {
    const auto activity = progress_.begin("an honest neighbour, for comparison");
    honest_ = ask_neighbour(neighbour);
  }
  // First, because a blind suite need not go on; each alone, so that its effects are not blamed on
  // another row.
  for (Row*& row : canaries) {
    run_group(std::span(&row, 1), neighbour);
    progress_.finished(*row);
  }
  const std::size_t most = kBetweenLooks * settings_.jobs;
  for (std::size_t i = 0; i < beside.size(); i += most) {
    const std::span group = std::span(beside).subspan(i, std::min(most, beside.size() - i));
    run_group(group, neighbour);
    for (Row*& row : group) {
      if (!row->complaint.empty() && is_up_to_chance(row->attack, row->seen))
        run_until_settled(row, neighbour);
      progress_.finished(*row);
    }
  }
  for (Row*& row : alone) {
    run_until_settled(row, neighbour);
    progress_.finished(*row);
  }
}

// Wraps work for a child: it gets its own builder and folder.
template <class Work>
auto Suite::in_own_world(const std::string& name, Work work) const {
  return [this, name, work]() -> std::string {
    const auto builder = settings_.make_builder();
    set_parallel_threads(1);
    return work(Door{settings_.places, specs_, *builder, settings_.tier, settings_.seed,
                     scratch_.path() / name});
  };
}

std::string Suite::ask_neighbour(const Attack& neighbour) const {
  Child child(
      in_own_world("neighbour", [&](const Door& door) { return run_neighbour(neighbour, door); }),
      neighbour.deadline);
  Child::State state;
  while ((state = child.look()) == Child::State::running) wait_a_little();
  clear("neighbour");
  return state == Child::State::done ? child.said() : "the harness did not answer: " + child.said();
}

void Suite::clear(const std::string& name) const {
  std::error_code ec;
  std::filesystem::remove_all(scratch_.path() / name, ec);
}

// Repeats a row until the tries are settled.
void Suite::run_until_settled(Row*& row, const Attack& neighbour) {
  Tries tries;
  do {
    run_group(std::span(&row, 1), neighbour);
    tries.add(row->attack, row->seen);
  } while (!tries.settled());
  if (!row->attack.canary.empty()) {
    if (!tries.gained() && row->complaint.empty())
      row->complaint = "the suite is blind: " + tries.text();
  } else if (tries.gained() && row->complaint.empty()) {
    row->complaint = tries.text();
  }
}

// Runs a group, partly in parallel, and checks for leftovers. If a larger group left something,
// each row is rerun alone to find the culprit; if that finds none, all are blamed.
void Suite::run_group(std::span<Row* const> group, const Attack& neighbour) {
  const Leftovers before({builder_->cache().folder()});
  run_side_by_side(group);
  std::vector<std::string> left = before.since(kPatience);
  const std::string now = ask_neighbour(neighbour_of(group, neighbour));
  // The next harness removes what a killed one was using, such as its cgroups.
  const bool killed =
      std::ranges::any_of(group, [](const Row* row) { return row->seen.outcome == kHung; });
  if (killed) left = before.since(kPatience);
  for (const Row* row : group) remove_left(row->attack);
  const bool clean = left.empty() && now == honest_;
  bool found = false;
  if (!clean && group.size() > 1) {
    for (Row* row : group) {
      Row again{row->attack, {}, {}};
      Row* const alone = &again;
      run_group(std::span(&alone, 1), neighbour);
      row->seen.left_behind = again.seen.left_behind;
      row->seen.neighbour = again.seen.neighbour;
      found = found || !again.seen.left_behind.empty() || !again.seen.neighbour.empty();
    }
  }
  for (Row* row : group) {
    if (!clean && !found) {
      row->seen.left_behind = left;
      if (now != honest_) row->seen.neighbour = fmt::format("was '{}', is '{}'", honest_, now);
    }
    row->complaint = complaint(row->attack, row->seen);
  }
}

void Suite::run_side_by_side(std::span<Row* const> group) {
  std::vector<Running> running;
  for (auto next = group.begin(); next != group.end() || !running.empty();) {
    if (next != group.end() && running.size() < settings_.jobs) {
      running.push_back(start(**next++));
      continue;
    }
    std::erase_if(running, [&](Running& r) { return take(r); });
    wait_a_little();
  }
}

Suite::Running Suite::start(Row& row) const {
  const Attack& attack = row.attack;
  const auto work = [&attack](const Door& door) {
    return to_json(run_attack(attack, door))
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  return {&row, std::make_unique<Child>(in_own_world(attack.id, work), attack.deadline),
          progress_.begin(attack.id + " " + attack.name)};
}

// Returns whether the child has ended, and if so fills in its row.
bool Suite::take(Running& r) {
  const Child::State state = r.child->look();
  if (state == Child::State::running) return false;
  Observation& seen = r.row->seen;
  if (state == Child::State::done) {
    seen = observation_from(nlohmann::json::parse(r.child->said()));
  } else {
    seen.outcome = state == Child::State::hung ? kHung : kDied;
    seen.detail = r.child->said();
  }
  seen.seconds = r.child->seconds();
  clear(r.row->attack.id);
  return true;
}

Tally::Tally(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.attack.canary.empty()) {
      ++(row.skipped() ? skipped : row.complaint.empty() ? caught : missed);
    } else if (!row.complaint.empty()) {
      blind.push_back(row.attack.canary);
    } else if (!row.skipped()) {
      ++reported;
    }
  }
}

std::string Tally::text(sandbox::Tier tier) const {
  const std::size_t run = caught + missed, canaries = reported + blind.size();
  std::string text =
      fmt::format("{} of {} attacks caught ({:.1f} %), {} skipped; {}", caught, run,
                  run > 0 ? 100.0 * static_cast<double>(caught) / static_cast<double>(run) : 0.0,
                  skipped, sandbox::to_string(tier));
  if (canaries > 0) text += fmt::format("; {} of {} canaries reported", reported, canaries);
  if (!blind.empty()) text += fmt::format(", BLIND to {}", fmt::join(blind, ", "));
  return text;
}

}  // namespace assay::attack
