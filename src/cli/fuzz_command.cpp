// assay fuzz: endless random draws from a challenge's input space, run against an answer or the
// challenge's own implementations.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/error.h"
#include "assay/secret.h"
#include "cases/fuzz.h"
#include "cells/baselines.h"
#include "cells/cell.h"
#include "cells/examples.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "spec/json_schema.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// Models shipped as correct, and the special names for the baselines.
constexpr const char* kHouseModels[] = {"textbook", "tuned"};
constexpr const char* kBaselines[] = {"naive", "par"};
// After this many findings, an answer is not fuzzed further.
constexpr std::size_t kMostFindings = 3;

struct FuzzCommand {
  HarnessOptions harness;
  std::string challenge, model, submissions, device = "auto", draw;
  double seconds = 0;
  std::optional<std::uint64_t> seed;
};

// One library and its findings so far.
struct Subject {
  std::string model;
  Device device = Device::cpu;
  ChallengeSpec spec;  // for that device
  cases::TimeAccount account{};
  std::unique_ptr<cases::Fuzzer> fuzzer{};
  std::uint64_t draws = 0, runs = 0, refusals = 0, not_tested = 0;
  double spent = 0;
  std::vector<cases::Failure> found{};

  std::string name() const { return device == Device::sim ? model + " (sim)" : model; }
};

// The draw that --draw names, if it does. Throws Error for one that the challenge has not.
nlohmann::json draw_from(const FuzzCommand& c, const ChallengeSpec& spec) {
  if (!spec.random)
    throw Error(
        fmt::format("{} has no space of inputs: its spec.json has no \"random\"", c.challenge));
  if (c.draw.empty()) return {};
  nlohmann::json draw = parse_json(c.draw, "--draw");
  if (!draw.is_object()) throw Error("--draw: expected an object such as '{\"rows\": 3}'");
  draw::check_names(*spec.random, draw);
  return draw;
}

class Fuzzing {
 public:
  Fuzzing(const Context& context, const FuzzCommand& c)
      : c_(c),
        spec_(load_specs(context, {c.challenge}).front()),
        draw_(draw_from(c, spec_)),
        harness_(set_up(context, c.harness)),
        world_(cases::real_world(*harness_.builder)),
        options_{harness_.tier.tier, c.seed.value_or(random_seed()), {}, simulator_threads(1)},
        submissions_(c.submissions.empty() ? context.submissions() : fs::path(c.submissions)) {
    choose_subjects();
  }

  int replay() {
    bool failed = false;
    for (Subject& s : subjects_) {
      const CaseResult result = s.fuzzer->replay(draw_, options_.seed);
      fmt::print("{}: {} ({})\n", s.name(), code(result.verdict), description(result.verdict));
      print_facts(result);
      failed = failed || (result.verdict != Verdict::ok && result.verdict != Verdict::unsupported);
    }
    return failed ? kCheckFailed : kDone;
  }

  int search() {
    const double start = world_.now();
    try {
      Progress progress(0);
      while (Subject* s = next()) {
        if (c_.seconds > 0 && world_.now() - start >= c_.seconds) break;
        const auto activity = progress.begin(status(*s));
        const double before = world_.now();
        const cases::Fuzzer::Step step = s->fuzzer->step(derive(options_.seed, "fuzz", s->draws++));
        s->spent += world_.now() - before;
        s->runs += static_cast<std::uint64_t>(step.runs);
        s->refusals += static_cast<std::uint64_t>(step.refusals);
        s->not_tested += static_cast<std::uint64_t>(step.not_tested);
        if (step.failure) take(*s, *step.failure);
      }
    } catch (const Stopped&) {
      print_summary();
      throw;
    }
    print_summary();
    const bool any =
        std::ranges::any_of(subjects_, [](const Subject& s) { return !s.found.empty(); });
    return any ? kCheckFailed : kDone;
  }

