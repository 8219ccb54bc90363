// assay attack: runs every shipped attack through the same path as a submission, to show that none
// gains anything.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "assay/error.h"
#include "assay/parallel.h"
#include "attack/attack.h"
#include "attack/suite.h"
#include "cli/harness.h"
#include "cli/progress.h"
#include "sandbox/worker_image.h"
#include "util/cpu_set.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;
using attack::Attack, attack::Observation, attack::Row, attack::Tally;

constexpr std::size_t kSaid = 160;

constexpr const char* kHelp = R"(
An attack is a small hostile submission whose first lines say which outcome is right: a
verdict, or 'honest', where every case passes and nothing is gained. It is built, run and
graded like any other. After each one an honest neighbour must be what it was before, the
harness alive, and nothing left behind: no process, file, cgroup, mount, key or shared
memory. An attack on time runs in the same rounds as its honest twin, which runs twice:
the gain must lie within what the twin gains over itself. An attack on points may gain
half a point. If the machine is too busy to decide, or a gain shows up, the attack is run
again, up to six times more; if it is still undecided, it fails.

Each attack also has to show that it did what it says: see 'witness' in attack.h. Canaries
do what the suite must report, each by one of its ways to judge; a canary that goes
unreported fails the suite.

Attacks that need a missing tool, such as nvcc, are skipped and count neither way. The
last line is the catch rate. Nothing is written but the cache.

Exit status: 0 all caught and each canary reported, 1 not so, 2 another error.

Examples:
  assay attack                   all of them; a quarter of an hour
  assay attack --fast            those that take seconds; minutes
  assay attack T M12.inet        time and protocol, and one variant of M12
  assay attack --list            what there is
  assay attack --tier landlock   in the weaker sandbox
)";

struct AttackCommand {
  HarnessOptions harness;
  std::vector<std::string> ids;
  std::string folder, tier = "auto";
  std::size_t jobs = static_cast<std::size_t>(available_cores());
  std::uint64_t seed = 1;
  bool list = false, json = false, fast = false;
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

std::string line_of(const Row& row) {
  return fmt::format(
      "{} {}: {}{}", row.attack.id, row.attack.name, row.seen.outcome,
      row.complaint.empty() ? "" : "  UNEXPECTED: " + printable(row.complaint, 1, kSaid));
}

class OnStderr final : public attack::SuiteProgress {
 public:
  void expect(std::size_t rows) override { progress_.emplace(rows); }
  std::shared_ptr<void> begin(const std::string& activity) override {
    return progress_->begin(activity);
  }
  void finished(const Row& row) override { progress_->finished(line_of(row)); }

 private:
  std::optional<Progress> progress_;
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
  constexpr std::size_t kMargin = 4;
  const std::string margin(kMargin, ' ');
  for (const Attack& a : attacks)
    fmt::print("{} {}: {}\n{}{}", a.id, a.name, fmt::join(a.expected, " | "), margin,
               wrapped(a.what, kTerminalColumns - kMargin, margin));
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
  if (chosen.empty()) throw Error("none of these attacks is fast: leave out --fast");
  std::vector<Row> rows;
  for (const Attack& a : chosen) rows.push_back({a, {}, {}});
  const Attack neighbour = attack::read_attack(folder / "neighbour_honest", specs).front();
  const sandbox::Tier tier = tier_of(c);
  {
    OnStderr progress;
    attack::Suite({{context.root, folder},
                   tier,
                   c.jobs,
                   c.seed,
                   [&] { return make_builder(context, tier, c.harness); }},
                  specs, progress)
        .run(rows, neighbour);
  }
  if (c.json) {
    print_json(rows, tier);
  } else {
    print_table(rows);
    fmt::print("{}\n", Tally(rows).text(tier));
  }
  return Tally(rows).good() ? kDone : kCheckFailed;
}

}  // namespace

void add_attack(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("attack", "Run the shipped attacks; none may get anything");
  command->footer(kHelp);
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
      ->check(CLI::Range(1, CpuSet::kMost));
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
