// assay slurm: a run on many machines, as a cluster's job array.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/conventions.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "grade/currency.h"
#include "records/evidence.h"
#include "records/machine_kind.h"
#include "report/terminal.h"
#include "slurm/array.h"
#include "slurm/follow.h"
#include "slurm/scheduler.h"
#include "slurm/script.h"
#include "store/evidence_file.h"
#include "store/merge_folders.h"
#include "util/clock.h"
#include "util/file_lock.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct SlurmCommand {
  std::size_t shards = 0, nodes = 0, resubmit = 1;
  std::string partition, time, account, qos, constraint, memory, cpus;
  std::vector<std::string> sbatch, run;
  std::string results, costs;
  double poll = 60;
  bool mixed = false, cancel_on_interrupt = false, dry_run = false;
};

// What the options request from `assay run`, as parsed by its own parser.
struct RunAsked {
  std::string submissions, device = "auto";
  std::vector<std::string> models, challenges;
  std::optional<std::uint64_t> seed;
  bool is_timed = true;
  bool own_cache = false, own_jobs = false;
};

RunAsked run_asked(const std::vector<std::string>& words) {
  CLI::App app("", "assay");
  Action ignored;
  add_run(app, ignored);
  keep_conventions(app);
  if (const std::string fault = valueless_option(words); !fault.empty())
    throw Error("after --, options of `assay run`: " + fault);
  std::vector<std::string> arguments(words.rbegin(), words.rend());  // reversed for parse()
  arguments.emplace_back("run");
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    throw Error(fmt::format("after --, options of `assay run`: {}", e.what()));
  }
  const CLI::App& run = *app.get_subcommand("run");
  const auto given = [&](const char* name) { return run.get_option(name)->count() > 0; };
  for (const char* name : {"--results", "--shard", "--costs", "--resume", "--go-on",
                           "--sole-writer", "--json", "--stale"}) {
    if (!given(name)) continue;
    throw Error(fmt::format(
        "after --, {} is not for a job array: {}", name,
        std::string(name) == "--results" || std::string(name) == "--costs"
            ? "name the folder before --"
            : "each shard has an own folder of results, which begins empty and is gone on with"));
  }
  RunAsked asked;
  const auto take = [&](const char* name, auto& value) {
    if (given(name)) value = run.get_option(name)->as<std::decay_t<decltype(value)>>();
  };
  take("--submissions", asked.submissions);
  take("--device", asked.device);
  take("--model", asked.models);
  take("--challenge", asked.challenges);
  if (given("--seed")) asked.seed = run.get_option("--seed")->as<std::uint64_t>();
  // Quick runs give no reliable speeds, and simulated speeds are modelled.
  asked.is_timed = !given("--quick") && asked.device != to_string(Device::sim);
  asked.own_cache = given("--cache");
  asked.own_jobs = given("--jobs");
  return asked;
}

slurm::JobOptions job_options(const SlurmCommand& c, const RunAsked& asked) {
  slurm::JobOptions options{.sbatch = {}, .at_once = c.nodes, .folder = fs::current_path()};
  const auto pass = [&](const char* name, const std::string& value) {
    if (!value.empty()) options.sbatch.push_back(fmt::format("--{}={}", name, value));
  };
  if (asked.is_timed) options.sbatch.emplace_back("--exclusive");
  pass("partition", c.partition);
  pass("time", c.time);
  pass("account", c.account);
  pass("qos", c.qos);
  pass("constraint", c.constraint);
  pass("mem", c.memory);
  pass("cpus-per-task", c.cpus);
  options.sbatch.insert(options.sbatch.end(), c.sbatch.begin(), c.sbatch.end());
  return options;
}

// The options that identify this command, without those for following it.
std::vector<std::string> identity(const SlurmCommand& c, const slurm::JobOptions& options) {
  std::vector<std::string> words{fmt::format("--array={}", c.shards)};
  if (c.nodes > 0) words.push_back(fmt::format("--nodes={}", c.nodes));
  words.insert(words.end(), options.sbatch.begin(), options.sbatch.end());
  words.emplace_back("--");
  words.insert(words.end(), c.run.begin(), c.run.end());
  return words;
}

