// assay gpu: runs CUDA answers on this machine's real GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "cases/correctness.h"
#include "cases/on_gpu.h"
#include "cases/timing.h"
#include "cells/baselines.h"
#include "cells/examples.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "cli/real_gpu.h"
#include "grade/gpu.h"
#include "measure/statistics.h"
#include "numerics/jobs.h"
#include "records/lookup.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t kMostJobs = 64;

struct GpuCommand {
  HarnessOptions harness;
  std::vector<std::string> challenges, models;
  std::string submissions, sizes = "full", gpu, only, json;
  GpuChoice choice;
  std::optional<std::uint64_t> seed;
  bool quick = false, few = false, no_time = false, no_check = false, model = false;
  std::size_t jobs = 0;
};

// One implementation of a challenge, and its results.
struct Subject {
  std::string name;
  const Submission* answer = nullptr;  // null: par
  fs::path library{};
  std::string not_built{};  // why there is no library
  std::vector<CaseResult> checked{}, timed{};
};

struct Tested {
  explicit Tested(ChallengeSpec put) : spec(std::move(put)) { subjects.push_back({.name = "par"}); }

  ChallengeSpec spec;
  std::vector<Subject> subjects;  // par is the first
  fs::path naive;
  std::vector<std::string> faults;  // timed cases in which naive or par failed
};

double floor_of(const LeastWork& least, const Gpu& sheet, const GpuMachine& machine) {
  return std::max(least.bytes / machine.copy_bytes_per_s, least.flops / sheet.fastest_flops());
}

class OnGpu {
 public:
  OnGpu(const Context& context, const GpuCommand& c)
      : c_(c),
        harness_(set_up(context, c.harness)),
        place_(place_on(Device::cuda, harness_, c.choice, c.gpu)),
        world_(place_.world),
        machine_(*place_.machine),
        sheet_(gpu_named(harness_.gpu)),
        options_{harness_.tier.tier, c.seed.value_or(random_seed()),
                 cases::CaseFilter{.quick = c.quick, .only = c.only}, simulator_threads(1),
                 place_.gpu},
        baselines_(world_, options_, account_) {
    const cases::Sizes sizes = c.sizes == "sim" ? cases::Sizes::simulated : cases::Sizes::full;
    for (const ChallengeSpec& whole : load_specs(context, c.challenges))
      tested_.emplace_back(cases::spec_on_gpu(whole, sizes));
    require_case();
    if (c.models.empty()) return;
    std::vector<ChallengeSpec> specs;
    for (const Tested& t : tested_) specs.push_back(t.spec);
    answers_ =
        select_submissions(c.submissions.empty() ? context.submissions() : fs::path(c.submissions),
                           specs, c.models, Device::cuda);
  }

  int run() {
    {
      Progress progress(0);
      build(progress);
      if (!c_.no_check) check(progress);
      if (!c_.no_time) time(progress);
    }
    // First: what is printed may go to a program that reads only the beginning.
    if (!c_.json.empty()) write_file_atomically(c_.json, document().dump(1) + "\n");
    fmt::print("{}", text());
    return all_right() ? kDone : kCheckFailed;
  }

 private:
  void require_case() const {
    if (c_.only.empty()) return;
    std::vector<std::string> known;
    for (const Tested& t : tested_)
      for (const CaseSpec& spec : t.spec.cases) known.push_back(spec.name);
    if (std::ranges::find(known, c_.only) == known.end())
      throw Error(unknown_name("case", c_.only, known));
  }

  void side_by_side(const std::vector<std::function<void()>>& work) const {
    for_each_job(work.size(), c_.jobs, [&](std::size_t i) { work[i](); });
  }

  void build(Progress& progress) {
    for (const Submission& answer : answers_) {
      for (Tested& t : tested_) {
        const std::string attempt = answer.attempt.empty() ? "" : "/" + answer.attempt;
        if (t.spec.name == answer.challenge)
          t.subjects.push_back({.name = answer.model + attempt, .answer = &answer});
      }
    }
    std::vector<std::function<void()>> work;
    for (Tested& t : tested_) {
      work.emplace_back([&] {
        const auto activity = progress.begin("building naive of " + t.spec.name);
        t.naive = baselines_.library(t.spec, "naive.cu");
      });
      work.emplace_back([&] {
        const auto activity = progress.begin("building par of " + t.spec.name);
        t.subjects.front().library = baselines_.library(t.spec, "par.cu");
      });
      for (std::size_t i = 1; i < t.subjects.size(); ++i) {
        work.emplace_back([&, i] {
          const auto activity =
              progress.begin(fmt::format("building {} of {}", t.subjects[i].name, t.spec.name));
          build_answer(t, t.subjects[i]);
        });
      }
    }
    side_by_side(work);
  }