 private:
  void choose_subjects() {
    const auto device = device_from(c_.device);
    const bool baseline = std::ranges::find(kBaselines, c_.model) != std::end(kBaselines);
    for (const char* name : kBaselines) {
      if (!c_.model.empty() && c_.model != name) continue;
      if (!device || *device == Device::cpu) add_baseline(name, ".cpp");
      if (!device || *device == Device::sim) add_baseline(name, ".cu");
    }
    const bool example = add_examples(device);
    std::vector<std::string> models;
    if (c_.model.empty()) {
      for (const char* name : kHouseModels) {
        if (fs::is_directory(submissions_ / name)) models.emplace_back(name);
      }
    } else if (!baseline && !example) {
      models.push_back(c_.model);
    }
    if (!models.empty()) {
      for (const Submission& s : select_submissions(submissions_, {spec_}, models, device)) add(s);
    }
    if (subjects_.empty())
      throw Error(fmt::format("nothing of {} to run{}", c_.model.empty() ? "the house" : c_.model,
                              device ? fmt::format(" on the device {}", c_.device) : ""));
  }

  void add_baseline(const std::string& name, const std::string& extension) {
    if (!fs::exists(cells::Baselines::path(spec_, name + extension))) return;
    const Device device = extension == ".cu" ? Device::sim : Device::cpu;
    if (device == Device::sim && !harness_.builder->cuda_toolkit()) return lacks_toolkit(name);
    tell(fmt::format("building {}{}\n", name, extension));
    add(name, device, baselines_.library(spec_, name + extension));
  }

  // Adds examples that are right but slow, which submissions' own tests must accept.
  bool add_examples(std::optional<Device> device) {
    if (device && *device != Device::cpu) return false;
    bool any = false;
    for (const cells::Example& example : cells::load_examples(spec_)) {
      if (example.kind != cells::Example::Kind::slow) continue;
      if (!c_.model.empty() && c_.model != example.name) continue;
      tell(fmt::format("building {}\n", example.name));
      const BuildResult built = runner_.build_example(spec_, example);
      if (built.record.verdict != Verdict::ok)
        throw Error(fmt::format("{} does not build: {}", example.name, built.record.log));
      add(example.name, Device::cpu, built.library);
      any = true;
    }
    return any;
  }

  void add(const Submission& submission) {
    if (submission.device() == Device::sim && !harness_.builder->cuda_toolkit())
      return lacks_toolkit(submission.model);
    tell(fmt::format("building {} ({})\n", submission.model, to_string(submission.device())));
    const BuildResult built = runner_.build(spec_, submission);
    if (built.record.verdict != Verdict::ok)
      throw Error(fmt::format("{} does not build: {}", submission.model, built.record.log));
    add(submission.attempt.empty() ? submission.model : submission.model + "/" + submission.attempt,
        submission.device(), built.library);
  }

  void add(const std::string& model, Device device, const fs::path& library) {
    Subject& s = subjects_.emplace_back(Subject{model, device, spec_for(device, spec_)});
    const processes::WorkerSettings settings =
        device == Device::sim ? cells::simulator_settings(world_, options_, s.spec, library)
                              : cells::worker_settings(world_, options_, s.spec, library);
    s.fuzzer = std::make_unique<cases::Fuzzer>(cases::Bench{
        world_, *world_.challenge(s.spec.name).challenge, settings, options_.seed, s.account});
  }

  void lacks_toolkit(const std::string& model) {
    tell(fmt::format("{} (sim): {}\n", model, kNoToolkit));
  }

  // The subject with the least time so far, among those below kMostFindings.
  Subject* next() {
    Subject* least = nullptr;
    for (Subject& s : subjects_) {
      if (s.found.size() >= kMostFindings) continue;
      if (least == nullptr || s.spent < least->spent) least = &s;
    }
    return least;
  }

  std::string status(const Subject& s) const {
    std::uint64_t runs = 0;
    std::size_t found = 0;
    for (const Subject& each : subjects_) {
      runs += each.runs;
      found += each.found.size();
    }
    return fmt::format("{} runs, {} findings; {}", runs, found, s.name());
  }

