// assay attack: every shipped attack through the same door as a submission, to show that none of
// them gets anything.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "assay/parallel.h"
#include "attack/attack.h"
#include "attack/in_child.h"
#include "attack/judgement.h"
#include "attack/leftovers.h"
#include "attack/run_attack.h"
#include "cli/harness.h"
#include "cli/progress.h"
#include "sandbox/worker_image.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/temporary_folder.h"
#include "util/text.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;
using attack::Attack, attack::Child, attack::Observation;

constexpr double kPatience = 3;  // seconds in which what has ended must be gone
constexpr std::size_t kSaid = 160;
// Rows for each job between two looks at the neighbour and at what was left behind.
constexpr std::size_t kBetweenLooks = 8;

struct AttackCommand {
  HarnessOptions harness;
  std::vector<std::string> ids;
  std::string folder, tier = "auto";
  std::size_t jobs = static_cast<std::size_t>(available_cores());
  std::uint64_t seed = 1;
  bool list = false, json = false, fast = false;
};

struct Row {
  Attack attack;
  Observation seen;
  std::string complaint;  // empty when it is as it should be

  bool skipped() const { return seen.outcome == attack::kSkipped && complaint.empty(); }
};

sandbox::Tier tier_of(const AttackCommand& c) {
  const int image = sandbox::worker_image_fd();
  if (c.tier == "auto") {
    const sandbox::TierReport found = sandbox::find_tier(image);
    if (found.tier == sandbox::Tier::none && !c.harness.unsafe)
      throw Error("no isolation works on this machine: see assay doctor");
    return found.tier;
  }
  if (c.tier == "none") {
    if (!c.harness.unsafe)
      throw Error("attacks without a sandbox reach this machine: --tier none needs --unsafe");
    return sandbox::Tier::none;
  }
  const sandbox::Tier tier =
      c.tier == "landlock" ? sandbox::Tier::landlock : sandbox::Tier::namespaces;
  for (const sandbox::ProbeResult& probe : sandbox::attempt_escapes(tier, image)) {
    if (!probe.contained)
      throw Error(fmt::format("the tier {} does not work here: {} {}", c.tier, probe.attempt,
                              probe.outcome));
  }
  return tier;
}