std::string in_a_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

std::string script_of(const Context& context, const SlurmCommand& c, const RunAsked& asked,
                      const slurm::ArrayFolder& folder, const slurm::Array& array) {
  return slurm::job_script(
      {.assay = {fs::read_symlink("/proc/self/exe").string(), "--root", context.root.string()},
       .run = c.run,
       .own_cache = asked.own_cache,
       .own_jobs = asked.own_jobs,
       .own_seed = asked.seed.has_value()},
      folder, array);
}

// Copies the current board, so that shards that start at different times divide the work by the
// same costs.
void keep_costs(const fs::path& from, const fs::path& to) {
  create_folder(to);
  for (const fs::path& path : {store::journal_path(from), store::board_path(from)}) {
    if (fs::exists(path)) write_file_atomically(to / path.filename(), read_file(path));
  }
}

slurm::Array new_array(const Context& context, const SlurmCommand& c, const RunAsked& asked,
                       const slurm::JobOptions& options) {
  const std::vector<ChallengeSpec> specs = load_specs(context, asked.challenges);
  const std::size_t answers =
      select_submissions(
          asked.submissions.empty() ? context.submissions() : fs::path(asked.submissions), specs,
          asked.models, device_from(asked.device))
          .size();
  if (answers == 0) throw Error("no submissions match: see 'assay list' for what is there");
  slurm::Array array;
  array.seed = asked.seed.value_or(random_seed());
  array.id = make_run_id(array.seed);
  array.command = identity(c, options);
  array.shards = c.shards;
  array.answers = answers;
  return array;
}

void lay_out(const Context& context, const SlurmCommand& c, const RunAsked& asked,
             const slurm::ArrayFolder& folder, const slurm::Array& array) {
  if (!c.costs.empty() && !has_board(c.costs))
    throw Error(fmt::format("--costs {}: there is no board", c.costs));
  for (const fs::path& path : {folder.marks(), folder.logs(), folder.shards()}) create_folder(path);
  keep_costs(c.costs.empty() ? context.results() : fs::path(c.costs), folder.costs());
  write_file_atomically(folder.script(), script_of(context, c, asked, folder, array));
  folder.write(array);
}

// Called while a stop is under way, which is told whatever happens here.
void cancel_jobs(slurm::Follower& follower, const slurm::Array& array, Progress& progress) {
  try {
    follower.cancel();
    progress.note("cancelled the jobs; the same command submits again what had not ended");
  } catch (const Error& e) {
    progress.note(fmt::format("{}; see `squeue --me`, and cancel what is left with `scancel {}`",
                              e.what(), fmt::join(array.jobs(), " ")));
  }
}

// Follows the array to its end; returns the shards that failed too often.
std::vector<std::size_t> follow(const SlurmCommand& c, slurm::Array& array,
                                const slurm::ArrayFolder& folder, slurm::SlurmCommands& scheduler) {
  Progress progress(array.shards - array.done.size());
  std::shared_ptr<void> activity;
  bool told = false;
  slurm::Count last;
  slurm::FollowWorld world{
      .seconds = steady_seconds,
      .wait = wait_or_stop,
      .looked =
          [&](const slurm::Count& now) {
            if (!told && !scheduler.without_accounting().empty()) {
              progress.note(fmt::format("no accounting ({}): following with squeue and marks",
                                        scheduler.without_accounting()));
              told = true;
            }
            if (now == last && activity) return;
            last = now;
            activity.reset();
            activity =
                progress.begin(fmt::format("{} of {} shards done, {} running, {} waiting", now.done,
                                           array.shards, now.running, now.waiting));
          },
      .done = [&](std::size_t shard) { progress.finished(fmt::format("shard {} done", shard)); },
      .say = [&](const std::string& line) { progress.note(line); }};
  constexpr double kFirstWait = 2;
  slurm::Follower follower(
      array, folder, scheduler,
      {.resubmit = c.resubmit, .first_wait = std::min(kFirstWait, c.poll), .longest_wait = c.poll},
      world);
  try {
    return follower.follow();
  } catch (const Stopped&) {
    if (c.cancel_on_interrupt) cancel_jobs(follower, array, progress);
    throw;
  }
}

