// assay solve: runs an agent's command line to produce attempts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "agent/session_log.h"
#include "agent/solve.h"
#include "assay/error.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "intake/attempt.h"
#include "numerics/jobs.h"
#include "spec/public_cases.h"
#include "util/files.h"
#include "util/redact.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/temporary_folder.h"
#include "util/text.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;

struct SolveCommand {
  std::string as, language = "cpp", into, submissions;
  std::vector<std::string> challenges, command;
  double time_limit = 2700, grace = 10;  // seconds
  unsigned samples = 1;
  std::size_t parallel = 1;
  bool prompt_as_input = false, hints = false;
};

struct SolveTask {
  const ChallengeSpec* spec;
  unsigned number;  // of the sample, from 1
};

enum class Took { answer, no_answer, nothing };

// Work folders for the agent: in a folder of the user's, or in a temporary one that is removed once
// it is empty.
class WorkFolders {
 public:
  explicit WorkFolders(const std::string& into) : path_(into), own_(into.empty()) {
    if (!own_) {
      create_folder(path_);
      return;
    }
    path_ = make_temporary_folder("assay-solve-");
  }
  ~WorkFolders() {
    std::error_code not_empty;
    if (own_) fs::remove(path_, not_empty);
  }
  WorkFolders(const WorkFolders&) = delete;
  WorkFolders& operator=(const WorkFolders&) = delete;

  fs::path of(const SolveTask& task) const {
    std::string name = task.spec->name;
    if (task.number > 1) name += fmt::format("-{}", task.number);
    return path_ / name;
  }
  // The log lies beside the work folder, where the agent does not look for its own files.
  fs::path log_of(const SolveTask& task) const { return of(task).string() + ".session.log"; }
  void done_with(const SolveTask& task) const {
    std::error_code ignored;
    if (own_) fs::remove_all(of(task), ignored);
    fs::remove(log_of(task), ignored);
  }

 private:
  fs::path path_;
  bool own_;
};

std::string command_line(const SolveCommand& c) {
  std::string line;
  for (const std::string& word : c.command) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

std::string shown_bytes(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{} kB", bytes / 1000);
  return fmt::format("{} MB", bytes / 1'000'000);
}

class Solver {
 public:
  Solver(const Context& context, const SolveCommand& c, std::size_t tasks)
      : context_(context),
        c_(c),
        folders_(c.into),
        redactor_(secrets_of_environment()),
        progress_(tasks) {}

  void solve_one(const SolveTask& task);
  const std::map<Took, std::size_t>& took() const { return took_; }

 private:
  void take_in(const SolveTask&, const agent::Solution&, const std::string& name);
  std::string name_of(const SolveTask& task) const {
    return c_.samples == 1 ? task.spec->name
                           : fmt::format("{} sample {}", task.spec->name, task.number);
  }
  fs::path submissions() const {
    return c_.submissions.empty() ? context_.submissions() : fs::path(c_.submissions);
  }
  void count(Took what) {
    const std::lock_guard lock(mutex_);
    ++took_[what];
  }

  const Context& context_;
  const SolveCommand& c_;
  const WorkFolders folders_;
  const Redactor redactor_;
  std::mutex mutex_;
  std::map<Took, std::size_t> took_;
  Progress progress_;
};

void Solver::solve_one(const SolveTask& task) {
  check_stop();
  const std::string name = name_of(task);
  const Challenge& challenge = challenge_of(*task.spec);
  const PublicCases published = load_public_cases(*task.spec);
  agent::Assignment assignment{
      {context_.root, *task.spec, challenge, published},
      {quoted(fs::read_symlink("/proc/self/exe")), " --root " + quoted(context_.root)}};
  assignment.language = c_.language == "cuda" ? Language::cuda : Language::cpp;
  assignment.hints = c_.hints;
  assignment.command = c_.command;
  assignment.prompt_as_input = c_.prompt_as_input;
  assignment.time_limit = c_.time_limit;
  assignment.grace = c_.grace;
  assignment.folder = folders_.of(task);
  assignment.log = folders_.log_of(task);
  const auto shown = progress_.begin(name);
  const agent::Solution solution = agent::solve(assignment, redactor_);
  if (solution.ended.how == agent::Ended::How::stopped) {
    progress_.note(
        fmt::format("{}: stopped; what it had done lies in {}", name, assignment.folder.string()));
    throw Stopped();
  }
  const bool failed =
      solution.ended.how == agent::Ended::How::killed ||
      (solution.ended.how == agent::Ended::How::exited && solution.ended.status != 0);
  if (failed && !solution.touched) {
    progress_.finished(fmt::format("{}: {}, and changed nothing: not taken in; its output is in {}",
                                   name, solution.ending(), assignment.log.string()));
    if (!solution.last_output.empty()) progress_.note(solution.last_output);
    count(Took::nothing);
    std::error_code ignored;
    if (c_.into.empty()) fs::remove_all(assignment.folder, ignored);
    return;
  }
  take_in(task, solution, name);
}

void Solver::take_in(const SolveTask& task, const agent::Solution& solution,
                     const std::string& name) {
  intake::Answer answer;
  answer.files = solution.files;
  answer.original.push_back({"session.log", read_file(folders_.log_of(task))});
  AttemptRecord record;
  record.seconds = solution.ended.seconds;
  record.finish_reason = solution.ended.how == agent::Ended::How::timed_out
                             ? "time limit"
                             : printable(solution.ending(), 1, 60);
  record.command = redactor_.redacted(command_line(c_));
  record.language = c_.language;
  record.prompt_sha256 = solution.prompt_sha256;
  record.prompt_hints = c_.hints;
  record.how = "the files of the folder in which the command worked";
  record.no_answer = solution.no_answer;
  fs::path stored;
  try {
    stored = intake::store_attempt(submissions(), c_.as, task.spec->name, answer, record);
  } catch (const Error& e) {
    throw Error(
        fmt::format("{}; the agent's work is kept in {}", e.what(), folders_.of(task).string()));
  }
  folders_.done_with(task);
  const bool answered = solution.no_answer.empty();
  progress_.finished(fmt::format("{}: {}, {} of output; {} -> {}", name, solution.ending(),
                                 shown_bytes(solution.output_bytes),
                                 answered ? counted(solution.files.size(), "source file")
                                          : "no answer: " + printable(solution.no_answer, 1, 160),
                                 stored.string()));
  count(answered ? Took::answer : Took::no_answer);
}

int solve_tasks(const Context& context, const SolveCommand& c) {
  if (c.command.empty()) {
    throw Error(
        "no command: name the agent's after --, as in assay solve --as NAME -- sh -c "
        "'agent < \"$ASSAY_PROMPT\"'");
  }
  if (const std::string objection = objection_to_model(c.as); !objection.empty()) {
    throw Error(
        fmt::format("--as {}: no model can have that name: {}", printable(c.as, 1, 80), objection));
  }
  const std::vector<ChallengeSpec> specs = load_specs(context, c.challenges);
  std::vector<SolveTask> tasks;
  for (const ChallengeSpec& spec : specs)
    for (unsigned number = 1; number <= c.samples; ++number) tasks.push_back({&spec, number});
  std::map<Took, std::size_t> took;
  {
    Solver solver(context, c, tasks.size());
    for_each_job(tasks.size(), c.parallel, [&](std::size_t i) { solver.solve_one(tasks[i]); });
    took = solver.took();
  }
  fmt::print("{}, {} without an answer", counted(took[Took::answer], "answer"),
             took[Took::no_answer]);
  if (took[Took::nothing] > 0) fmt::print(", {} failed", took[Took::nothing]);
  fmt::print("\n");
  return took[Took::nothing] > 0 ? kUsageOrHarnessError : kDone;
}

}  // namespace

