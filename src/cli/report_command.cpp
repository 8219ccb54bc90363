// assay report: writes the rankings into the readme.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "grade/scoreboard.h"
#include "report/markdown.h"
#include "util/files.h"

namespace assay::cli {
namespace {

struct Options {
  std::string readme, results;
  bool check = false;
};

namespace fs = std::filesystem;

// An empty board is fine where nothing has run yet, but not in a folder that was named: a typing
// error would wipe the rankings.
Scoreboard load_board(const Context& context, const std::string& folder) {
  if (folder.empty()) return load_scoreboard(context.results() / "scoreboard.json");
  const fs::path file = fs::path(folder) / "scoreboard.json";
  if (!fs::exists(file)) {
    throw Error(fmt::format("no {}: `assay run --results {}` writes it", file.string(), folder));
  }
  return load_scoreboard(file);
}

// What the rankings go into where there is no readme yet, as in the folder of an installed assay's user.
std::string new_readme() {
  return fmt::format("# Rankings\n\n{}\n{}\n", kSectionBegin, kSectionEnd);
}

int report(const Context& context, const Options& o) {
  const fs::path readme = o.readme.empty() ? context.work / "README.md" : fs::path(o.readme);
  const Scoreboard board = load_board(context, o.results);
  const std::string before = fs::exists(readme) ? read_file(readme) : "";
  const std::string after =
      replace_section(before.empty() ? new_readme() : before,
                      ranking_section(board, load_specs(context)), readme.string());
  if (before == after) {
    fmt::print("{} is up to date ({} results)\n", readme.string(), board.entries.size());
    return kDone;
  }
  if (o.check) {
    fmt::print(stderr, "{} is out of date: run `assay report` and commit it\n", readme.string());
    return kCheckFailed;
  }
  write_file_atomically(readme, after);
  fmt::print("wrote the rankings of {} results into {}\n", board.entries.size(), readme.string());
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("report", "write the rankings into README.md");
  auto options = std::make_shared<Options>();
  command->add_option("--readme", options->readme,
                      "file to write into (default: WORK/README.md); the rankings replace\n"
                      "what stands between the lines <!-- assay:begin --> and <!-- assay:end -->;\n"
                      "a file that does not exist is begun");
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_flag(
      "--check", options->check,
      "write nothing; exit with 1 when the file does not show the scoreboard as it is");
  command->footer(
      "\nThe rankings are a function of the scoreboard and the challenges' specs alone: nothing "
      "is\n"
      "run, and the same scoreboard gives the same text.\n"
      "\nExamples:\n"
      "  assay report                                  after `assay run`\n"
      "  assay report --check                          in continuous integration\n"
      "  assay report --results /tmp/r --readme X.md   another board into another file\n");
  command->callback([options, &action] {
    action = [options](const Context& context) { return report(context, *options); };
  });
}

}  // namespace assay::cli
