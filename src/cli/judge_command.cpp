// assay judge: asks a model behind an endpoint for opinions on the board's answers, shown beside
// their scores.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "ask/curl_transport.h"
#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "cli/endpoint_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "judge/judging.h"
#include "judge/opinion_file.h"
#include "spec/public_cases.h"
#include "store/cell_path.h"
#include "submission/submission.h"
#include "task/task.h"
#include "util/file_lock.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/text.h"
#include "version.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;

struct JudgeCommand : EndpointOptions {
  std::vector<std::string> models, challenges;
  std::string device, rubric, submissions, results;
  unsigned samples = 1;
  bool replace = false;
};

struct JudgePlan {
  std::map<CellKey, judge::Opinion> opinions;   // as far as they exist
  std::vector<judge::Question> questions;       // still to be asked
  std::size_t there = 0;                        // samples that already exist
  std::map<std::string, std::size_t> left_out;  // number of answers, by reason
};

fs::path results_of(const Context& context, const JudgeCommand& c) {
  return c.results.empty() ? context.results() : fs::path(c.results);
}

judge::Rubric rubric_of(const Context& context, const JudgeCommand& c) {
  const fs::path file =
      c.rubric.empty() ? context.challenges() / "rubric.json" : fs::path(c.rubric);
  return judge::parse_rubric(read_file(file), file.string());
}

void require_known_models(const Scoreboard& board, const JudgeCommand& c) {
  const std::vector<std::string> known = models_of(board);
  for (const std::string& model : c.models) {
    if (std::ranges::find(known, model) == known.end())
      throw Error(unknown_name("model", model, known));
  }
}

// Plans the questions, about answers whose files are still as they were measured.
class Planner {
 public:
  Planner(const Context& context, const JudgeCommand& c, const ask::Endpoint& endpoint,
          const judge::Rubric& rubric)
      : context_(context),
        c_(c),
        results_(results_of(context, c)),
        submissions_(c.submissions.empty() ? context.submissions() : fs::path(c.submissions)),
        judge_(own_name(c)),
        settings_(ask::settings_of(endpoint)),
        rubric_(rubric) {}

  JudgePlan plan(const Scoreboard& board) {
    require_known_models(board, c_);
    const std::vector<ChallengeSpec> specs = load_specs(context_, c_.challenges);
    for (const auto& [key, row] : board.entries) {
      const auto spec = std::ranges::find(specs, key.challenge, &ChallengeSpec::name);
      if (spec != specs.end() && is_chosen(key)) add(row, *spec);
    }
    return std::move(plan_);
  }

 private:
  bool is_chosen(const CellKey& key) const {
    return (c_.models.empty() || std::ranges::find(c_.models, key.model) != c_.models.end()) &&
           (c_.device.empty() || c_.device == to_string(key.device));
  }

  void add(const BoardRow& row, const ChallengeSpec& spec) {
    std::vector<SourceFile> sources;
    if (const std::string why = why_not(row, sources); !why.empty()) {
      ++plan_.left_out[why];
      return;
    }
    judge::Opinion opinion{judge_,
                           row.key,
                           row.source_hash,
                           rubric_,
                           judge::prompt_of(rubric_, task_of(spec, row.key.device), sources),
                           settings_,
                           kVersion};
    if (auto before = judge::read_opinion(results_, judge_, row.key)) take_over(*before, opinion);
    for (unsigned number = 1; number <= c_.samples; ++number) {
      if (opinion.find(number) == nullptr)
        plan_.questions.push_back({row.key, opinion.prompt, number});
    }
    plan_.there += opinion.samples.size();
    plan_.opinions.emplace(row.key, std::move(opinion));
  }

  // Why an answer cannot be judged, or "" after filling `sources`.
  std::string why_not(const BoardRow& row, std::vector<SourceFile>& sources) const {
    const CellKey& key = row.key;
    if (row.score.verdict == Verdict::no_answer) return "gave no answer";
    const bool is_folder = objection_to_model(key.model).empty() &&
                           (key.attempt.empty() || objection_to_model(key.attempt).empty());
    const fs::path folder = submissions_ / key.model / key.challenge / key.attempt;
    if (!is_folder || !fs::is_directory(folder)) return "are not in submissions/";
    for (Submission& s : read_submissions(folder, key.model, key.challenge, key.attempt)) {
      if (s.device() != key.device || s.sources.empty()) continue;
      if (source_hash(s) != row.source_hash) return "changed since they were measured";
      std::size_t bytes = 0;
      for (const SourceFile& f : s.sources) bytes += f.contents.size();
      if (bytes > judge::kLargestAnswer)
        return fmt::format("are larger than {} KiB", judge::kLargestAnswer >> 10);
      sources = std::move(s.sources);
      return {};
    }
    return "are not in submissions/";
  }

