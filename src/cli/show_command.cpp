// assay show: why a submission has its score.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "cli/context.h"
#include "grade/grade.h"
#include "grade/json_text.h"
#include "grade/scoreboard.h"
#include "report/figures.h"
#include "report/standings.h"
#include "report/terminal.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string model, challenge, results, attempt, device, gpu;
  bool json = false;
};

// Models of the board and of the submissions folder.
std::vector<std::string> known_models(const Context& context, const Scoreboard& board) {
  std::set<std::string> models;
  for (const auto& [key, entry] : board.entries) models.insert(key.model);
  if (fs::is_directory(context.submissions())) {
    for (const auto& folder : fs::directory_iterator(context.submissions())) {
      if (folder.is_directory()) models.insert(folder.path().filename());
    }
  }
  return {models.begin(), models.end()};
}

// Entries of the model and challenge, on the device when one is named, in the order of attempts.
std::vector<const BoardEntry*> entries_for(const Scoreboard& board, const Options& o) {
  std::vector<const BoardEntry*> found;
  for (const auto& [key, entry] : board.entries) {
    if (key.model != o.model || key.challenge != o.challenge) continue;
    if (o.device.empty() || to_string(key.device) == o.device) found.push_back(&entry);
  }
  std::stable_sort(found.begin(), found.end(), [](const BoardEntry* a, const BoardEntry* b) {
    return report::attempt_before(a->cell.key.attempt, b->cell.key.attempt);
  });
  return found;
}

[[noreturn]] void nothing_measured(const Context& context, const Scoreboard& board,
                                   const Options& o) {
  const auto models = known_models(context, board);
  if (std::find(models.begin(), models.end(), o.model) == models.end()) {
    throw Error(unknown_name("model", o.model, models));
  }
  if (!fs::exists(context.submissions() / o.model / o.challenge)) {
    throw Error(fmt::format("{} has no submission for {}: put one into {}", o.model, o.challenge,
                            (context.submissions() / o.model / o.challenge).string()));
  }
  throw Error(fmt::format(
      "nothing measured yet for {} on {}{}: run `assay run --model {} "
      "--challenge {}`",
      o.model, o.challenge, o.device.empty() ? "" : " (" + o.device + ")", o.model, o.challenge));
}

const BoardEntry* best_of(const std::vector<const BoardEntry*>& entries) {
  return *std::max_element(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
    return a->score.total.value_or(-1) < b->score.total.value_or(-1);
  });
}

std::string attempt_name(const BoardEntry& e) {
  const std::string& attempt = e.cell.key.attempt;
  return attempt.empty() ? "(unnumbered)" : report::one_line(attempt);
}

const BoardEntry* attempt_named(const std::vector<const BoardEntry*>& entries, const Options& o) {
  std::string measured;
  for (const BoardEntry* e : entries) {
    if (e->cell.key.attempt == o.attempt) return e;
    measured += (measured.empty() ? "" : ", ") + attempt_name(*e);
  }
  throw Error(fmt::format("no attempt {} of {} on {} was measured; these were: {}", o.attempt,
                          o.model, o.challenge, measured));
}

std::string others(const std::vector<const BoardEntry*>& entries, const BoardEntry* shown) {
  std::string text;
  for (const BoardEntry* e : entries) {
    if (e == shown) continue;
    text += fmt::format("also measured: attempt {} on {}: {}\n", attempt_name(*e),
                        to_string(e->cell.key.device), report::grade_and_total(e->score));
  }
  return text;
}

int show(const Context& context, const Options& o) {
  const ChallengeSpec spec = load_specs(context, {o.challenge}).front();
  const fs::path results = o.results.empty() ? context.results() : fs::path(o.results);
  const Scoreboard board = load_scoreboard(results / "scoreboard.json");
  const auto entries = entries_for(board, o);
  if (entries.empty()) nothing_measured(context, board, o);
  const BoardEntry* entry = o.attempt.empty() ? best_of(entries) : attempt_named(entries, o);
  const BoardEntry* measured = entry;
  BoardEntry regraded = *entry;
  if (!o.gpu.empty()) {
    regraded.score = grade(spec_for(entry->cell.key.device, spec), entry->cell, o.gpu);
    entry = &regraded;
  }
  if (o.json) {
    fmt::print("{}", json_text(to_json(*entry)));
  } else {
    fmt::print("{}{}", explain(*entry, spec), others(entries, measured));
  }
  return kDone;
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("show", "Explain one score: every point, every failed case");
  auto options = std::make_shared<Options>();
  command->add_option("model", options->model, "folder below submissions/")->required();
  command->add_option("challenge", options->challenge, "folder below challenges/")->required();
  command->add_option("--attempt", options->attempt,
                      "which attempt, where a model made several (default: the best)");
  command->add_option("--device", options->device, "which device, where several were measured");
  command
      ->add_option("--gpu", options->gpu,
                   "grade the stored counts of a simulated submission anew, as on this GPU")
      ->check(CLI::IsMember(gpu_names()));
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_flag("--json", options->json,
                    "the stored entry as JSON, raw timings included; the format is described by\n"
                    "challenges/scoreboard.schema.json");
  command->footer(
      "\nNothing is run: the stored measurements are shown, and for each failed case the command\n"
      "that replays it alone.\n"
      "\nExit status: 0 shown, 2 nothing is known of it, or another error.\n"
      "\nExamples:\n"
      "  assay show textbook CHALLENGE --device cpu\n"
      "  assay show textbook CHALLENGE --device sim --gpu a100\n"
      "  assay show flawed CHALLENGE --device sim --attempt 2\n"
      "  assay show textbook CHALLENGE --json | python3 -m json.tool\n");
  command->callback([options, &action] {
    action = [options](const Context& context) { return show(context, *options); };
  });
}

}  // namespace assay::cli
