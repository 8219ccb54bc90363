// assay report: writes the rankings, a section of the readme and a document of their own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <set>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/comparison_options.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/published_files.h"
#include "judge/opinion_file.h"
#include "records/scoreboard.h"
#include "report/analysis.h"
#include "report/rankings.h"
#include "store/mutation_record.h"
#include "submission/submission.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::string readme, rankings, analysis, results, submissions, by = "mean";
  bool check = false;
};

// What to write and where. `readme` is empty when no readme belongs to these results.
struct Targets {
  fs::path results, readme, rankings, analysis;
};

struct Document {
  fs::path file;
  std::string before, after;
};

fs::path board_folder(const Context& context, const ReportOptions& o) {
  return o.results.empty() ? context.results() : fs::path(o.results);
}

// The readme beside the results, if it is meant to show rankings: in a folder of a user's it may be
// about something else. Empty when there is none.
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
Targets find_targets(const Context& context, const ReportOptions& o) {
  Targets targets{board_folder(context, o), o.readme, o.rankings, o.analysis};
  if (targets.readme.empty() && o.results.empty()) targets.readme = own_readme(context);
  if (targets.rankings.empty()) targets.rankings = board_folder(context, o) / "RANKINGS.md";
  if (targets.analysis.empty())
    targets.analysis = (o.results.empty() ? context.work : fs::path(o.results)) / "analysis";
  return targets;
}

// An empty board is fine where nothing has run yet, but not in a folder that was named: a typing
// error would wipe the rankings.
Scoreboard load_board(const Context& context, const ReportOptions& o) {
  const fs::path folder = board_folder(context, o);
  if (!o.results.empty() && !has_board(folder)) {
    throw Error(fmt::format("no {}: `assay run --results {}` writes it",
                            store::board_path(folder).string(), o.results));
  }
  return open_board(folder);
}

// What is known of the models today: the files beside these submissions. Where results are of
// another folder only submissions that are named are theirs.
std::map<std::string, ModelInfo> models_today(const Context& context, const ReportOptions& o) {
  std::map<std::string, ModelInfo> today;
  const fs::path root = o.submissions.empty() ? context.submissions() : fs::path(o.submissions);
  if (o.submissions.empty() && (!o.results.empty() || !fs::is_directory(root))) return today;
  std::error_code ec;
  for (const auto& folder : fs::directory_iterator(root, ec)) {
    const std::string model = folder.path().filename();
    if (!objection_to_model(model).empty() || !folder.is_directory()) continue;
    std::string fault;
    const ModelInfo about = read_model_info(root, model, fault);
    if (fault.empty()) {
      today[model] = about;
    } else {
      tell(fmt::format("warning: {}\n", fault));
    }
  }
  if (ec) throw Error(fmt::format("cannot read folder {}: {}", root.string(), ec.message()));
  return today;
}

fs::path resolved(const fs::path& file) { return fs::weakly_canonical(fs::absolute(file)); }

// How a link in one file names another file. Empty when there is no such file.
std::string link_from(const fs::path& file, const fs::path& other) {
  if (other.empty()) return "";
  return resolved(other).lexically_relative(resolved(file).parent_path()).string();
}

// Empty when there is none yet. A file that somebody else wrote is never overwritten.
std::string read_generated(const fs::path& file, const char* option) {
  if (!fs::exists(file)) return "";
  std::string text = read_file(file);
  if (text.empty() || text.starts_with(kGenerated)) return text;
  throw Error(
      fmt::format("{} was not written by `assay report`: move it away, or name another "
                  "place with {}",
                  file.string(), option));
}

// Pages of before that the board has no use for any more: of a model that was removed, say. Only
// what this command wrote.
void add_stale_pages(const fs::path& folder, std::vector<Document>& all) {
  if (!fs::is_directory(folder)) return;
  std::set<fs::path> current;
  for (const Document& d : all) current.insert(resolved(d.file));
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".md") continue;
    if (current.contains(resolved(entry.path()))) continue;
    const std::string text = read_file(entry.path());
    if (text.starts_with(kGenerated)) all.push_back({entry.path(), text, ""});
  }
}