  // Today's task without hints, which may not be what the answer's author was given.
  const std::string& task_of(const ChallengeSpec& spec, Device device) {
    std::string& text = tasks_[{spec.name, device}];
    if (!text.empty()) return text;
    const Challenge& challenge =
        std::ranges::find(challenge_rows(), spec.name, &ChallengeRow::name)->get();
    const PublicCases published = load_public_cases(spec);
    const Language language = device == Device::cpu ? Language::cpp : Language::cuda;
    text = task::prompt_of({context_.root, spec, challenge, published}, {{language}, false});
    return text;
  }

  // Keeps an opinion on the same sources with the same rubric and settings. An opinion on changed
  // sources is dropped; if the terms differ, the user decides.
  void take_over(const judge::Opinion& before, judge::Opinion& opinion) const {
    if (!is_same_question(before, opinion) && before.source_hash != opinion.source_hash) return;
    if (const std::string other = difference_of_terms(before, opinion); !other.empty()) {
      if (c_.replace) return;
      throw Error(fmt::format(
          "{} has an opinion of {} on other terms: {}: give the judge another name with --as, or "
          "ask again with --replace",
          judge_, printable(to_string(opinion.key), 1, 200), other));
    }
    if (is_same_question(before, opinion)) opinion.samples = before.samples;
  }

  const Context& context_;
  const JudgeCommand& c_;
  const fs::path results_, submissions_;
  const std::string judge_;
  const nlohmann::ordered_json settings_;
  const judge::Rubric& rubric_;
  std::map<std::pair<std::string, Device>, std::string> tasks_;
  JudgePlan plan_;
};

std::string left_out_text(const JudgePlan& plan) {
  std::string text;
  for (const auto& [why, count] : plan.left_out)
    text += fmt::format("left out: {} answers that {}\n", count, why);
  return text;
}

int print_dry_run(const JudgeCommand& c, const ask::Endpoint& endpoint, const JudgePlan& plan) {
  double in = 0;
  for (const judge::Question& question : plan.questions) {
    const double tokens = tokens_estimated(question.prompt.bytes());
    in += tokens;
    fmt::print("# {} sample {}: about {:.0f} tokens\n", printable(to_string(question.key), 1, 200),
               question.number, tokens);
    // Sources are untrusted and could control the terminal.
    print_request(endpoint, request_of(endpoint, question), true);
  }
  fmt::print("{}{} requests, {} samples there already. Nothing was sent.\n{}.\n",
             left_out_text(plan), plan.questions.size(), plan.there,
             estimate(c, in, plan.questions.size()));
  return kDone;
}

void print_totals(const JudgeCommand& c, const JudgePlan& plan, const judge::JudgeResult& result,
                  double seconds) {
  fmt::print("{}{} opinions", left_out_text(plan), result.with_marks);
  if (result.without_marks > 0) fmt::print(", {} replies without marks", result.without_marks);
  if (result.not_obtained > 0) fmt::print(", {} not obtained", result.not_obtained);
  if (plan.there > 0) fmt::print("; {} were there before", plan.there);
  fmt::print("\n{}", account_of(c, result.spent, seconds));
}

judge::JudgeResult ask_judge(const JudgeCommand& c, const ask::Endpoint& endpoint,
                             const judge::Rubric& rubric, const fs::path& results, JudgePlan& plan,
                             ask::AskClock& clock) {
  ask::CurlTransport transport(fmt::format("assay/{}", kVersion));
  Progress progress(plan.questions.size());
  judge::JudgeWorld world{transport,
                          clock,
                          [&](const judge::Question& question, const judge::OpinionSample& sample) {
                            judge::Opinion& opinion = plan.opinions.at(question.key);
                            opinion.samples.push_back(sample);
                            std::ranges::sort(opinion.samples, {}, &judge::OpinionSample::number);
                            judge::write_opinion(results, opinion);
                          },
                          [&](const std::string& activity) { return progress.begin(activity); },
                          [&](const std::string& line) { progress.finished(line); },
                          [&](const std::string& line) { progress.note(line); }};
  try {
    return judge_all(plan.questions, rubric, endpoint, c.parallel, world);
  } catch (const Stopped&) {
    progress.note("stopped: what was replied is kept; the same command goes on");
    throw;
  }
}

