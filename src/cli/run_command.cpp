// assay run: runs the full benchmark or any part of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "assay/error.h"
#include "assay/parallel.h"
#include "build/nvcc.h"
#include "cli/account.h"
#include "cli/boards.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/real_gpu.h"
#include "cli/run_cells.h"
#include "grade/currency.h"
#include "measure/machine.h"
#include "records/lookup.h"
#include "report/terminal.h"
#include "session/runner_steps.h"
#include "session/shard.h"
#include "util/clock.h"
#include "util/cpu_set.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

struct RunCommand {
  HarnessOptions harness;
  std::string submissions, results, corpus, device = "auto", gpu = kDefaultGpu;
  GpuChoice gpus;
  std::string shard, costs;
  std::vector<std::string> shard_cells;  // of a resumed run: the cells assigned to its shard
  std::vector<std::string> models, challenges;
  std::size_t jobs = static_cast<std::size_t>(available_cores());
  std::optional<std::uint64_t> seed;
  bool quick = false, resume = false, json = false, stale = false, gpu_given = false;
  bool go_on = false, sole_writer = false;
  std::vector<std::string> given;  // the options that the user named

  bool on_real_gpu() const { return device == to_string(Device::cuda); }
};

// The options --resume needs to continue the same work.
nlohmann::json remembered(const RunCommand& c) {
  return {{"submissions", c.submissions},
          {"models", c.models},
          {"challenges", c.challenges},
          {"device", c.device},
          {"march", c.harness.target},
          {"gpu", c.gpu},
          {"driver", c.gpus.driver},
          {"management", c.gpus.management},
          {"gpus", c.gpus.gpus},
          {"quick", c.quick},
          {"stale", c.stale},
          {"corpus", c.corpus},
          {"shard", c.shard},
          {"shard_cells", c.shard_cells}};
}

// What is given beside --resume must be what the run began with. A GPU may be another: the one
// that it began on may be out of order.
void require_same(const store::RunStart& begun, const RunCommand& c) {
  const std::pair<const char*, const char*> kOptions[] = {{"submissions", "--submissions"},
                                                          {"models", "--model"},
                                                          {"challenges", "--challenge"},
                                                          {"device", "--device"},
                                                          {"march", "--march"},
                                                          {"gpu", "--gpu"},
                                                          {"quick", "--quick"},
                                                          {"stale", "--stale"},
                                                          {"shard", "--shard"},
                                                          {"corpus", "--corpus"}};
  const nlohmann::json asked = remembered(c);
  const auto given = [&](const char* option) {
    return std::ranges::find(c.given, option) != c.given.end();
  };
  std::string others;
  for (const auto& [key, option] : kOptions) {
    if (given(option) && begun.options.contains(key) && begun.options.at(key) != asked.at(key))
      others += fmt::format("{}{}", others.empty() ? "" : ", ", option);
  }
  if (c.seed && *c.seed != begun.seed) others += others.empty() ? "--seed" : ", --seed";
  if (!others.empty()) {
    throw Error(fmt::format(
        "the run was begun with another {}, and goes on as it was begun: leave that out, or begin "
        "another run without --resume",
        others));
  }
}

void recall(const nlohmann::json& options, RunCommand& c) {
  c.submissions = options.value("submissions", c.submissions);
  c.models = options.value("models", c.models);
  c.challenges = options.value("challenges", c.challenges);
  c.device = options.value("device", c.device);
  c.harness.target = options.value("march", c.harness.target);
  c.gpu = options.value("gpu", c.gpu);
  const auto recall_unless_given = [&](const char* key, std::string& value) {
    if (std::ranges::find(c.given, std::string("--") + key) == c.given.end())
      value = options.value(key, value);
  };
  recall_unless_given("driver", c.gpus.driver);
  recall_unless_given("management", c.gpus.management);
  recall_unless_given("gpus", c.gpus.gpus);
  c.gpu_given = true;
  c.quick = options.value("quick", c.quick);
  c.stale = options.value("stale", c.stale);
  c.corpus = options.value("corpus", c.corpus);
  c.shard = options.value("shard", c.shard);
  c.shard_cells = options.value("shard_cells", c.shard_cells);
}

bool is_recorded(const store::RunRecord& run, const CellKey& key, const std::string& spec_hash,
                 const std::string& source_hash) {
  const auto found = run.cells.find(key);
  if (found == run.cells.end()) return false;
  const store::RunCell& cell = found->second;
  return is_of_today(cell.revision, key.device) && cell.spec_hash == spec_hash &&
         cell.source_hash == source_hash && cell.verdict != Verdict::harness_error;
}