  void build_answer(const Tested& t, Subject& subject) {
    const BuildResult built =
        world_.compile({.sources = subject.answer->sources,
                        .headers = {cells::challenge_file(t.spec, "abi.h")},
                        .time_limit_s = cells::build_limit(t.spec, Language::cuda),
                        .language = Language::cuda,
                        .machine_code = true});
    subject.library = built.library;
    if (built.record.verdict != Verdict::ok) {
      subject.not_built =
          fmt::format("{}: {}", description(built.record.verdict), built.record.log);
    }
  }

  cases::Bench bench(const ChallengeSpec& spec, const fs::path& library,
                     cases::TimeAccount& account) {
    return {world_, challenge_of(spec), cells::gpu_settings(world_, options_, spec, library),
            options_.seed, account};
  }

  void check(Progress& progress) {
    std::vector<std::function<void()>> work;
    for (Tested& t : tested_) {
      for (Subject& subject : t.subjects) {
        if (subject.library.empty()) continue;
        work.emplace_back([&] {
          const auto activity =
              progress.begin(fmt::format("checking {} of {}", subject.name, t.spec.name));
          cases::TimeAccount account;
          subject.checked =
              cases::check_on_gpu(bench(t.spec, subject.library, account), options_.filter);
        });
      }
    }
    side_by_side(work);
  }

  void time(Progress& progress) {
    for (Tested& t : tested_) {
      std::vector<Subject*> ready;
      std::vector<fs::path> libraries;
      for (Subject& subject : t.subjects) {
        if (subject.library.empty()) continue;
        ready.push_back(&subject);
        libraries.push_back(subject.library);
      }
      for (const CaseSpec& c : t.spec.cases) {
        if (c.group != CaseGroup::timed || c.exclusive || !options_.filter.takes(c)) continue;
        const auto activity = progress.begin(fmt::format("timing {} of {}", c.name, t.spec.name));
        time_case(t, c, ready, libraries);
      }
    }
  }

  void time_case(Tested& t, const CaseSpec& c, const std::vector<Subject*>& ready,
                 const std::vector<fs::path>& libraries) {
    cases::TimeAccount account;
    try {
      std::vector<CaseResult> results =
          cases::run_timed(bench(t.spec, {}, account), c, {t.naive, ready.front()->library},
                           libraries, c_.quick || c_.few);
      for (std::size_t i = 0; i < ready.size(); ++i) {
        ready[i]->timed.push_back(std::move(results[i]));
      }
    } catch (const Error& fault) {
      t.faults.push_back(fmt::format("{}: {}", c.name, fault.what()));
    }
  }

  static bool passed(const CaseResult& r) {
    return r.verdict == Verdict::ok || r.verdict == Verdict::unsupported;
  }

  bool all_right() const {
    return std::ranges::all_of(tested_, [](const Tested& t) {
      return t.faults.empty() && std::ranges::all_of(t.subjects, [](const Subject& s) {
               return s.not_built.empty() && std::ranges::all_of(s.checked, passed) &&
                      std::ranges::all_of(s.timed, passed);
             });
    });
  }

  static std::vector<double> seconds_of(const CaseResult& r,
                                        std::optional<double> TimingSample::*what) {
    std::vector<double> seconds;
    for (const TimingSample& s : r.samples) {
      if (s.*what) seconds.push_back(*(s.*what));
    }
    return seconds;
  }

  std::optional<double> modelled(const Tested& t, const char* file, const std::string& name) {
    if (!c_.model) return std::nullopt;
    const auto work = baselines_.work(t.spec, file, name);
    return work ? std::optional(modelled_time(*work, sheet_).total()) : std::nullopt;
  }

  static std::string failures_of(const Subject& subject) {
    std::string text;
    for (const auto* results : {&subject.checked, &subject.timed}) {
      for (const CaseResult& r : *results) {
        if (passed(r)) continue;
        text +=
            fmt::format("    {} {}: {}\n", code(r.verdict), r.name, printable(r.detail, 3, 600));
      }
    }
    return text;
  }

  std::string text() {
    std::string text = fmt::format(
        "{} (driver for CUDA {}, {} multiprocessors; isolation {}), copies at {:.2f} TB/s; floor "
        "by that and by the data sheet of {}\n",
        machine_.name, machine_.driver, machine_.multiprocessors, machine_.isolation,
        machine_.copy_bytes_per_s * 1e-12, sheet_.name);
    for (Tested& t : tested_) text += text_of(t);
    return text;
  }