int judge_answers(const Context& context, const JudgeCommand& c) {
  const fs::path results = results_of(context, c);
  const ask::Endpoint endpoint = endpoint_from(c);
  const judge::Rubric rubric = rubric_of(context, c);
  if (!has_board(results)) {
    throw Error(
        fmt::format("no {}: `assay run` measures the answers, and then a judge may read "
                    "them",
                    store::board_path(results).string()));
  }
  if (c.dry_run) {
    return print_dry_run(c, endpoint,
                         Planner(context, c, endpoint, rubric).plan(store::read_board(results)));
  }
  warn_of_plain_key(endpoint);
  const fs::path folder = judge::opinions_folder(results);
  require_writable_directory(folder);
  const auto lock = FileLock::if_free(folder / (store::path_part(own_name(c)) + ".lock"));
  if (!lock) {
    throw Error(
        fmt::format("another `assay judge` asks as {}: wait for it, or use --as", own_name(c)));
  }
  JudgePlan plan = Planner(context, c, endpoint, rubric).plan(store::read_board(results));
  RealAskClock clock;
  const double begin = clock.now();
  const judge::JudgeResult result = ask_judge(c, endpoint, rubric, results, plan, clock);
  print_totals(c, plan, result, clock.now() - begin);
  if (result.not_obtained == 0) return kDone;
  tell("assay: not every opinion could be had: the same command asks for what is missing\n");
  return kUsageOrHarnessError;
}

}  // namespace

void add_judge(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "judge", "Ask a model for its opinion of the answers, beside their scores");
  auto c = std::make_shared<JudgeCommand>();
  add_endpoint(*command, *c);
  command->add_option("--of,-m", c->models, "only answers of these models")
      ->allow_extra_args(false);
  command->add_option("--challenge,-c", c->challenges, "only these")->allow_extra_args(false);
  command->add_option("--device", c->device, "only answers that were measured on it")
      ->check(CLI::IsMember({"cpu", "sim", "cuda"}));
  command->add_option("--rubric", c->rubric,
                      "file of criteria (default: ROOT/challenges/rubric.json)");
  command->add_option("--samples", c->samples, "opinions of each answer, those that exist included")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_request_options(*command, *c);
  command->add_flag("--replace", c->replace,
                    "ask again where an opinion by another rubric or other settings is there");
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->add_option("--results", c->results, "folder of scoreboard.json (default: WORK/results)");
  command->footer(
      R"(
The judge sees the task, an answer's source and a rubric, and replies with a mark from 0 to
10 and a reason for each criterion. It sees no measurement, and not whose answer it is. The
source is marked as data that must not be obeyed. An opinion is an opinion: it never enters
a score. `assay show` prints it, and `assay report` writes analysis/judges.md, which says
how far each judge agrees with measurement.

Judged are answers of the board whose sources lie in submissions/ as they were measured.
Each opinion is results/opinions/NAME/MODEL/CHALLENGE/[ATTEMPT.]DEVICE.json, with prompt and
raw reply. The same command again asks only for what is missing, also after a kill. A reply
that cannot be read is kept and counts as none; it is not asked for again. An answer that
changed is judged anew. Another rubric or other settings need another --as, or --replace.

Keys, headers, retries and streaming are as with `assay ask`.

Exit status: 0 every reply is there, 2 some could not be had, or another error, 130 stopped.

Examples:
  assay judge --url http://localhost:8000/v1 --model my-judge --dry-run
  assay judge --url http://localhost:8000/v1 --model my-judge -m textbook -c CHALLENGE
  assay judge --url https://host/v1 --key-env HOST_KEY --model org/judge --as judge \
    --device cpu --samples 3 --temperature 1 --rubric my_rubric.json
)");
  command->callback([&action, c] {
    action = [c](const Context& context) { return judge_answers(context, *c); };
  });
}

}  // namespace assay::cli
