// assay export: exports results as flat tables, and challenges as tasks for other frameworks.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "records/evidence.h"
#include "report/tables.h"
#include "store/evidence_file.h"
#include "task/harbor.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using report::FlatRow;

struct ExportOptions {
  std::string format, table = "attempts", results, out;
  std::string into, package, image, language = "cpp";
  std::vector<std::string> challenges, models;
};

// Writes rows one by one, because a board's evidence may not fit into memory. Files are still
// replaced atomically: a temporary file is renamed at the end.
class RowWriter {
 public:
  RowWriter(const std::string& out, bool csv) : out_(out), csv_(csv) {
    if (out_.empty()) return;
    file_.open(temporary(), std::ios::binary | std::ios::trunc);
    if (!file_) fail_with_errno("write", temporary());
  }
  ~RowWriter() {
    std::error_code ignored;
    if (!out_.empty() && !finished_) fs::remove(temporary(), ignored);
  }
  RowWriter(const RowWriter&) = delete;

  void write(const FlatRow& row) {
    const std::string header = csv_ && rows_ == 0 ? report::csv_header(row) : "";
    const std::string text = header + (csv_ ? report::csv_line(row) : report::json_line(row));
    ++rows_;
    if (out_.empty()) {
      fmt::print("{}", text);
      return;
    }
    file_ << text;
    if (!file_) fail_with_errno("write", temporary());
  }

  std::size_t finish() {
    if (out_.empty()) return rows_;
    file_.close();
    if (!file_) fail_with_errno("write", temporary());
    replace_file(out_, temporary());
    finished_ = true;
    return rows_;
  }

 private:
  std::string temporary() const { return fmt::format("{}.{}.export.tmp", out_, ::getpid()); }

  std::string out_;
  bool csv_;
  std::ofstream file_;
  std::size_t rows_ = 0;
  bool finished_ = false;
};

bool is_wanted(const ExportOptions& o, const std::string& model) {
  return o.models.empty() || std::ranges::find(o.models, model) != o.models.end();
}

// Writes rows from each board row's evidence; returns how many rows had none.
std::size_t write_evidence_rows(const ExportOptions& o, const fs::path& results,
                                const compare::Field& field, RowWriter& writer) {
  std::size_t missing = 0;
  for (const compare::Player& player : field.players) {
    for (const compare::Cell& cell : player.cells) {
      for (const BoardRow* row : cell.attempts) {
        check_stop();
        const store::FoundEvidence found = store::find_evidence(results, row->evidence);
        if (!found.problem.empty()) {
          ++missing;
          continue;
        }
        const CellResult measured =
            parse_evidence(found.text, (results / row->evidence.path).string()).entry.cell;
        const auto rows =
            o.table == "cases" ? report::case_rows(measured) : report::timing_rows(measured);
        for (const FlatRow& r : rows) writer.write(r);
      }
    }
  }
  return missing;
}

// Counts rows without evidence in `missing`.
report::CodeOf code_in_evidence(const fs::path& results, std::size_t& missing) {
  return [&missing, results](const BoardRow& row) -> std::optional<CodeFacts> {
    check_stop();
    const store::FoundEvidence found = store::find_evidence(results, row.evidence);
    if (!found.problem.empty()) {
      ++missing;
      return std::nullopt;
    }
    return parse_evidence(found.text, (results / row.evidence.path).string()).entry.cell.code;
  };
}