  std::string text_of(Tested& t) {
    std::string text = fmt::format("\n{}\n", t.spec.name);
    for (const Subject& subject : t.subjects) {
      if (!subject.not_built.empty()) {
        text += fmt::format("  {}: {}\n", subject.name, printable(subject.not_built, 3, 600));
        continue;
      }
      const auto right = std::ranges::count_if(subject.checked, passed);
      if (!subject.checked.empty())
        text += fmt::format("  {}: {} of {} cases are right\n", subject.name, right,
                            subject.checked.size());
      text += failures_of(subject);
    }
    for (const std::string& fault : t.faults)
      text += fmt::format("  not timed: {}\n", printable(fault, 3, 600));
    const std::vector<CaseResult>& cases = t.subjects.front().timed;
    if (cases.empty()) return text;
    text += fmt::format("  {:28} {:>10} {:>10} {:>10} {:>7}{}\n", "microseconds", "naive", "par",
                        "floor", "share", c_.model ? "   modelled" : "");
    for (std::size_t i = 0; i < cases.size(); ++i) text += line_of(t, i);
    return text;
  }

  std::string line_of(Tested& t, std::size_t i) {
    const CaseResult& r = t.subjects.front().timed[i];
    if (r.samples.empty()) return fmt::format("  {:28} not timed: {}\n", r.name, code(r.verdict));
    const double par = median(seconds_of(r, &TimingSample::par));
    const std::vector<double> naive = seconds_of(r, &TimingSample::naive);
    const auto floor = floor_seconds_of(t, r.name);
    std::string line = fmt::format("  {:28} {:>10} {:>10.2f} {:>10} {:>7}", r.name,
                                   naive.empty() ? "-" : fmt::format("{:.1f}", 1e6 * median(naive)),
                                   1e6 * par, floor ? fmt::format("{:.2f}", 1e6 * *floor) : "-",
                                   floor ? fmt::format("{:.2f}", *floor / par) : "-");
    if (const auto time = modelled(t, "par.cu", r.name))
      line += fmt::format(" {:>10.2f}", 1e6 * *time);
    line += '\n';
    for (std::size_t s = 1; s < t.subjects.size(); ++s) {
      if (i >= t.subjects[s].timed.size() || t.subjects[s].timed[i].samples.empty()) continue;
      const std::vector<double> own = seconds_of(t.subjects[s].timed[i], &TimingSample::submission);
      line +=
          fmt::format("    {:26} {:>10} {:>10.2f}\n", t.subjects[s].name, "", 1e6 * median(own));
    }
    return line;
  }

  std::optional<double> floor_seconds_of(const Tested& t, const std::string& name) const {
    const CaseSpec& c = *find_case(t.spec, name);
    const Challenge& challenge = challenge_of(t.spec);
    const auto least = challenge.least_work(c, challenge.plan(c));
    return least ? std::optional(floor_of(*least, sheet_, machine_)) : std::nullopt;
  }

  static ordered_json figures(const std::vector<double>& seconds) {
    if (seconds.empty()) return nullptr;
    return {{"median_s", median(seconds)},
            {"low_s", quantile(seconds, 0.25)},
            {"high_s", quantile(seconds, 0.75)},
            {"repetitions", seconds.size()}};
  }

  static ordered_json cases_of(const std::vector<CaseResult>& results) {
    ordered_json cases = ordered_json::array();
    for (const CaseResult& r : results) {
      ordered_json one{{"case", r.name}, {"verdict", code(r.verdict)}};
      if (!r.detail.empty()) one["detail"] = printable(r.detail, 3, 600);
      cases.push_back(std::move(one));
    }
    return cases;
  }

  ordered_json document() {
    ordered_json all{{"gpu",
                      {{"name", machine_.name},
                       {"driver", machine_.driver},
                       {"multiprocessors", machine_.multiprocessors},
                       {"memory_bytes", machine_.memory_bytes},
                       {"ecc", machine_.ecc},
                       {"copy_bytes_per_s", machine_.copy_bytes_per_s},
                       {"isolation", machine_.isolation},
                       {"data_sheet", sheet_.name}}},
                     {"sizes", c_.sizes},
                     {"seed", options_.seed},
                     {"challenges", ordered_json::array()}};
    for (Tested& t : tested_) {
      ordered_json subjects = ordered_json::array(), timed = ordered_json::array();
      for (const Subject& s : t.subjects) {
        ordered_json one{{"name", s.name}, {"checked", cases_of(s.checked)}};
        if (!s.not_built.empty()) one["not_built"] = printable(s.not_built, 3, 600);
        subjects.push_back(std::move(one));
      }
      for (std::size_t i = 0; i < t.subjects.front().timed.size(); ++i)
        timed.push_back(timed_case(t, i));
      all["challenges"].push_back({{"challenge", t.spec.name},
                                   {"subjects", subjects},
                                   {"timed", timed},
                                   {"faults", t.faults}});
    }
    return all;
  }