struct Merged {
  std::set<CellKey> cells;
  std::size_t taken = 0, faults = 0;
};

// Speeds are relative to par on the same machine, but submissions do not all gain equally from a
// better one: ranking across kinds of machines must be the user's decision.
void require_one_kind(const std::vector<store::IncomingResults>& shards) {
  std::map<std::string, std::set<std::string>> folders;
  for (const store::IncomingResults& shard : shards) {
    for (const auto& [key, row] : shard.board().entries) {
      if (key.device == Device::sim) continue;
      const std::string kind =
          key.device == Device::cpu ? kind_of(row.machine) : "the GPU " + gpu_of(row);
      folders[kind].insert(shard.folder().filename().string());
    }
  }
  if (folders.size() < 2) return;
  std::string kinds;
  for (const auto& [kind, names] : folders)
    kinds += fmt::format("\n  {}: shards {}", printable(kind, 1), fmt::join(names, ", "));
  throw Error(fmt::format(
      "the shards were timed on machines of different kinds:{}\nNothing was merged. The same "
      "command with --mixed takes them in, each row with its machine; --constraint or --partition "
      "keeps another array on one kind",
      kinds));
}

Merged merge_shards(const SlurmCommand& c, const RunAsked& asked, const fs::path& results,
                    const slurm::ArrayFolder& folder, const slurm::Array& array) {
  std::vector<store::IncomingResults> all;
  for (std::size_t shard = 1; shard <= array.shards; ++shard) {
    if (has_board(folder.shard(shard))) all.emplace_back(folder.shard(shard));
  }
  if (asked.is_timed && !c.mixed) require_one_kind(all);
  open_board_to_change(results);
  Merged merged;
  for (const store::IncomingResults& incoming : all) {
    merged.taken += store::merge_results(results, incoming, store::Prefer::newest).taken();
    for (const auto& [key, row] : incoming.board().entries) {
      const bool is_new = merged.cells.insert(key).second;
      if (is_new && row.score.verdict == Verdict::harness_error) ++merged.faults;
    }
  }
  return merged;
}

// Prints the table shown at the end of a run, for the array's measurements.
void print_ranking(const Context& context, const fs::path& results, const Merged& merged) {
  const Scoreboard board = store::read_board(results);
  std::vector<BoardEntry> entries;
  for (const CellKey& key : merged.cells) {
    const auto row = board.entries.find(key);
    if (row == board.entries.end()) continue;
    const store::FoundEvidence found = store::find_evidence(results, row->second.evidence);
    if (found.problem.empty())
      entries.push_back(parse_evidence(found.text, row->second.evidence.path).entry);
  }
  fmt::print("\n{}", summary(entries, load_specs(context)));
}

void print_end(const SlurmCommand& c, const fs::path& results, const slurm::ArrayFolder& folder,
               const slurm::Array& array, const Merged& merged) {
  fmt::print("\n{} in {}, {} new on the board\n", counted(merged.cells.size(), "result"),
             counted(array.shards, "shard"), merged.taken);
  if (merged.cells.size() < array.answers) {
    fmt::print("{} of {} answers have no result: the submissions changed meanwhile\n",
               array.answers - merged.cells.size(), array.answers);
  }
  if (merged.faults > 0) {
    fmt::print(
        "{} of them ended in a fault of the harness, and count for nothing: the logs say "
        "why; a new array measures them again\n",
        merged.faults);
  }
  for (const slurm::Failure& f : array.failures) {
    fmt::print("submitted again: shard {}, which failed{} ({})\n", f.task.shard,
               f.node.empty() ? "" : " on " + f.node, f.reason);
  }
  fmt::print("Logs: {}\nThe board: {}\n{}", folder.logs().string(),
             store::board_path(results).string(), where_the_site_is(results, c.results));
}

