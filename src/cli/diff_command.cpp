// assay diff: compares the cells of two boards.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "assay/error.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "cli/git_file.h"
#include "compare/board_diff.h"
#include "grade/grade.h"
#include "records/scoreboard.h"
#include "report/figures.h"
#include "report/page.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using compare::CellChange;

struct DiffOptions {
  std::string before, after;
  std::vector<std::string> models, challenges;  // empty: all
  double least = 0;
  bool all = false, json = false, across_specs = false;
};

Scoreboard board_of_revision(const Context& context, const std::string& revision) {
  const auto commit = commit_named(context.work, revision);
  if (!commit) {
    throw Error(
        fmt::format("'{}' is not a folder of results, a scoreboard.json or a revision of a "
                    "git repository around {}",
                    revision, context.work.string()));
  }
  const std::string path = "results/scoreboard.json";
  const auto text = file_at(context.work, *commit, path);
  if (!text) throw Error(fmt::format("the revision {} has no {}", revision, path));
  return parse_scoreboard(*text, fmt::format("{}:{}", revision, path));
}

Scoreboard board_named(const Context& context, const std::string& name) {
  if (fs::is_directory(name)) {
    if (has_board(name)) return open_board(name);
    if (has_board(fs::path(name) / "results")) return open_board(fs::path(name) / "results");
    throw Error(fmt::format("{} holds no scoreboard.json", name));
  }
  if (fs::exists(name)) return parse_scoreboard(read_file(name), name);
  return board_of_revision(context, name);
}

// A misspelt name would find no difference.
void require_known(const DiffOptions& o, const Scoreboard& before, const Scoreboard& after) {
  std::set<std::string> models, challenges;
  for (const Scoreboard* board : {&before, &after}) {
    for (const auto& [key, row] : board->entries) {
      models.insert(key.model);
      challenges.insert(key.challenge);
    }
  }
  const auto require = [](const char* kind, const std::vector<std::string>& names,
                          const std::set<std::string>& known) {
    for (const std::string& name : names) {
      if (!known.contains(name))
        throw Error("on these boards: " + unknown_name(kind, name, {known.begin(), known.end()}));
    }
  };
  require("model", o.models, models);
  require("challenge", o.challenges, challenges);
}

Scoreboard narrowed(Scoreboard board, const DiffOptions& o) {
  std::erase_if(board.entries, [&](const auto& entry) {
    const auto is_wanted = [](const std::vector<std::string>& wanted, const std::string& name) {
      return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
    };
    return !is_wanted(o.models, entry.first.model) ||
           !is_wanted(o.challenges, entry.first.challenge);
  });
  return board;
}

std::string difference_text(const CellChange& c) {
  if (!c.difference) return "-";
  const Interval i = c.difference->interval;
  return fmt::format("{:+.1f} ({:+.1f} to {:+.1f})", shown(c.difference->value) + 0.0,
                     shown(i.low) + 0.0, shown(i.high) + 0.0);
}

std::string summary_of(const std::vector<CellChange>& changes) {
  std::map<CellChange::Kind, std::size_t> counts;
  for (const CellChange& c : changes) ++counts[c.kind];
  std::string text;
  for (const auto& [kind, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(kind));
  return fmt::format("{} cells{}{}\n", changes.size(), text.empty() ? "" : ": ", text);
}

void print_text(const std::vector<CellChange>& changes, bool all) {
  report::Page page;
  std::vector<report::Page::Row> rows;
  for (const CellChange& c : changes) {
    const bool quiet = c.kind == CellChange::Kind::same || c.kind == CellChange::Kind::within_noise;
    if (quiet && !all) continue;
    const auto score = [](const BoardRow* row) {
      return row == nullptr ? std::string("-") : report::grade_and_total(row->score);
    };
    rows.push_back({to_string(c.kind), to_string(c.key), score(c.before), score(c.after),
                    difference_text(c), c.remark});
  }
  page.table({"change", "cell", "before", "after", "difference (95 %)", "remark"}, "llrrrl", rows);
  fmt::print("{}{}{}", page.to_terminal(), rows.empty() ? "" : "\n", summary_of(changes));
}

void print_json(const std::vector<CellChange>& changes) {
  auto document = nlohmann::ordered_json::array();
  for (const CellChange& c : changes) {
    const auto total = [](const BoardRow* row) -> nlohmann::ordered_json {
      if (row == nullptr || !row->score.total) return nullptr;
      return *row->score.total;
    };
    nlohmann::ordered_json j{{"change", to_string(c.kind)},
                             {"model", c.key.model},
                             {"challenge", c.key.challenge},
                             {"attempt", c.key.attempt},
                             {"device", to_string(c.key.device)},
                             {"before", total(c.before)},
                             {"after", total(c.after)}};
    if (c.difference) {
      j["difference"] = c.difference->value;
      j["interval"] = {c.difference->interval.low, c.difference->interval.high};
    }
    if (!c.remark.empty()) j["remark"] = c.remark;
    document.push_back(std::move(j));
  }
  fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int diff(const Context& context, const DiffOptions& o) {
  Scoreboard before = board_named(context, o.before);
  Scoreboard after =
      o.after.empty() ? open_board(context.results()) : board_named(context, o.after);
  require_known(o, before, after);
  before = narrowed(std::move(before), o);
  after = narrowed(std::move(after), o);
  const auto changes = compare::diff_boards(before, after, o.least, o.across_specs);
  if (o.json) {
    print_json(changes);
  } else {
    print_text(changes, o.all);
  }
  return std::ranges::any_of(changes, &compare::is_regression) ? kCheckFailed : kDone;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("diff", "What changed from one board to another");
  auto options = std::make_shared<DiffOptions>();
  command
      ->add_option("OLD", options->before,
                   "a folder of results, a scoreboard.json, or a revision of the git repository\n"
                   "around WORK, of which results/scoreboard.json is read")
      ->required();
  command->add_option("NEW", options->after, "likewise (default: WORK/results)");
  command->add_option("-m,--model", options->models, "only this model; repeatable")
      ->allow_extra_args(false);
  command->add_option("-c,--challenge", options->challenges, "only this challenge; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--least", options->least,
                   "points that a difference must have besides being beyond noise")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_flag("--across-specs", options->across_specs,
                    "compare scores of different versions of a spec too");
  command->add_flag("--all", options->all, "show cells that did not change, too");
  command->add_flag("--json", options->json, "print JSON: a list of all cells");
  command->footer(
      R"(
A cell is better or worse when the 95 % interval of the difference does not contain zero;
else it is within noise. Scores against different versions of a spec, and a quick score
beside a full one, are not compared.

Exit status: 0 nothing is worse, gone or no longer graded; 1 something is; 2 an error.

Examples:
  assay diff HEAD                        after `assay run`, before a commit
  assay diff main /tmp/results
  assay diff old/results new/results --least 0.5 --json
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return diff(context, *options); };
  });
}

}  // namespace assay::cli