// Reduces the submissions to those whose rows on the board are not current; for a resumed run, also
// keeps those already measured in it. Returns how many such rows cannot be measured here.
std::size_t choose_stale(const RunCommand& c, const store::ResultStore& store,
                         const std::vector<ChallengeSpec>& specs,
                         std::vector<Submission>& submissions) {
  std::set<CellKey> stale;
  std::size_t newer = 0, absent = 0, without_compiler = 0, on_real_gpu = 0;
  const bool has_nvcc = find_cuda_toolkit().has_value();
  std::set<CellKey> answered;
  for (const Submission& s : submissions) answered.insert(key_of(s));
  for (const auto& [key, row] : store.board().entries) {
    const auto spec = std::ranges::find(specs, key.challenge, &ChallengeSpec::name);
    if (!c.models.empty() && std::ranges::find(c.models, key.model) == c.models.end()) continue;
    if (c.device != "auto" && c.device != to_string(key.device)) continue;
    if (spec == specs.end()) continue;
    const std::string on =
        key.device == Device::cuda ? gpu_of(store.board(), key.device) : gpu_named(c.gpu).name;
    if (!is_stale(row, yardstick_of_today(*spec, on))) continue;
    if (is_of_newer_assay(row)) {
      ++newer;
    } else if (key.device == Device::cuda && !c.on_real_gpu()) {
      ++on_real_gpu;
    } else if (!answered.contains(key)) {
      ++absent;
    } else if (key.device == Device::sim && !has_nvcc) {
      ++without_compiler;  // it would be 'not run' here, replacing an older score
    } else {
      stale.insert(key);
    }
  }
  if (newer > 0) {
    tell(fmt::format("{} results are of a newer assay, which alone can measure them again\n",
                     newer));
  }
  if (absent > 0) {
    tell(
        fmt::format("{} stale results have no answer among the submissions here: they stay as they "
                    "are; `assay remove` takes them off the board\n",
                    absent));
  }
  if (without_compiler > 0) {
    tell(
        fmt::format("{} stale results of CUDA answers stay as they are: no CUDA Toolkit (nvcc) "
                    "found\n",
                    without_compiler));
  }
  if (on_real_gpu > 0) {
    tell(fmt::format(
        "{} stale results of a real GPU stay as they are: --device cuda measures them again\n",
        on_real_gpu));
  }
  std::erase_if(submissions, [&](const Submission& s) {
    const CellKey key = key_of(s);
    return !stale.contains(key) && !(c.resume && store.run().cells.contains(key));
  });
  return newer + absent + without_compiler + on_real_gpu;
}

// The folder from which all shards read the cost of each submission. Throws Error if a shard would
// write to it.
std::filesystem::path costs_of_shards(const Context& context, const RunCommand& c) {
  const auto folder = [&](const std::string& named) {
    return std::filesystem::weakly_canonical(named.empty() ? context.results()
                                                           : std::filesystem::path(named));
  };
  std::filesystem::path costs = folder(c.costs);
  if (costs == folder(c.results)) {
    throw Error(
        fmt::format("{} is where --shard reads what each submission costs, so no shard may write "
                    "there: name another folder with --results, and join all of them with `assay "
                    "merge`",
                    costs.string()));
  }
  return costs;
}

// Keeps only the submissions of the shard.
void keep_shard(const Context& context, RunCommand& c, std::vector<Submission>& submissions) {
  if (c.resume) {  // costs may have changed since the run began
    std::erase_if(submissions, [&](const Submission& s) {
      return std::ranges::find(c.shard_cells, to_string(key_of(s))) == c.shard_cells.end();
    });
    return;
  }
  const session::Shard shard = session::shard_from(c.shard);
  const Scoreboard board = store::read_board(costs_of_shards(context, c));
  submissions = session::submissions_of(shard, std::move(submissions), [&](const Submission& s) {
    return session::expected_seconds(board, s, 0);
  });
  for (const Submission& s : submissions) c.shard_cells.push_back(to_string(key_of(s)));
}

// Whether an unfinished run already measured these sources against this spec, even if it was killed
// before recording it.
bool already_done(store::ResultStore& store, const ChallengeSpec& spec, const Submission& s) {
  const CellKey key = key_of(s);
  const std::string hash = source_hash(s);
  return is_recorded(store.run(), key, spec.hash, hash) ||
         (store.adopt(key) && is_recorded(store.run(), key, spec.hash, hash));
}

