// assay remove: removes results from the board.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "store/remove_cells.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct RemoveOptions {
  std::string model, challenge, results;
};

// Throws Error, suggesting the nearest name, if nothing is measured under the given names.
void require_measured(const Scoreboard& board, const RemoveOptions& o) {
  std::set<std::string> challenges;
  for (const auto& [key, row] : board.entries) {
    if (key.model == o.model) challenges.insert(key.challenge);
  }
  if (challenges.empty()) throw Error(unknown_name("model", o.model, models_of(board)));
  if (o.challenge.empty() || challenges.contains(o.challenge)) return;
  throw Error(
      fmt::format("on the board, {} has no results for it: {}", o.model,
                  unknown_name("challenge", o.challenge, {challenges.begin(), challenges.end()})));
}

int remove(const Context& context, const RemoveOptions& o) {
  const fs::path results = results_folder(context, o.results);
  require_measured(open_board_to_change(results), o);
  const auto removed = store::remove_cells(results, [&](const CellKey& key) {
    return key.model == o.model && (o.challenge.empty() || key.challenge == o.challenge);
  });
  fmt::print("removed {} results of {}{}; `assay report` brings the rankings up to date\n",
             removed.size(), o.model, o.challenge.empty() ? "" : " for " + o.challenge);
  return kDone;
}

}  // namespace

void add_remove(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("remove", "Take results off the board");
  auto options = std::make_shared<RemoveOptions>();
  command->add_option("MODEL", options->model, "a model on the board")->required();
  command->add_option("CHALLENGE", options->challenge,
                      "only its results for this challenge (default: all)");
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->footer(
      R"(
The results go with their evidence, all attempts and devices. The submission stays: the
next `assay run` measures it again, unless its folder is removed too.

Exit status: 0 removed, 2 an error, such as a model that is not on the board.

Examples:
  assay remove oldmodel
  assay remove mymodel CHALLENGE
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return remove(context, *options); };
  });
}

}  // namespace assay::cli
