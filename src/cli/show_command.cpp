// assay show: explains a submission's score.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "cli/output.h"
#include "compare/field.h"
#include "grade/currency.h"
#include "grade/grade.h"
#include "judge/opinion_file.h"
#include "report/figures.h"
#include "report/opinions.h"
#include "report/standings.h"
#include "report/terminal.h"
#include "spec/spec.h"
#include "store/evidence_file.h"
#include "submission/submission.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct ShowOptions {
  std::string model, challenge, results, attempt, device, gpu;
  bool json = false;
};

// Models on the board and in the submissions folder.
std::vector<std::string> known_models(const Context& context, const Scoreboard& board) {
  const std::vector<std::string> measured = models_of(board);
  std::set<std::string> models(measured.begin(), measured.end());
  if (fs::is_directory(context.submissions())) {
    for (const auto& folder : fs::directory_iterator(context.submissions())) {
      if (folder.is_directory()) models.insert(folder.path().filename());
    }
  }
  return {models.begin(), models.end()};
}

// Entries of the model and challenge, on the named device if any, in attempt order.
std::vector<const BoardRow*> entries_for(const Scoreboard& board, const ShowOptions& o) {
  std::vector<const BoardRow*> found;
  for (const auto& [key, entry] : board.entries) {
    if (key.model != o.model || key.challenge != o.challenge) continue;
    if (o.device.empty() || to_string(key.device) == o.device) found.push_back(&entry);
  }
  std::stable_sort(found.begin(), found.end(), [](const BoardRow* a, const BoardRow* b) {
    return compare::attempt_before(a->key.attempt, b->key.attempt);
  });
  return found;
}

bool has_source_for(const Context& context, const ShowOptions& o) {
  const Language needed = o.device == to_string(Device::cpu) ? Language::cpp : Language::cuda;
  std::vector<std::string> ignored;
  for (const Submission& s : find_submissions(context.submissions(), {o.challenge}, ignored)) {
    if (s.model == o.model && s.language == needed) return true;
  }
  return false;
}

[[noreturn]] void nothing_measured(const Context& context, const Scoreboard& board,
                                   const ShowOptions& o) {
  const auto models = known_models(context, board);
  if (std::find(models.begin(), models.end(), o.model) == models.end()) {
    throw Error(unknown_name("model", o.model, models));
  }
  if (!fs::exists(context.submissions() / o.model / o.challenge)) {
    throw Error(fmt::format("{} has no submission for {}: put one into {}", o.model, o.challenge,
                            (context.submissions() / o.model / o.challenge).string()));
  }
  if (!o.device.empty() && !has_source_for(context, o)) {
    throw Error(fmt::format("{} has no submission for {} in {}: the device {} needs one", o.model,
                            o.challenge, o.device == "cpu" ? "C++" : "CUDA", o.device));
  }
  throw Error(fmt::format(
      "nothing measured yet for {} on {}{}: run `assay run --model {} --challenge {}{}{}`", o.model,
      o.challenge, o.device.empty() ? "" : " (" + o.device + ")", quoted(o.model),
      quoted(o.challenge), o.device.empty() ? "" : " --device " + o.device,
      o.results.empty() ? "" : " --results " + quoted(o.results)));
}

// The best entry; stale ones rank below all others.
const BoardRow* best_of(const std::vector<const BoardRow*>& entries, const Yardsticks& yardsticks) {
  return *std::max_element(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
    const auto place = [&](const BoardRow& row) {
      return std::tuple(!is_stale(row, yardsticks.of(row.key)), row.score.total.value_or(-1));
    };
    return place(*a) < place(*b);
  });
}

std::string attempt_name(const BoardRow& e) {
  const std::string& attempt = e.key.attempt;
  return attempt.empty() ? "(unnumbered)" : report::one_line(attempt);
}

const BoardRow* attempt_named(const std::vector<const BoardRow*>& entries, const ShowOptions& o) {
  std::string measured;
  for (const BoardRow* e : entries) {
    if (e->key.attempt == o.attempt) return e;
    measured += fmt::format("{}{} ({})", measured.empty() ? "" : ", ", attempt_name(*e),
                            to_string(e->key.device));
  }
  throw Error(fmt::format("no attempt {} of {} on {} was measured; these were: {}", o.attempt,
                          o.model, o.challenge, measured));
}

std::string others(const std::vector<const BoardRow*>& entries, const BoardRow* shown,
                   const Yardsticks& yardsticks) {
  std::string text;
  for (const BoardRow* e : entries) {
    if (e == shown) continue;
    text += fmt::format("also measured: attempt {} on {}: {}{}\n", attempt_name(*e),
                        to_string(e->key.device), report::grade_and_total(e->score),
                        currency_mark(*e, yardsticks.of(e->key)));
  }
  return text;
}