int export_table(const Context& context, const ExportOptions& o) {
  if (!o.into.empty())
    throw Error("--into is for `assay export harbor`: a table goes to the file of --out");
  const fs::path results = results_folder(context, o.results);
  const Scoreboard board = open_board(results);
  require_on_board(o.models, board);
  const auto specs = load_specs(context, o.challenges);
  RowWriter writer(o.out, o.format == "csv");
  std::size_t missing = 0, without_code = 0;
  const report::CodeOf code_of = code_in_evidence(results, without_code);
  for (const Device device : compare::devices_of(board)) {
    compare::Field field = compare::make_field(board, specs, device);
    std::erase_if(field.players, [&](const compare::Player& p) { return !is_wanted(o, p.model); });
    if (o.table == "cases" || o.table == "timings") {
      missing += write_evidence_rows(o, results, field, writer);
      continue;
    }
    for (const FlatRow& row :
         o.table == "cells" ? report::cell_rows(field) : report::attempt_rows(field, code_of))
      writer.write(row);
  }
  const std::size_t rows = writer.finish();
  if (!o.out.empty()) fmt::print("wrote {} rows to {}\n", rows, o.out);
  if (rows == 0) tell("nothing to export: no such results on the board\n");
  if (missing > 0)
    tell(
        fmt::format("the evidence of {} attempts is missing: their rows are left out; `assay run` "
                    "makes evidence\n",
                    missing));
  if (without_code > 0)
    tell(
        fmt::format("the evidence of {} attempts is missing: their columns on code are empty; "
                    "`assay run` makes evidence\n",
                    without_code));
  return kDone;
}

int export_tasks(const Context& context, const ExportOptions& o) {
  if (o.into.empty() || o.package.empty()) {
    throw Error(
        "export harbor needs --into, a folder for the tasks, and --package, assay's .deb, which "
        "the "
        "tests install: scripts/package.sh makes it");
  }
  task::HarborOptions options;
  options.language = o.language == "cuda" ? Language::cuda : Language::cpp;
  options.package = o.package;
  options.image = o.image.empty() ? "debian:12" : o.image;
  if (options.language == Language::cuda && o.image.empty())
    throw Error("export harbor --language cuda needs --image: a Debian 12 that has nvcc");
  for (const ChallengeSpec& spec : load_specs(context, o.challenges)) {
    check_stop();
    const std::string name = spec.name + (options.language == Language::cuda ? "_cuda" : "");
    const fs::path folder = fs::path(o.into) / name;
    const PublicCases published = load_public_cases(spec);
    task::export_harbor({context.root, spec, challenge_of(spec), published}, options, folder);
    fmt::print("{}\n", folder.string());
  }
  return kDone;
}

int export_all(const Context& context, const ExportOptions& o) {
  return o.format == "harbor" ? export_tasks(context, o) : export_table(context, o);
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("export", "Results as flat tables; challenges as tasks of Harbor's");
  auto options = std::make_shared<ExportOptions>();
  command
      ->add_option("FORMAT", options->format,
                   "csv or jsonl: a table of the results; harbor: a folder for each challenge")
      ->required()
      ->check(CLI::IsMember({"csv", "jsonl", "harbor"}));
  command
      ->add_option("--table", options->table,
                   "cells: a row for each model, challenge and device; attempts: for each answer;\n"
                   "cases: for each of its cases; timings: for each repetition of a timed case")
      ->check(CLI::IsMember({"cells", "attempts", "cases", "timings"}))
      ->capture_default_str();
  command->add_option("-m,--model", options->models, "only these models")->allow_extra_args(false);
  command->add_option("-c,--challenge", options->challenges, "only these challenges")
      ->allow_extra_args(false);
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_option("-o,--out", options->out, "file for the table (default: standard output)");
  command->add_option("--into", options->into, "harbor: folder that gets the tasks");
  command->add_option("--package", options->package,
                      "harbor: assay's .deb, which scripts/package.sh makes");
  command->add_option("--language", options->language, "harbor: of the answers")
      ->check(CLI::IsMember({"cpp", "cuda"}))
      ->capture_default_str();
  command->add_option("--image", options->image,
                      "harbor: what the environment is built on (default: debian:12); for CUDA\n"
                      "an image with nvcc");
  command->footer(
      R"(
The columns are described in docs/file-formats.md. Cases and timings come from the
evidence. In CSV a text that a spreadsheet would take for a formula gets an apostrophe.
A task of Harbor's grades with `assay grade` and writes a hundredth of the score as reward;
its environment holds no assay, the tests bring it along.

Exit status: 0 exported, 2 an error.

Examples:
  assay export csv --table cells -o cells.csv
  assay export jsonl --table timings --model tuned
  assay export harbor --into tasks --package assay_0.1.0_amd64.deb
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return export_all(context, *options); };
  });
}

}  // namespace assay::cli