[[noreturn]] void give_up(const SlurmCommand& c, const fs::path& results,
                          const slurm::ArrayFolder& folder, const slurm::Array& array,
                          const std::vector<std::size_t>& failed) {
  std::string text = fmt::format("{} failed too often:", counted(failed.size(), "shard"));
  for (const std::size_t shard : failed) {
    const auto last = std::find_if(array.failures.rbegin(), array.failures.rend(),
                                   [&](const slurm::Failure& f) { return f.task.shard == shard; });
    if (last == array.failures.rend()) continue;
    text +=
        fmt::format("\n  {}: {}{}; {}", shard, last->reason,
                    last->node.empty() ? "" : " on " + last->node, folder.log(last->task).string());
  }
  throw Error(fmt::format(
      "{}\nNothing is lost: the same command tries them again. `assay merge {}{}/*/` takes in what "
      "there is",
      text, c.results.empty() ? "" : fmt::format("--results {} ", quoted(results.string())),
      quoted(folder.shards().string())));
}

int dry_run(const Context& context, const SlurmCommand& c, const RunAsked& asked,
            const slurm::JobOptions& options, const fs::path& results) {
  const slurm::Array array = new_array(context, c, asked, options);
  const slurm::ArrayFolder folder(results / "slurm" / array.id);
  std::vector<std::size_t> all;
  for (std::size_t shard = 1; shard <= c.shards; ++shard) all.push_back(shard);
  const slurm::Batch batch{
      .name = fmt::format("assay-{}-1", array.id), .job = "", .shards = all, .excluded = {}};
  fmt::print(
      "# {} in {}; {}:\n{}\n# then:\n{}\n# and in the end:\nassay merge --results {} {}/*/\n",
      counted(array.answers, "answer"), counted(c.shards, "shard"), folder.script().string(),
      script_of(context, c, asked, folder, array),
      in_a_line(slurm::sbatch_command(options, folder, batch)), quoted(results.string()),
      quoted(folder.shards().string()));
  return kDone;
}

int run_array(const Context& context, SlurmCommand c) {
  if (c.shards == 0) c.shards = c.nodes;
  if (c.shards == 0) throw Error("how many shards? --array N, or --nodes N for one a node");
  const RunAsked asked = run_asked(c.run);
  const slurm::JobOptions options = job_options(c, asked);
  const fs::path results =
      fs::absolute(c.results.empty() ? context.results() : fs::path(c.results)).lexically_normal();
  if (c.dry_run) return dry_run(context, c, asked, options, results);

  require_writable_directory(results / "slurm");
  const auto lock = FileLock::if_free(results / "slurm" / "lock");
  if (!lock) {
    throw Error(
        fmt::format("another `assay slurm` follows jobs in {}: wait for it, or use another "
                    "--results",
                    results.string()));
  }
  std::optional<slurm::ArrayFolder> folder = slurm::unfinished_array(results);
  slurm::Array array;
  if (folder) array = folder->read();
  if (folder && array.batches.empty() && fs::is_empty(folder->shards()) &&
      array.command != identity(c, options)) {
    // The first submission was refused, so nothing of it is under way.
    fs::remove_all(folder->path());
    folder.reset();
  }
  if (folder) {
    if (array.command != identity(c, options)) {
      throw Error(fmt::format(
          "{} is unfinished, of another command: go on with `assay slurm {}`; or cancel its jobs "
          "(`scancel {}`), wait for their end and remove that folder",
          folder->path().string(), in_a_line(array.command), fmt::join(array.jobs(), " ")));
    }
    tell(fmt::format("goes on with {}\n", folder->path().string()));
  } else {
    array = new_array(context, c, asked, options);
    folder.emplace(results / "slurm" / array.id);
    lay_out(context, c, asked, *folder, array);
    tell(fmt::format("{} in {}: {}\n", counted(array.answers, "answer"),
                     counted(array.shards, "shard"), folder->path().string()));
  }
  slurm::SlurmCommands scheduler(options, *folder);
  std::vector<std::size_t> failed;
  try {
    failed = follow(c, array, *folder, scheduler);
  } catch (const Stopped&) {
    tell(fmt::format("stopped by {}; {}the same command goes on from here\n", stop_signal_name(),
                     c.cancel_on_interrupt ? "" : "the jobs go on, and "));
    throw;
  }
  if (!failed.empty()) give_up(c, results, *folder, array, failed);
  const Merged merged = merge_shards(c, asked, results, *folder, array);
  array.finished = true;
  folder->write(array);
  print_ranking(context, results, merged);
  print_end(c, results, *folder, array, merged);
  return kDone;
}

}  // namespace

