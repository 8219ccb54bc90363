// assay compare: compares models.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/comparison_options.h"
#include "cli/context.h"
#include "cli/output.h"
#include "grade/currency.h"
#include "records/evidence.h"
#include "report/comparison.h"
#include "report/terminal.h"
#include "store/evidence_file.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::vector<std::string> models, challenges;
  std::string results, device, by = "mean", solved = "correct";
  std::vector<std::size_t> k{1};
  std::vector<double> p{1};
  bool json = false;
};

// Facts from the evidence of two rows. If either has none, returns nothing and adds it to
// `missing`.
std::vector<compare::Fact> facts_of_evidence(const fs::path& results, const BoardRow& a,
                                             const BoardRow& b, const ChallengeSpec& spec,
                                             std::set<CellKey>& missing) {
  std::vector<CellResult> cells;
  for (const BoardRow* row : {&a, &b}) {
    const store::FoundEvidence found = store::find_evidence(results, row->evidence);
    if (!found.problem.empty()) {
      missing.insert(row->key);
      continue;
    }
    cells.push_back(parse_evidence(found.text, (results / row->evidence.path).string()).entry.cell);
  }
  if (cells.size() < 2) return {};
  return compare::resource_facts(cells[0], cells[1], spec);
}

void tell_missing(const std::set<CellKey>& missing) {
  if (missing.empty()) return;
  tell(fmt::format(
      "the evidence of {} results is not here: bytes and other resources of theirs are not "
      "compared;\n`assay run` makes it, for example `{}`\n",
      missing.size(), measuring_command(*missing.begin())));
}

void require_models(const Scoreboard& board, const std::vector<std::string>& models) {
  require_on_board(models, board);
  for (const std::string& model : models) {
    if (std::ranges::count(models, model) > 1)
      throw Error(fmt::format("{} is named twice: a model is compared with others", model));
  }
}

int compare_models(const Context& context, const CompareOptions& o) {
  const fs::path results = results_folder(context, o.results);
  const Scoreboard board = open_board(results);
  require_models(board, o.models);
  const auto specs = load_specs(context, o.challenges);
  report::ComparisonOptions options;
  options.by = figure_named(o.by);
  options.goal = compare::goal_from(o.solved);
  options.k = o.k;
  options.p = o.p;
  std::set<CellKey> missing;
  options.evidence = [&](const BoardRow& a, const BoardRow& b, const ChallengeSpec& spec) {
    return facts_of_evidence(results, a, b, spec, missing);
  };
  report::Page page;
  auto document = nlohmann::ordered_json::array();
  for (const Device device : compare::devices_of(board)) {
    if (!o.device.empty() && to_string(device) != o.device) continue;
    const compare::Field field = compare::make_field(board, specs, device);
    std::vector<const compare::Player*> players;
    for (const std::string& model : o.models) {
      if (const compare::Player* player = field.find(model)) players.push_back(player);
    }
    if (players.size() < 2) continue;
    report::add_comparison(page, field, players, options);
    if (o.json) document.push_back(report::comparison_json(field, players, options));
  }
  tell_missing(missing);
  if (const std::string stale = stale_text(count_stale(board, specs)); !stale.empty())
    tell(stale + "\n");
  const std::string text = page.to_terminal();
  if (text.empty()) {
    throw Error(
        fmt::format("no two of these models were measured on {}: `assay run` measures them",
                    o.device.empty() ? "the same device" : "the device '" + o.device + "'"));
  }
  if (o.json) {
    fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", text);
  }
  return kDone;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("compare", "Models side by side: who is better where, and why");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("MODEL", options->models, "two to eight models, as the board names them")
      ->required()
      ->expected(2, 8);
  command->add_option("-c,--challenge", options->challenges, "only these challenges");
  command->add_option("--device", options->device, "only this device")
      ->check(CLI::IsMember({"cpu", "sim", "cuda"}));
  add_figure_option(*command, options->by);
  command
      ->add_option("--solved", options->solved,
                   "what counts as a solution: correct, built, core (no core case failed),\n"
                   "a score such as 'score>=80', or a verdict")
      ->capture_default_str();
  command
      ->add_option("-k", options->k, "of pass@k, the chance that one of k attempts is a solution")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(std::size_t{1}, std::size_t{10000}))
      ->default_str("1");
  command
      ->add_option(
          "-p", options->p,
          "of fast_p, the share that is correct and more than p times as fast as naive and\n"
          "as par, or on the simulated GPU as the floor")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::NonNegativeNumber)
      ->default_str("1");
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_flag("--json", options->json, "print JSON, see docs/file-formats.md");
  command->footer(
      R"(
Per challenge the scores, their difference with its 95 % interval, and who is better: a
difference counts when its interval does not contain zero. Of two models also what decided:
cases, capabilities, speed and bytes that differ. Devices are compared apart. Nothing is
run.

Exit status: 0 compared, 2 nothing to compare, or another error.

Examples:
  assay compare tuned textbook
  assay compare tuned textbook flawed --device cpu
  assay compare tuned textbook --solved 'score>=80' -k 1,4 -p 0.5,1
  assay compare tuned textbook --by best --json | python3 -m json.tool
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return compare_models(context, *options); };
  });
}

}  // namespace assay::cli