// Prints the results of cases on the user's own files.
void print_external(const std::vector<BoardEntry>& entries,
                    const std::vector<ChallengeSpec>& specs) {
  for (const BoardEntry& e : entries) {
    for (const CaseSpec& spec : spec_named(specs, e.cell.key.challenge).cases) {
      const CaseResult* result = find_case(e.cell, spec.name);
      if (spec.external.empty() || result == nullptr) continue;
      fmt::print("{} {} {}: {}", e.cell.key.model, e.cell.key.challenge, spec.name,
                 code(result->verdict));
      for (const Metric& m : result->metrics) fmt::print("  {} = {:.4g}", m.name, m.value);
      fmt::print("{}{}\n", result->detail.empty() ? "" : "  ", result->detail);
    }
  }
}

void print_summary(const RunCommand& c, const store::ResultStore& store,
                   const std::vector<BoardEntry>& entries,
                   const std::vector<ChallengeSpec>& specs) {
  if (c.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const BoardEntry& e : entries) {
      rows.push_back({{"model", e.cell.key.model},
                      {"challenge", e.cell.key.challenge},
                      {"attempt", e.cell.key.attempt},
                      {"device", to_string(e.cell.key.device)},
                      {"verdict", code(e.score.verdict)},
                      {"total", e.score.total ? nlohmann::ordered_json(*e.score.total) : nullptr},
                      {"letter", e.score.letter}});
    }
    const nlohmann::ordered_json document{{"run", store.run_path().string()}, {"cells", rows}};
    fmt::print("{}\n", document.dump(1));
    return;
  }
  fmt::print("\n{}", summary(entries, specs));
  print_external(entries, specs);
  print_set_aside(store);
  fmt::print("\nThis run: {}\nThe board: {}\n{}", store.run_path().string(),
             store.board_path().string(),
             where_the_site_is(store.board_path().parent_path(), c.results));
}

// Prints an empty result if there is nothing to measure.
void print_nothing(const RunCommand& c, const std::string& why) {
  const nlohmann::ordered_json none{{"run", nullptr}, {"cells", nlohmann::ordered_json::array()}};
  fmt::print("{}\n", c.json ? none.dump(1) : why);
}

cells::RunOptions run_options(const RunCommand& c, const Harness& harness,
                              const std::vector<Submission>& submissions) {
  const auto simulated =
      static_cast<std::size_t>(std::ranges::count(submissions, Device::sim, &Submission::device));
  return {.tier = harness.tier.tier,
          .seed = c.seed.value_or(random_seed()),
          .filter = {.quick = c.quick},
          .simulator_threads = simulator_threads(std::min(c.jobs, simulated))};
}

std::vector<RunnerAt> runners_at(std::vector<Place> places, cells::RunOptions options) {
  std::vector<RunnerAt> runners;
  for (Place& place : places) {
    options.gpu = place.gpu;
    runners.push_back({std::make_unique<cells::CellRunner>(std::move(place.world), options),
                       std::move(place.machine)});
  }
  return runners;
}

// The command that resumes this run.
std::string resuming(const Context& context, const RunCommand& c) {
  std::string command = "assay";
  if (!context.named_root.empty()) command += " --root " + quoted(context.named_root);
  command += " run --resume";
  if (!c.results.empty()) command += " --results " + quoted(c.results);
  if (!c.harness.cache.empty()) command += " --cache " + quoted(c.harness.cache);
  if (c.sole_writer) command += " --sole-writer";
  if (c.harness.unsafe) command += " --unsafe";
  return command;
}

// Describes what a run that ended early has stored.
std::string what_is_kept(const Context& context, const RunCommand& c,
                         const store::ResultStore& store, std::size_t submissions) {
  if (!store.is_running()) return "nothing was measured yet";
  const auto stored = std::ranges::count_if(store.run().cells, [](const auto& cell) {
    return cell.second.verdict != Verdict::harness_error;
  });
  return fmt::format("{} of {} results are stored in {}; continue with\n  {}", stored, submissions,
                     store.board_path().parent_path().string(), resuming(context, c));
}