void add_slurm(CLI::App& app, Action& action, std::vector<std::string> run_options) {
  auto* command = app.add_subcommand("slurm", "Run on many machines: a job array of Slurm");
  command->footer(R"(
After --, options of `assay run`: what to measure. Its answers are divided into --array
shards of about the same cost. Each is a task of a job array, on a node and in a folder of
results of its own. This program submits the array, follows it, takes all results into
--results, as `assay merge` does, and prints them. Run it on a login node, in a folder
that all nodes see, where the program and the submissions lie too.

What is timed has its node to itself (--exclusive); not so with --quick or --device sim. All
shards draw the same inputs, as one run does. Where nodes of different kinds timed shards,
nothing is merged without --mixed.

A shard that fails (its node died, its time was over, it was preempted, it ended with an
error) is submitted again, --resubmit times, elsewhere if its node may be at fault. It goes
on where it ended: what was measured is kept.

RESULTS/slurm/ID holds the job script, the shards' results, their logs and what was
submitted. Ended by a signal or killed, the same command goes on; the jobs run meanwhile.

Exit status: 0 all is measured; 2 a shard failed too often, wrong usage or an error; 130,
143 or 129 stopped by SIGINT, SIGTERM or SIGHUP.

Examples:
  assay slurm --array 32 --partition cpu --time 2:00:00
  assay slurm --array 64 --nodes 16 --account lab -- --device cpu --challenge CHALLENGE
  assay slurm --array 4 --sbatch=--mail-type=END --dry-run -- --quick
)");
  auto c = std::make_shared<SlurmCommand>();
  c->run = std::move(run_options);
  constexpr std::size_t kMost = 10'000;
  command->add_option("--array", c->shards, "shards (default: as many as --nodes)")
      ->check(CLI::Range(std::size_t{1}, kMost));
  command->add_option("--nodes", c->nodes, "tasks that may run at a time (default: all)")
      ->check(CLI::Range(std::size_t{1}, kMost));
  command->add_option("--partition,-p", c->partition, "passed to sbatch unchanged");
  command->add_option("--time,-t", c->time, "limit for one shard; passed to sbatch unchanged");
  command->add_option("--account,-A", c->account, "who pays; passed to sbatch unchanged");
  command->add_option("--qos", c->qos, "quality of service; passed to sbatch unchanged");
  command->add_option("--constraint", c->constraint,
                      "features of nodes: one kind of processor makes speeds comparable;\n"
                      "passed to sbatch unchanged");
  command->add_option("--mem", c->memory, "memory on the node; passed to sbatch unchanged");
  command->add_option("--cpus-per-task", c->cpus,
                      "cores of a task, where nodes are shared; passed to sbatch unchanged");
  command->add_option("--sbatch", c->sbatch, "any other option, --sbatch=--NAME=VALUE; repeatable")
      ->allow_extra_args(false);
  command->add_option("--results", c->results,
                      "folder of the board, seen by all nodes (default: WORK/results)");
  command->add_option("--costs", c->costs,
                      "results folder that says what each answer costs (default: WORK/results)");
  command->add_option("--resubmit", c->resubmit, "times that a failed shard is submitted again")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command->add_option("--poll", c->poll, "longest time between two questions to Slurm, seconds")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  command->add_flag("--mixed", c->mixed,
                    "merge also what was timed on machines of different kinds");
  command->add_flag("--cancel-on-interrupt", c->cancel_on_interrupt,
                    "cancel the jobs when this is stopped (default: they go on)");
  command->add_flag("--dry-run", c->dry_run, "print the job script and the commands; do nothing");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return run_array(context, *c); }; });
}

}  // namespace assay::cli