// Lists files that are not part of the answer, if the submission still exists.
std::string not_part_of_answer(const Context& context, const ShowOptions& o, const CellKey& key) {
  if (!o.results.empty()) return "";  // submissions of another board are unknown
  const fs::path folder = context.submissions() / key.model / key.challenge / key.attempt;
  if (!fs::is_directory(folder)) return "";
  const auto ignored =
      read_submissions(folder, key.model, key.challenge, key.attempt).front().ignored;
  if (ignored.empty()) return "";
  return fmt::format("not part of the answer: {}\n", some_of(ignored));
}

// With --gpu, regrades the evidence.
int show_evidence(const ShowOptions& o, const ChallengeSpec& spec, Evidence evidence,
                  const std::string& currency, const std::string& others, const ModelInfo& about) {
  BoardEntry& entry = evidence.entry;
  if (!o.json) entry.about = about;  // the current description
  if (!o.gpu.empty()) {
    entry.score = grade(spec_for(entry.cell.key.device, spec), entry.cell, o.gpu);
  }
  if (o.json) {
    fmt::print("{}", evidence_text(evidence));
  } else {
    fmt::print("{}{}", explain(entry, spec, currency), others);
  }
  return kDone;
}

int show(const Context& context, const ShowOptions& o) {
  const ChallengeSpec spec = load_specs(context, {o.challenge}).front();
  const fs::path results = results_folder(context, o.results);
  const Scoreboard board = open_board(results);
  const std::vector<ChallengeSpec> specs = load_specs(context, {});
  const Yardsticks yardsticks(board, specs);
  const auto rows = entries_for(board, o);
  if (rows.empty()) nothing_measured(context, board, o);
  BoardRow shown = *(o.attempt.empty() ? best_of(rows, yardsticks) : attempt_named(rows, o));
  const BoardRow* row = &board.entries.at(shown.key);
  if (!o.gpu.empty() && row->key.device != Device::sim) {
    throw Error(
        fmt::format("--gpu is for what was simulated, and this was measured on {}: add "
                    "--device sim",
                    to_string(row->key.device)));
  }
  if (const auto about = board.models.find(o.model); about != board.models.end())
    shown.about = about->second;
  const std::string beside =
      others(rows, row, yardsticks) +
      report::place_among_others(report::make_standings(board, specs, row->key.device), o.model,
                                 o.challenge) +
      report::opinions_text(judge::read_opinions(results, shown.key), shown) +
      not_part_of_answer(context, o, shown.key);
  const std::string currency = currency_note(*row, yardsticks.of(row->key));
  const store::FoundEvidence found = store::find_evidence(results, row->evidence);
  if (found.problem.empty()) {
    return show_evidence(o, spec,
                         parse_evidence(found.text, (results / row->evidence.path).string()),
                         currency, beside, shown.about);
  }
  const std::string remedy = fmt::format(
      "{}\n`{}` measures it again, with evidence", found.problem,
      measuring_command(shown.key) + (o.results.empty() ? "" : " --results " + quoted(o.results)));
  if (o.json || !o.gpu.empty()) throw Error(remedy);
  fmt::print(
      "{}{}\nThis is what the board knows. Cases, timings and the build are evidence, which is not "
      "here:\n{}.\n",
      explain(shown, spec, currency), beside, remedy);
  return kDone;
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("show", "Explain one score: every point, every failed case");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("MODEL", options->model, "folder below submissions/")->required();
  command->add_option("CHALLENGE", options->challenge, "folder below challenges/")->required();
  command->add_option("--attempt", options->attempt,
                      "which attempt, where a model made several (default: the best)");
  command
      ->add_option("--device", options->device,
                   "which device, where several were measured (default: the one with the highest "
                   "score, though scores of two devices do not compare)")
      ->check(CLI::IsMember({"cpu", "sim", "cuda"}));
  command
      ->add_option("--gpu", options->gpu,
                   "grade the stored counts of a simulated submission anew, as on this GPU")
      ->check(CLI::IsMember(gpu_names()));
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_flag("--json", options->json,
                    "the evidence as JSON, raw timings included; the format is described by\n"
                    "challenges/scoreboard.schema.json");
  command->footer(
      R"(
Nothing is run: the stored measurements are shown, and for each failed case the command
that replays it alone. A board without its evidence, as it is in the repository, knows the
score and the points; what is missing is said, with the command that makes it. What a judge
said of the answer (assay judge) stands in a section of its own and is not part of the score.

Exit status: 0 shown, 2 nothing is known of it, or another error.

Examples:
  assay show textbook CHALLENGE --device cpu
  assay show textbook CHALLENGE --device sim --gpu a100
  assay show flawed CHALLENGE --device sim --attempt 2
  assay show textbook CHALLENGE --json | python3 -m json.tool
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return show(context, *options); };
  });
}

}  // namespace assay::cli