int measure(const Context& context, RunCommand& c, store::ResultStore& store,
            std::size_t& submissions_of_run) {
  const double start = steady_seconds();
  if (c.go_on) {
    using enum store::ResultStore::LastRun;
    const auto last = store.last_run();
    if (last == finished) {
      print_nothing(c, "the run in this folder is finished: nothing to measure");
      return kDone;
    }
    c.resume = last == unfinished;
  }
  if (c.resume) {
    const store::RunStart& unfinished = store.resume().start;
    require_same(unfinished, c);
    recall(unfinished.options, c);
    c.seed = unfinished.seed;
  }
  const std::vector<ChallengeSpec> specs =
      load_specs(context, c.challenges, external_files(c.corpus));
  std::vector<Submission> submissions = select_submissions(
      c.submissions.empty() ? context.submissions() : std::filesystem::path(c.submissions), specs,
      c.models, device_from(c.device));
  if (c.stale) {
    if (!c.gpu_given) c.gpu = data_sheet_of(store.board());
    const std::size_t left = choose_stale(c, store, specs, submissions);
    if (submissions.empty() && !c.resume) {
      print_nothing(c, fmt::format("{} is stale: nothing to measure again",
                                   left > 0 ? "no other result" : "no such result on the board"));
      return kDone;
    }
  }
  if (!c.shard.empty()) {
    const bool some = !submissions.empty();
    keep_shard(context, c, submissions);
    if (some && submissions.empty() && !c.resume) {
      print_nothing(c, fmt::format("shard {} has no submission: nothing to measure", c.shard));
      return kDone;
    }
  }
  submissions_of_run = submissions.size();
  if (c.resume) {
    std::erase_if(submissions, [&](const Submission& s) {
      return already_done(store, spec_named(specs, s.challenge), s);
    });
  }
  if (submissions.empty() && !c.resume) {
    throw Error("no submissions match: see 'assay list' for what is there");
  }

  std::vector<BoardEntry> entries;
  cases::TimeAccount account;
  {
    Progress progress(submissions.size());
    auto measuring = progress.begin("measuring the machine");
    Harness harness = set_up(context, c.harness);
    harness.gpu = c.gpu;
    calibrate(harness.machine);
    std::vector<Place> places = places_on(c.on_real_gpu() ? Device::cuda : Device::cpu, harness,
                                          c.gpus, c.gpu_given ? c.gpu : "");
    c.gpu = harness.gpu;
    measuring.reset();
    const cells::RunOptions options = run_options(c, harness, submissions);
    const std::vector<RunnerAt> runners = runners_at(std::move(places), options);
    if (!c.resume) store.start(new_run(harness, options.seed, remembered(c)));
    progress.note(fmt::format("{} submissions, seed {}, isolation {}", submissions.size(),
                              options.seed, to_string(harness.tier.tier)));
    for (const RunnerAt& at : runners) {
      if (const auto& gpu = at.gpu)
        progress.note(fmt::format("on {}{}, copies at {:.3g} TB/s", gpu->name,
                                  runners.size() > 1 ? " at " + gpu->pci_bus_id : "",
                                  gpu->copy_bytes_per_s * 1e-12));
    }
    entries = run_cells(harness, runners, specs, submissions, c.jobs, store, progress);
    for (const RunnerAt& at : runners) account.add(at.runner->account());
  }
  const auto faults = std::ranges::count_if(
      entries, [](const BoardEntry& e) { return e.score.verdict == Verdict::harness_error; });
  // Whoever merges shards tells of their faults; another try is for the whole array.
  const bool finished = faults == 0 || !c.shard.empty();
  if (finished) {
    store.finish();
  } else {
    store.write_board();
  }
  tell_account(account, steady_seconds() - start);
  print_summary(c, store, entries, specs);
  if (finished) return kDone;
  tell(fmt::format("{} could not be measured, through no fault of the answer (JE); {}\n",
                   counted(static_cast<std::size_t>(faults), "submission"),
                   what_is_kept(context, c, store, submissions_of_run)));
  return kUsageOrHarnessError;
}