  static void print_facts(const CaseResult& result) {
    fmt::print("  shape     {}\n", result.shape);
    if (!result.detail.empty()) fmt::print("  detail    {}\n", printable(result.detail, 3));
    if (result.error)
      fmt::print("  error     {:.4g}, bound {:.4g}\n", *result.error, result.bound.value_or(0));
  }

  void take(Subject& s, const cases::Failure& failure) {
    const bool known = std::ranges::any_of(
        s.found, [&](const cases::Failure& f) { return f.draw == failure.draw; });
    if (known) return;
    s.found.push_back(failure);
    fmt::print("{}: {} ({})\n", s.name(), code(failure.result.verdict),
               description(failure.result.verdict));
    print_facts(failure.result);
    fmt::print("  draw      {}\n", failure.draw.dump());
    fmt::print("  replay    assay fuzz {} --model {} --device {} --draw {} --seed {}\n", spec_.name,
               quoted(s.model.substr(0, s.model.find('/'))), to_string(s.device),
               quoted(failure.draw.dump()), failure.result.seed);
    std::fflush(stdout);
  }

  void print_summary() const {
    TextTable table({"answer", "draws", "runs", "refused allocations", "not tested", "findings"});
    for (const Subject& s : subjects_) {
      table.add({s.name(), std::to_string(s.draws), std::to_string(s.runs),
                 std::to_string(s.refusals), std::to_string(s.not_tested),
                 std::to_string(s.found.size())});
    }
    fmt::print("{}seed {}\n", table.str(), options_.seed);
  }

  const FuzzCommand& c_;
  ChallengeSpec spec_;
  nlohmann::json draw_;
  Harness harness_;
  cases::World world_;
  cells::RunOptions options_;
  fs::path submissions_;
  cases::SharedAccount account_;
  cells::Baselines baselines_{world_, options_, account_};
  cells::CellRunner runner_{world_, options_};
  std::deque<Subject> subjects_;
};

int execute(const Context& context, const FuzzCommand& c) {
  Fuzzing fuzzing(context, c);
  return c.draw.empty() ? fuzzing.search() : fuzzing.replay();
}

}  // namespace

void add_fuzz(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("fuzz", "Run an answer on random inputs until something fails");
  command->footer(
      R"(
Draws legal inputs from the space that the challenge's spec.json declares, runs them and
judges the outputs as in any grading. What succeeds runs again with one allocation after
the other refused: the call must do without, or return ASSAY_ENOMEM and leave no trace.
A failure is shrunk to the simplest inputs that fail alike, and printed with the command
that replays it. Without --model the challenge's own implementations are searched: naive,
par, the examples that are only slow, and the shipped right answers, in C++ and, where
there is nvcc, in CUDA. Without --seconds it goes on until Ctrl-C. Nothing is written but
the cache.

Exit status: 0 nothing found, 1 something was, 2 wrong usage or a fault of the harness;
130, 143 or 129 stopped by SIGINT, SIGTERM or SIGHUP: what was found is printed before.

Examples:
  assay fuzz CHALLENGE --seconds 60                 the challenge's own implementations
  assay fuzz CHALLENGE --seconds 60 --model MODEL   one model's answers
  assay fuzz CHALLENGE --model par --device cpu     one of the house, until Ctrl-C
  assay fuzz CHALLENGE --model MODEL --draw '{"rows": 2}' --seed 7    a finding again
)");
  auto c = std::make_shared<FuzzCommand>();
  command->add_option("CHALLENGE", c->challenge, "see assay list")->required();
  command->add_option("--seconds", c->seconds, "how long to search (default: until Ctrl-C)")
      ->check(CLI::PositiveNumber);
  command->add_option("--model,-m", c->model,
                      "only this model's answers; naive, par and slow_* are the challenge's own");
  add_device_option(*command, c->device);
  command->add_option("--draw", c->draw,
                      "run this draw alone: JSON with a value for each axis, as it was printed");
  command->add_option("--seed", c->seed,
                      "of the draws; with --draw, of its inputs (default: a random one)");
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  add_harness_options(*command, c->harness);
  command->callback(
      [&action, c] { action = [c](const Context& context) { return execute(context, *c); }; });
}

}  // namespace assay::cli
