// assay report: writes the rankings, a section of the readme and a document of their own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/boards.h"
#include "cli/context.h"
#include "cli/output.h"
#include "report/rankings.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string readme, rankings, results;
  bool check = false;
};

// What to write and where. `readme` is empty when no readme belongs to these results.
struct Targets {
  fs::path readme, rankings;
};

struct Document {
  fs::path file;
  std::string before, after;
};

fs::path results_folder(const Context& context, const Options& o) {
  return o.results.empty() ? context.results() : fs::path(o.results);
}

// The readme beside the results, if it is meant to show rankings: in a folder of a user's it may be about
// something else. Empty when there is none.
fs::path own_readme(const Context& context) {
  fs::path file = context.work / "README.md";
  if (!fs::exists(file)) return {};
  if (has_marker(read_file(file))) return file;
  tell(fmt::format("{} is left alone: it has no lines '{}' and '{}'\n", file.string(),
                   kSectionBegin, kSectionEnd));
  return {};
}

// The readme shows the results beside it: a board from elsewhere does not displace them unless the
// readme is named.
Targets find_targets(const Context& context, const Options& o) {
  Targets targets{o.readme, o.rankings};
  if (targets.readme.empty() && o.results.empty()) targets.readme = own_readme(context);
  if (targets.rankings.empty()) targets.rankings = results_folder(context, o) / "RANKINGS.md";
  return targets;
}

// An empty board is fine where nothing has run yet, but not in a folder that was named: a typing
// error would wipe the rankings.
Scoreboard load_board(const Context& context, const Options& o) {
  const fs::path folder = results_folder(context, o);
  if (!o.results.empty() && !has_board(folder)) {
    throw Error(fmt::format("no {}: `assay run --results {}` writes it",
                            store::board_path(folder).string(), o.results));
  }
  return open_board(folder);
}

fs::path resolved(const fs::path& file) { return fs::weakly_canonical(fs::absolute(file)); }

// How a link in one file names another file. Empty when there is no such file.
std::string link_from(const fs::path& file, const fs::path& other) {
  if (other.empty()) return "";
  return resolved(other).lexically_relative(resolved(file).parent_path()).string();
}

// Empty when there is none yet. A file that somebody else wrote is never overwritten.
std::string read_generated(const fs::path& file) {
  if (!fs::exists(file)) return "";
  std::string text = read_file(file);
  if (text.empty() || text.starts_with(kGenerated)) return text;
  throw Error(fmt::format(
      "{} was not written by `assay report`: move it away, or name another file with --rankings",
      file.string()));
}

std::vector<Document> documents(const Targets& targets, const Scoreboard& board,
                                const std::vector<ChallengeSpec>& specs) {
  std::vector<Document> all{
      {targets.rankings, read_generated(targets.rankings),
       rankings_document(board, specs, link_from(targets.rankings, targets.readme))}};
  if (targets.readme.empty()) return all;
  const std::string section =
      ranking_section(board, specs, link_from(targets.readme, targets.rankings));
  const std::string before = read_file(targets.readme);
  all.push_back(
      {targets.readme, before, replace_section(before, section, targets.readme.string())});
  return all;
}

int check(const std::vector<Document>& all) {
  int status = kDone;
  for (const Document& d : all) {
    if (d.before == d.after) continue;
    tell(fmt::format("{} is out of date: run `assay report` and commit it\n", d.file.string()));
    status = kCheckFailed;
  }
  return status;
}

void write(const Document& d) {
  if (d.before == d.after) return;
  require_writable_directory(resolved(d.file).parent_path());
  write_file_atomically(d.file, d.after);
  fmt::print("wrote {}\n", d.file.string());
}

int report(const Context& context, const Options& o) {
  const Scoreboard board = load_board(context, o);
  const auto all = documents(find_targets(context, o), board, load_specs(context));
  if (o.check && check(all) != kDone) return kCheckFailed;
  if (!o.check) {
    for (const Document& d : all) {
      check_stop();
      write(d);
    }
  }
  fmt::print("the rankings show the board as it is: {} results\n", board.entries.size());
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("report", "Write the rankings: README.md and RANKINGS.md");
  auto options = std::make_shared<Options>();
  command->add_option("--readme", options->readme,
                      "file that gets the overall tables, between its lines\n"
                      "<!-- assay:begin --> and <!-- assay:end --> (default: WORK/README.md,\n"
                      "if it has these lines and --results is not given)");
  command->add_option("--rankings", options->rankings,
                      "file that gets everything else, written whole (default: RANKINGS.md in\n"
                      "the folder of results)");
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_flag("--check", options->check,
                    "write nothing; exit with 1 when a file does not show the board as it is");
  command->footer(
      "\nReads the board and the challenges' specs, and nothing else: nothing is run, and the "
      "same\n"
      "board gives the same text. Of a large board the README shows the best 20 models; the\n"
      "rankings compare the best 20 head to head and list the best 100 of each challenge.\n"
      "\nExit status: 0 written or up to date, 1 --check found a stale file, 2 an error.\n"
      "\nExamples:\n"
      "  assay report                        after `assay run`\n"
      "  assay report --check                in continuous integration\n"
      "  assay report --results /tmp/r       another board, into /tmp/r/RANKINGS.md\n"
      "  assay report --results /tmp/r --readme X.md --rankings Y.md\n");
  command->callback([options, &action] {
    action = [options](const Context& context) { return report(context, *options); };
  });
}

}  // namespace assay::cli
