// assay import: imports published grades, to show beside measured ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "cli/published_files.h"
#include "report/published.h"
#include "util/files.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string file, source, name, results;
  bool dry_run = false;
};

// The user names a published file, and its page is named after it: only plain names are allowed.
std::string plain_name(const ImportOptions& o) {
  std::string name = o.name.empty() ? fs::path(o.file).stem().string() : o.name;
  const bool plain = !name.empty() && name[0] != '.' && name[0] != '-' && name.size() <= 80 &&
                     name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_.-") == std::string::npos;
  if (plain) return name;
  throw Error(
      fmt::format("'{}' cannot name a file of results: give a name of letters, digits, '_', "
                  "'-' and '.' with --name",
                  name));
}

int import_grades(const Context& context, const ImportOptions& o) {
  const std::string name = plain_name(o);
  const compare::Published published =
      compare::parse_published(read_file(o.file), o.file, o.source);
  const fs::path results = o.results.empty() ? context.results() : fs::path(o.results);
  report::Page page;
  page.heading(1, "Published grades: " + name);
  report::add_published(page, published, open_board(results), load_specs(context));
  fmt::print("{}", page.to_terminal());
  if (o.dry_run) return kDone;
  const fs::path file = published_folder(results) / (name + ".json");
  const bool replaced = fs::exists(file);
  require_writable_directory(file.parent_path());
  write_file_atomically(file, compare::published_text(published));
  fmt::print("\n{} {}; `assay report` writes its page\n", replaced ? "replaced" : "wrote",
             file.string());
  return kDone;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("import", "Published grades beside measured ones");
  auto options = std::make_shared<ImportOptions>();
  command
      ->add_option(
          "FILE", options->file,
          "JSON (see docs/file-formats.md), or CSV with the columns model, challenge, grade")
      ->required();
  command->add_option("--source", options->source,
                      "where the grades are from; must be given where FILE does not say it");
  command->add_option("--name", options->name, "what to call them (default: the name of FILE)");
  command->add_option("--results", options->results,
                      "folder of results that gets them, in published/ (default: WORK/results)");
  command->add_flag("--dry-run", options->dry_run, "print the tables and write nothing");
  command->footer(
      R"(
Grades are letters, A+ to F, or points from 0 to 100. Averages and ranks are recomputed
from them and compared with the published ranking, if FILE has one; contradictions are
named. The board is not touched: published grades enter no ranking of assay's.

Exit status: 0 done, whatever they contradict; 2 FILE cannot be read, or another error.

Examples:
  assay import results/published/llm_programming_tests.json --dry-run
  assay import grades.csv --source 'Smith 2026, table 3' --name smith_2026
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return import_grades(context, *options); };
  });
}

}  // namespace assay::cli