void wait_a_little() {
  check_stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// Runs what there is in processes of their own: whatever becomes of the harness in one, the next
// goes on.
class Suite {
 public:
  Suite(const Context& context, const AttackCommand& c, const std::vector<ChallengeSpec>& specs)
      : context_(context),
        c_(c),
        specs_(specs),
        places_{context.root,
                c.folder.empty() ? context.root / "tests" / "attacks" : fs::path(c.folder)},
        tier_(tier_of(c)),
        builder_(make_builder(context, tier_, c.harness)) {
    builder_->check();
    attack::adopt_orphans();
  }

  sandbox::Tier tier() const { return tier_; }

  void run(std::vector<Row>& rows, const Attack& neighbour) {
    std::vector<Row*> beside, canaries, alone;
    for (Row& row : rows) {
      if (std::ranges::find(row.attack.tiers, tier_) == row.attack.tiers.end()) {
        row.seen.outcome = attack::kSkipped;
        row.seen.detail = "this tier does not promise it";
      } else if (attack::needs_quiet(row.attack, specs_)) {
        alone.push_back(&row);
      } else {
        (row.attack.canary.empty() ? beside : canaries).push_back(&row);
      }
    }
    Progress progress(canaries.size() + beside.size() + alone.size());
    {
      const auto activity = progress.begin("an honest neighbour, for comparison");
      honest_ = ask_neighbour(neighbour);
    }
    // First, because a blind suite need not go on; each alone, because what it does is no other's.
    for (Row*& row : canaries) {
      run_group(std::span(&row, 1), neighbour, progress);
      progress.finished(line_of(*row));
    }
    const std::size_t most = kBetweenLooks * c_.jobs;
    for (std::size_t i = 0; i < beside.size(); i += most) {
      const std::span group = std::span(beside).subspan(i, std::min(most, beside.size() - i));
      run_group(group, neighbour, progress);
      for (const Row* row : group) progress.finished(line_of(*row));
    }
    for (Row*& row : alone) {
      run_on_the_clock(row, neighbour, progress);
      progress.finished(line_of(*row));
    }
  }

 private:
  struct Running {
    Row* row;
    std::unique_ptr<Child> child;
    std::shared_ptr<void> activity;
  };

  // A child's way: with a builder and a folder of its own.
  template <class Work>
  auto in_own_world(const std::string& name, Work work) const {
    return [this, name, work]() -> std::string {
      const auto builder = make_builder(context_, tier_, c_.harness);
      set_parallel_threads(1);
      return work(attack::Door{places_, specs_, *builder, tier_, c_.seed, scratch_.path() / name});
    };
  }

  std::string ask_neighbour(const Attack& neighbour) const {
    Child child(
        in_own_world("neighbour",
                     [&](const attack::Door& door) { return run_neighbour(neighbour, door); }),
        neighbour.deadline);
    Child::State state;
    while ((state = child.look()) == Child::State::running) wait_a_little();
    clear("neighbour");
    return state == Child::State::done ? child.said()
                                       : "the harness did not answer: " + child.said();
  }

  void clear(const std::string& name) const {
    std::error_code ec;
    fs::remove_all(scratch_.path() / name, ec);
  }

  // Until the clock has told something, or has told nothing too often.
  void run_on_the_clock(Row*& row, const Attack& neighbour, Progress& progress) {
    attack::Tries tries;
    do {
      run_group(std::span(&row, 1), neighbour, progress);
      tries.add(row->attack, row->seen);
    } while (!tries.settled());
    if (!row->attack.canary.empty()) {
      if (!tries.gained() && row->complaint.empty())
        row->complaint = "the suite is blind: " + tries.text();
    } else if (tries.gained() && row->complaint.empty()) {
      row->complaint = tries.text();
    }
  }

  // Runs all, some side by side, and looks at what they left behind. Which of several left it shows
  // when each runs alone; where that shows nothing, all of them are blamed.
  void run_group(std::span<Row* const> group, const Attack& neighbour, Progress& progress) {
    const attack::Leftovers before({builder_->cache().folder()});
    run_side_by_side(group, progress);
    std::vector<std::string> left = before.since(kPatience);
    const std::string now = ask_neighbour(neighbour_of(group, neighbour));
    // What a killed harness had in use, such as its cgroups, the next one takes away.
    const bool killed = std::ranges::any_of(
        group, [](const Row* row) { return row->seen.outcome == attack::kHung; });
    if (killed) left = before.since(kPatience);
    for (const Row* row : group) attack::remove_left(row->attack);
    const bool clean = left.empty() && now == honest_;
    bool found = false;
    if (!clean && group.size() > 1) {
      for (Row* row : group) {
        Row again{row->attack, {}, {}};
        Row* const alone = &again;
        run_group(std::span(&alone, 1), neighbour, progress);
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

  // The canary of neighbours stands beside a neighbour that is another one afterwards: itself.
  static const Attack& neighbour_of(std::span<Row* const> group, const Attack& neighbour) {
    const Attack& attack = group.front()->attack;
    return attack.canary == name_of(attack::Mechanism::neighbour) ? attack : neighbour;
  }

  void run_side_by_side(std::span<Row* const> group, Progress& progress) {
    std::vector<Running> running;
    for (auto next = group.begin(); next != group.end() || !running.empty();) {
      if (next != group.end() && running.size() < c_.jobs) {
        running.push_back(start(**next++, progress));
        continue;
      }
      std::erase_if(running, [&](Running& r) { return take(r); });
      wait_a_little();
    }
  }

  Running start(Row& row, Progress& progress) const {
    const Attack& attack = row.attack;
    const auto work = [&attack](const attack::Door& door) {
      return attack::to_json(run_attack(attack, door))
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return {&row, std::make_unique<Child>(in_own_world(attack.id, work), attack.deadline),
            progress.begin(attack.id + " " + attack.name)};
  }

  // Whether it has ended.
  bool take(Running& r) {
    const Child::State state = r.child->look();
    if (state == Child::State::running) return false;
    Observation& seen = r.row->seen;
    if (state == Child::State::done) {
      seen = attack::observation_from(nlohmann::json::parse(r.child->said()));
    } else {
      seen.outcome = state == Child::State::hung ? attack::kHung : attack::kDied;
      seen.detail = r.child->said();
    }
    seen.seconds = r.child->seconds();
    clear(r.row->attack.id);
    return true;
  }

  static std::string line_of(const Row& row) {
    return fmt::format(
        "{} {}: {}{}", row.attack.id, row.attack.name, row.seen.outcome,
        row.complaint.empty() ? "" : "  UNEXPECTED: " + printable(row.complaint, 1, kSaid));
  }

  const Context& context_;
  const AttackCommand& c_;
  const std::vector<ChallengeSpec>& specs_;
  attack::Places places_;
  sandbox::Tier tier_;
  std::unique_ptr<Builder> builder_;
  const TemporaryFolder scratch_{"assay-suite-"};
  std::string honest_;
};

std::string gain_text(const Observation& seen) {
  if (seen.gain) {
    return fmt::format("{:.2f}x ({:.2f}x honest against honest)", seen.gain->value,
                       seen.gain->most_noise());
  }
  return seen.points_gained ? fmt::format("{:+.1f} points", *seen.points_gained) : "-";
}

void print_table(const std::vector<Row>& rows) {
  TextTable table({"attack", "", "expected", "observed", "gained", "seconds", ""});
  for (const Row& row : rows) {
    std::string remark;
    if (row.skipped()) {
      remark = printable(row.seen.detail, 1, kSaid);
    } else if (!row.complaint.empty()) {
      remark = "UNEXPECTED: " + printable(row.complaint, 1, kSaid);
    } else if (!row.attack.canary.empty()) {
      remark = fmt::format("canary: reported by the judgement of {}", row.attack.canary);
    }
    table.add({row.attack.id, row.attack.name,
               fmt::format("{}", fmt::join(row.attack.expected, " | ")), row.seen.outcome,
               gain_text(row.seen), fmt::format("{:.1f}", row.seen.seconds), remark});
  }
  fmt::print("{}", table.str());
}

nlohmann::json about(const Attack& a) {
  return {{"id", a.id},
          {"name", a.name},
          {"what", a.what},
          {"challenge", a.challenge},
          {"cases", a.cases},
          {"expected", a.expected},
          {"dimension", a.dimension},
          {"fast", a.fast},
          {"kinds", a.kinds},
          {"canary", a.canary},
          {"device", to_string(a.language == Language::cpp ? Device::cpu : Device::sim)}};
}

struct Tally {
  std::size_t caught = 0, missed = 0, skipped = 0;
  std::size_t reported = 0;        // canaries
  std::vector<std::string> blind;  // mechanisms whose canaries were not reported

  explicit Tally(const std::vector<Row>& rows) {
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
  bool good() const { return missed == 0 && blind.empty(); }
  std::string canaries() const {
    if (reported + blind.size() == 0) return "";
    const std::string text =
        fmt::format("; {} of {} canaries reported", reported, reported + blind.size());
    return blind.empty() ? text : fmt::format("{}, BLIND to {}", text, fmt::join(blind, ", "));
  }
  std::string text(sandbox::Tier tier) const {
    const std::size_t run = caught + missed;
    return fmt::format(
        "{} of {} attacks caught ({:.1f} %), {} skipped; {}{}", caught, run,
        run > 0 ? 100.0 * static_cast<double>(caught) / static_cast<double>(run) : 0.0, skipped,
        sandbox::to_string(tier), canaries());
  }
};

void print_json(const std::vector<Row>& rows, sandbox::Tier tier) {
  const Tally tally(rows);
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json one = about(row.attack);
    one.update(attack::to_json(row.seen));
    one["complaint"] = row.complaint;
    list.push_back(one);
  }
  const nlohmann::json all{{"attacks", list},
                           {"caught", tally.caught},
                           {"missed", tally.missed},
                           {"skipped", tally.skipped},
                           {"canaries_reported", tally.reported},
                           {"blind", tally.blind},
                           {"isolation", sandbox::to_string(tier)}};
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int list(const std::vector<Attack>& attacks, bool json) {
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Attack& a : attacks) all.push_back(about(a));
    fmt::print("{}\n", all.dump(2));
    return kDone;
  }
  TextTable table({"attack", "", "expected", "what it does"});
  for (const Attack& a : attacks)
    table.add({a.id, a.name, fmt::format("{}", fmt::join(a.expected, " | ")), a.what});
  fmt::print("{}", table.str());
  return kDone;
}

int execute(const Context& context, const AttackCommand& c) {
  const std::vector<ChallengeSpec> specs = load_specs(context);
  const fs::path folder =
      c.folder.empty() ? context.root / "tests" / "attacks" : fs::path(c.folder);
  const std::vector<Attack> known = attack::load_attacks(folder, specs);
  std::vector<Attack> chosen = attack::choose(known, c.ids);
  if (c.fast) std::erase_if(chosen, [](const Attack& a) { return !a.fast; });
  if (c.list) return list(chosen, c.json);
  std::vector<Row> rows;
  for (const Attack& a : chosen) rows.push_back({a, {}, {}});
  const Attack neighbour = attack::read_attack(folder / "neighbour_honest", specs).front();
  Suite suite(context, c, specs);
  suite.run(rows, neighbour);
  if (c.json) {
    print_json(rows, suite.tier());
  } else {
    print_table(rows);
    fmt::print("{}\n", Tally(rows).text(suite.tier()));
  }
  return Tally(rows).good() ? kDone : kCheckFailed;
}

}  // namespace

void add_attack(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("attack", "Run the shipped attacks; none may get anything");
  command->footer(
      "\nAn attack is a small hostile submission whose first lines say which outcome is right: a\n"
      "verdict, or 'honest', where every case passes and nothing is gained. It is built, run and\n"
      "graded like any other. After each one an honest neighbour must be what it was before, the\n"
      "harness alive, and nothing left behind: no process, file, cgroup, mount, key or shared\n"
      "memory. What is after time runs in the same rounds as its honest twin, which runs twice:\n"
      "the gain must lie within what the twin gains over itself. What is after points may gain\n"
      "half a point. Where that cannot be told, on a busy machine, or a gain is told, the attack "
      "is\n"
      "run again, up to five times; without an answer it fails.\n"
      "\nEach attack also has to show that it did what it says: see 'witness' in attack.h. "
      "Canaries\n"
      "do what the suite must report, each by one of its ways to judge; a canary that goes\n"
      "unreported fails the suite.\n"
      "\nOne that needs what is not here, such as nvcc, is skipped and counts neither way. The\n"
      "last line is the catch rate. Nothing is written but the cache.\n"
      "\nExit status: 0 all caught and each canary reported, 1 not so, 2 another error.\n"
      "\nExamples:\n"
      "  assay attack                   all of them; half an hour\n"
      "  assay attack --fast            those that take seconds; minutes\n"
      "  assay attack T M12.inet        time and protocol, and one variant of M12\n"
      "  assay attack --list            what there is\n"
      "  assay attack --tier landlock   in the weaker sandbox\n");
  auto c = std::make_shared<AttackCommand>();
  command->add_option("ID", c->ids, "only these: ids such as M12.inet, or how they begin");
  command->add_flag("--list", c->list,
                    "what they do and which outcome is right, without running them");
  command->add_flag("--json", c->json, "what was observed, as JSON");
  command->add_flag("--fast", c->fast, "only those that take seconds");
  command
      ->add_option("--jobs,-j", c->jobs,
                   "how many run side by side; those on the clock always run alone\n"
                   "(default: one a core)")
      ->check(CLI::Range(1, 256));
  command->add_option("--tier", c->tier, "the sandbox to attack; auto is the strongest that works")
      ->check(CLI::IsMember({"auto", "namespaces", "landlock", "none"}))
      ->capture_default_str();
  command->add_option("--attacks", c->folder, "folder of attacks (default: ROOT/tests/attacks)");
  command->add_option("--seed", c->seed, "seed of the inputs")->capture_default_str();
  add_harness_options(*command, c->harness);
  command->callback(
      [&action, c] { action = [c](const Context& context) { return execute(context, *c); }; });
}

}  // namespace assay::cli