void add_analysis(const Targets& targets, const Scoreboard& board,
                  const std::vector<ChallengeSpec>& specs, compare::By by,
                  std::vector<Document>& all) {
  const report::AnalysisOptions options{
      by, link_from(targets.analysis / "README.md", targets.rankings),
      read_published(targets.results), judge::read_opinions(targets.results)};
  for (const auto& [path, text] : report::analysis_pages(board, specs, options)) {
    const fs::path file = targets.analysis / path;
    all.push_back({file, read_generated(file, "--analysis"), text});
  }
  add_stale_pages(targets.analysis, all);
}

std::vector<Document> documents(const Targets& targets, const Scoreboard& board,
                                const std::vector<ChallengeSpec>& specs, compare::By by) {
  const auto oracle = store::read_mutation_record(targets.results);
  std::vector<Document> all{
      {targets.rankings, read_generated(targets.rankings, "--rankings"),
       rankings_document(board, specs, link_from(targets.rankings, targets.readme), by, oracle)}};
  add_analysis(targets, board, specs, by, all);
  if (targets.readme.empty()) return all;
  const std::string section =
      ranking_section(board, specs, link_from(targets.readme, targets.rankings), by, oracle);
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
  if (d.after.empty()) {
    fs::remove(d.file);
    fmt::print("removed {}\n", d.file.string());
    return;
  }
  require_writable_directory(resolved(d.file).parent_path());
  write_file_atomically(d.file, d.after);
  fmt::print("wrote {}\n", d.file.string());
}

// The board says of models what is known today, so that it is whole where it goes.
void write_descriptions(const fs::path& folder, const std::map<std::string, ModelInfo>& today) {
  try {
    require_writable_directory(folder);
    store::describe_models(folder, today);
    fmt::print("wrote {}\n", store::board_path(folder).string());
  } catch (const Error& e) {
    tell(fmt::format("the board describes models as before: {}\n", e.what()));
  }
}

int report(const Context& context, const ReportOptions& o) {
  Scoreboard board = load_board(context, o);
  const auto today = models_today(context, o);
  const bool described_anew = describe(board, today);
  const auto all =
      documents(find_targets(context, o), board, load_specs(context), figure_named(o.by));
  if (o.check && described_anew) {
    tell(fmt::format("{} describes models as they were: run `assay report` and commit it\n",
                     store::board_path(board_folder(context, o)).string()));
  }
  if (o.check && (check(all) != kDone || described_anew)) return kCheckFailed;
  if (!o.check) {
    if (described_anew) write_descriptions(board_folder(context, o), today);
    for (const Document& d : all) {
      check_stop();
      write(d);
    }
  }
  fmt::print("the rankings show the board as it is: {} results\n", board.entries.size());
  if (!o.check) fmt::print("{}", where_the_site_is(board_folder(context, o), o.results));
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("report", "Write the rankings: README.md, RANKINGS.md and analysis/");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("--readme", options->readme,
                      "file that gets the overall tables, between its lines\n"
                      "<!-- assay:begin --> and <!-- assay:end --> (default: WORK/README.md,\n"
                      "if it has these lines and --results is not given)");
  command->add_option("--rankings", options->rankings,
                      "file that gets everything else, written whole (default: RANKINGS.md in\n"
                      "the folder of results)");
  command->add_option("--analysis", options->analysis,
                      "folder that gets a page per challenge, per model and per pair that\n"
                      "matters, the traps, the takeaways and the opinions (default:\n"
                      "WORK/analysis, or with --results the folder analysis in it)");
  add_figure_option(*command, options->by);
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_option("--submissions", options->submissions,
                      "folder of models, whose model.json say who they are today (default:\n"
                      "WORK/submissions, if --results is not given)");
  command->add_flag("--check", options->check,
                    "write nothing; exit with 1 when a file does not show the board as it is");
  command->footer(
      "\nReads the board, the challenges' specs, grades and opinions of others beside the board, "
      "and\n"
      "what each submissions/MODEL/model.json says about a model, and nothing else: nothing is "
      "run,\n"
      "and the same files give the same text.\n"
      "What it reads about models goes on the board too, so that it says so where it is merged.\n"
      "Of a large board the README shows the best 20 models; the rankings compare the best 20\n"
      "head to head and list the best 100 of each challenge; 50 models of each device have a page\n"
      "of their own. Pages of models that are gone are removed.\n"
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