  ordered_json timed_case(Tested& t, std::size_t i) {
    const CaseResult& first = t.subjects.front().timed[i];
    ordered_json one{{"case", first.name}};
    if (const auto floor = floor_seconds_of(t, first.name)) one["floor_s"] = *floor;
    one["naive"] = figures(seconds_of(first, &TimingSample::naive));
    one["par"] = figures(seconds_of(first, &TimingSample::par));
    for (const auto& [name, file] : {std::pair{"naive", "naive.cu"}, std::pair{"par", "par.cu"}}) {
      if (const auto time = modelled(t, file, first.name)) one[name]["modelled_s"] = *time;
    }
    for (const Subject& s : t.subjects) {
      if (i >= s.timed.size()) continue;
      ordered_json own = figures(seconds_of(s.timed[i], &TimingSample::submission));
      own["verdict"] = code(s.timed[i].verdict);
      one["answers"][s.name] = std::move(own);
    }
    return one;
  }

  const GpuCommand& c_;
  Harness harness_;
  const Place place_;
  const cases::World& world_;
  const GpuMachine& machine_;
  const Gpu& sheet_;
  cells::RunOptions options_;
  cases::SharedAccount account_;
  cells::Baselines baselines_;
  std::vector<Tested> tested_;
  std::vector<Submission> answers_;
};

}  // namespace

void add_gpu(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("gpu", "Answers in CUDA on the real GPU of this machine");
  command->footer(
      R"(
Par (kernels/) and the answers of the models that are named are built for this machine's GPU. Their
cases are checked there against the same references as everywhere, and timed cases are measured
beside naive and par: each implementation in a process of its own, on fresh inputs, with a cold L2
cache, by events around what it put on the GPU, every output checked. Host code stays in its
sandbox. Nothing is stored and no grade is given: that does `assay run --device cuda`. A real GPU
does not show races and uninitialised reads: the simulator finds them.

  naive, par       the median of the repetitions, in microseconds of the GPU's time
  floor            what the problem needs at least: its bytes at the measured speed of copies, its
                   operations at the fastest rate of the data sheet
  share            floor / par
  modelled         par's time by the model of docs/simulator.md, with --modelled

Exit status: 0 all is right; 1 something is wrong in an answer or in par; 2 wrong usage, no GPU, or
a fault of the harness; 130, 143 or 129 stopped by a signal.

Examples:
  assay gpu                                    par of every challenge
  assay gpu -c CHALLENGE --model tuned --json gpu.json
  assay gpu --sizes sim --modelled             beside the simulator's model
)");
  auto c = std::make_shared<GpuCommand>();
  command->add_option("-c,--challenge", c->challenges, "only this challenge; repeatable");
  command->add_option("-m,--model", c->models, "also the answers of this model; repeatable");
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->add_option("--case", c->only, "only this case");
  command
      ->add_option("--sizes", c->sizes,
                   "of timed cases: full, as on the CPU, or sim, as on the simulator")
      ->check(CLI::IsMember({"full", "sim"}))
      ->capture_default_str();
  command->add_flag("--modelled", c->model, "also the simulator's model of each timed case");
  command->add_option("--gpu", c->gpu, "the data sheet for floor and model (default: by its name)")
      ->check(CLI::IsMember(gpu_names()));
  add_gpu_choice(*command, c->choice);
  command->add_option("--json", c->json, "write everything to this file")->type_name("FILE");
  command->add_option("--seed", c->seed, "of the inputs (default: a random one)");
  command->add_option("-j,--jobs", c->jobs, "checks side by side")
      ->check(CLI::Range(std::size_t{1}, kMostJobs))
      ->default_val(4);
  command->add_flag("--quick", c->quick, "fewer cases and repetitions");
  command->add_flag("--few", c->few, "three repetitions of each timed case");
  command->add_flag("--no-check", c->no_check, "only time");
  command->add_flag("--no-time", c->no_time, "only check");
  add_harness_options(*command, c->harness);
  command->callback(
      [&action, c] { action = [c](const Context& context) { return OnGpu(context, *c).run(); }; });
}

}  // namespace assay::cli