void add_solve(CLI::App& app, Action& action, std::vector<std::string> agent_command) {
  auto* command = app.add_subcommand("solve", "Let an agent's command line solve tasks");
  auto c = std::make_shared<SolveCommand>();
  c->command = std::move(agent_command);
  command->add_option("--as", c->as, "the agent's name here")->required();
  command->add_option("--challenge,-c", c->challenges, "only these")->allow_extra_args(false);
  command->add_option("--language", c->language, "of the answers")
      ->check(CLI::IsMember({"cpp", "cuda"}))
      ->capture_default_str();
  command->add_option("--time", c->time_limit, "limit for one task: 90s, 45m, 2h (default: 45m)")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                CLI::AsNumberWithUnit::CASE_INSENSITIVE, "TIME"))
      ->check(CLI::Range(0.1, 604800.0));
  command->add_option("--grace", c->grace, "seconds from SIGTERM to SIGKILL at the end")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  command->add_option("--samples", c->samples, "attempts at each task")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--parallel", c->parallel, "agents at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_flag("--prompt-stdin", c->prompt_as_input, "the command's input is the prompt");
  add_hints_option(*command, c->hints);
  command->add_option("--into", c->into, "folder to work in, which is kept (default: temporary)");
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->footer(
      R"TEXT(
The command, after --, runs in a folder of assay deploy: PROMPT.md, abi.h, build.sh and a
skeleton. In its words {prompt} is the prompt's path, {dir} the folder, {challenge} and
{language} what they say; ASSAY_PROMPT, ASSAY_CHALLENGE and ASSAY_LANGUAGE are in its
environment. When it ends, or at the time limit, everything that it started is ended, and
the sources in the folder become an attempt, with its output in original/session.log.
Values of environment variables that are named like secrets (KEY, TOKEN, SECRET,
PASSWORD ...), and what looks like a key, are taken out of that output.

An agent is not isolated: it may do whatever you may. Run it in a container, or as a user
of its own, if you do not trust it.

A skeleton that is as it was is an attempt without an answer; but where the command failed
too, nothing is taken in.

Exit status: 0 every task was taken in, 2 a command failed, or another error, 130 stopped.

Examples:
  assay solve --as my-agent --challenge CHALLENGE -- my-agent --file {prompt}
  assay solve --as my-agent --time 45m --prompt-stdin -- my-agent --yes
  assay solve --as my-agent -- sh -c 'my-agent "$(cat "$ASSAY_PROMPT")"'
)TEXT");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return solve_tasks(context, *c); }; });
}

}  // namespace assay::cli