int execute(const Context& context, RunCommand c) {
  store::ResultStore store(c.results.empty() ? context.results() : std::filesystem::path(c.results),
                           c.sole_writer ? store::Writers::one : store::Writers::many);
  tell(store.migration());
  std::size_t submissions = 0;
  try {
    return measure(context, c, store, submissions);
  } catch (const std::exception& fault) {
    if (stop_signal() == 0) {
      if (!store.is_running() || store.run().finished || submissions == 0) throw;
      throw Error(
          fmt::format("{}\n{}", fault.what(), what_is_kept(context, c, store, submissions)));
    }
  } catch (const Stopped&) {
  }
  tell(fmt::format("stopped by {}: {}\n", stop_signal_name(),
                   what_is_kept(context, c, store, submissions)));
  throw Stopped();
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Build, check, time and grade submissions");
  command->footer(
      R"(
Reads submissions, <model>/<challenge>/submission.cpp (C++) or submission.cu (CUDA), or one
numbered folder deeper for several attempts. Writes the folder of results: every finished
cell is stored at once, and a cell that was measured before is replaced, but not a full
measurement by a --quick one. A run that was stopped or killed goes on with --resume, which
takes its seed and its choice of submissions from the run.

A result is stale when other rules than today's measured it: an older measurement revision
of assay, an older spec, or another GPU model. It is marked where it is shown and enters no
average or rank. Results of an older spec still count while a challenge has no others on the
device. --stale measures again what is not of today, and nothing else; it may be narrowed by
--model, --challenge and --device. Progress goes to stderr, the summary to stdout. Afterwards
`assay report` writes the rankings, `assay show` explains a score.

On N machines --shard 1/N to N/N with the same submissions measure all of them, each once:
parts of about the same cost, by what the board of --costs says. Each has a folder of results
of its own, and `assay merge` joins these.

Ctrl-C, SIGTERM and SIGHUP stop it cleanly, and it says what is kept and how to continue.
A second one ends it at once.

Exit status: 0 done, whatever the grades; 2 wrong usage, or the harness failed; 130, 143 or
129 stopped by SIGINT, SIGTERM or SIGHUP.

Examples:
  assay run                             everything there is
  assay run -m textbook --quick         a smoke run of one model
  assay run -c CHALLENGE --device cpu   one challenge, answers in C++ only
  assay run --device cuda               answers in CUDA on this machine's GPU, cells of their own
  assay run --device cuda --gpus 0,1    the same on two GPUs, side by side
  assay run --resume                    after Ctrl-C or a power cut
  assay run --stale                     after an update of assay or of a spec
  assay run --seed 7 --results /tmp/r   these inputs again, on a board of their own
  assay run --shard 2/8 --results part2 the second of eight machines
)");
  auto c = std::make_shared<RunCommand>();
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->add_option("--model,-m", c->models, "only this model; may be repeated");
  command->add_option("--challenge,-c", c->challenges, "only this challenge; may be repeated");
  add_device_option(*command, c->device, true);
  add_gpu_choice(*command, c->gpus, true);
  add_gpu_option(*command, c->gpu);
  command->add_option("--results", c->results,
                      "folder of the board and runs (default: WORK/results)");
  command
      ->add_option("--jobs,-j", c->jobs,
                   "threads for builds and correctness (default: one a core); timing runs alone,\n"
                   "or with real GPUs one at a time on each")
      ->check(CLI::Range(1, CpuSet::kMost));
  command->add_option("--seed", c->seed, "seed of the hidden inputs (default: random, recorded)");
  command->add_flag("--quick", c->quick, "a smoke run: few cases, few repetitions");
  command->add_flag("--stale", c->stale,
                    "measure again only the rows that are stale or of an older spec;\n"
                    "if there are none, exit with 0");
  auto* shard = command
                    ->add_option("--shard", c->shard,
                                 "I/N: the I-th of N parts, which N machines measure (see below)")
                    ->excludes("--stale");  // the shard's own board is empty
  command
      ->add_option("--costs", c->costs,
                   "results folder that says what each submission costs (default: WORK/results)")
      ->needs(shard);
  command->add_flag("--resume", c->resume, "continue the newest run that did not finish");
  command
      ->add_flag("--go-on", c->go_on,
                 "--resume where the folder's newest run did not finish, nothing where it did,\n"
                 "else begin: one command for a job that may be started again")
      ->excludes("--resume");
  command->add_flag("--sole-writer", c->sole_writer,
                    "lock nothing in the results folder: nobody else writes there. For network\n"
                    "file systems, where a node that died may leave its locks behind");
  command->add_flag("--json", c->json, "print the summary as JSON");
  add_external_options(*command, c->corpus);
  add_harness_options(*command, c->harness);
  command->callback([&action, command, c] {
    c->gpu_given = command->count("--gpu") > 0;
    for (const CLI::Option* option : command->get_options())
      if (option->count() > 0) c->given.push_back(option->get_name());
    action = [c](const Context& context) { return execute(context, *c); };
  });
}

}  // namespace assay::cli
