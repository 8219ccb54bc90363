#include "report/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "compare/fast_p.h"
#include "grade/currency.h"
#include "records/lookup.h"
#include "spec/spec.h"

namespace assay::report {
namespace {

constexpr std::array kDimensionNames{"correctness", "accuracy",     "performance",
                                     "resources",   "completeness", "tests"};

// JSON has no such numbers: they are strings here, as in all results.
FlatRow number_or_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

FlatRow number_or_null(const std::optional<double>& v) {
  return v ? number_or_text(*v) : FlatRow();
}

FlatRow key_columns(const CellKey& key) {
  return {{"model", key.model},
          {"challenge", key.challenge},
          {"device", to_string(key.device)},
          {"attempt", key.attempt}};
}

void add_estimate(FlatRow& row, const std::string& name, const std::optional<Estimate>& e) {
  row[name] = e ? number_or_text(e->value) : FlatRow();
  row[name + "_low"] = e ? number_or_text(e->interval.low) : FlatRow();
  row[name + "_high"] = e ? number_or_text(e->interval.high) : FlatRow();
}

FlatRow attempt_row(const BoardRow& r, bool partial, bool counted, const std::string& stale) {
  FlatRow row = key_columns(r.key);
  row["verdict"] = code(r.score.verdict);
  row["correct"] = compare::is_correct(r);
  row["score"] = number_or_null(r.score.total);
  row["score_low"] = r.score.total ? number_or_text(r.score.interval.low) : FlatRow();
  row["score_high"] = r.score.total ? number_or_text(r.score.interval.high) : FlatRow();
  row["letter"] = r.score.letter;
  row["capped"] = r.score.capped;
  row["partial"] = partial;
  row["quick"] = is_quick(r.score);
  row["counted"] = counted;  // among the attempts that the figures use
  row["stale"] = stale;      // why it is stale; empty if it is current
  row["revision"] = r.revision;
  for (const char* name : kDimensionNames) {
    const Dimension* found = nullptr;
    for (const Dimension& d : r.score.dimensions) {
      if (d.name == name) found = &d;
    }
    row[name] = found == nullptr ? FlatRow() : number_or_null(found->points);
    row[std::string(name) + "_max"] = found == nullptr ? FlatRow() : number_or_text(found->max);
  }
  add_estimate(row, "speed_par", compare::speed_against(r, compare::Reference::par));
  add_estimate(row, "speed_naive", compare::speed_against(r, compare::Reference::naive));
  add_estimate(row, "speed_floor", compare::speed_against(r, compare::Reference::floor));
  row["modelled_on"] = r.score.modelled_on;
  row["failed_cases"] = r.failed ? FlatRow(r.failed->size()) : FlatRow();
  row["reason"] = r.reason;
  row["seed"] = std::to_string(r.seed);
  row["source_hash"] = r.source_hash;
  row["spec_hash"] = r.spec_hash;
  row["isolation"] = r.isolation;
  row["target"] = r.target;
  row["finished_at"] = r.finished_at;
  row["assay_version"] = r.assay_version;
  row["cpu"] = r.machine.cpu;
  row["gpu"] = r.machine.gpu ? r.machine.gpu->name : "";
  return row;
}

FlatRow value_of(const std::optional<CodePlace>& place) {
  return place ? FlatRow(place->value) : FlatRow();
}

void add_code(FlatRow& row, const std::optional<CodeFacts>& known) {
  const auto count = [&](const char* name, std::int64_t CodeFacts::*which) {
    row[name] = known ? FlatRow((*known).*which) : FlatRow();
  };
  count("files", &CodeFacts::files);
  count("code_lines", &CodeFacts::code_lines);
  count("comment_lines", &CodeFacts::comment_lines);
  count("blank_lines", &CodeFacts::blank_lines);
  count("duplicated_lines", &CodeFacts::duplicated_lines);
  count("functions", &CodeFacts::functions);
  row["longest_function"] = known ? value_of(known->longest) : FlatRow();
  row["deepest_nesting"] = known ? value_of(known->deepest) : FlatRow();
  row["highest_complexity"] = known ? value_of(known->most_complex) : FlatRow();
  row["compiler_warnings"] = known && known->warnings ? FlatRow(known->warnings->count) : FlatRow();
}

std::string csv_field(const FlatRow& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  constexpr std::string_view kFormula = "=+-@\t\r";
  const bool number = text == "inf" || text == "nan" || text == "-inf";
  if (!text.empty() && kFormula.find(text[0]) != std::string_view::npos && !number)
    text.insert(0, "'");
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::vector<FlatRow> cell_rows(const compare::Field& field) {
  std::vector<FlatRow> rows;
  for (const compare::Player& player : field.players) {
    for (std::size_t c = 0; c < player.cells.size(); ++c) {
      const compare::Cell& cell = player.cells[c];
      if (cell.attempts.empty()) continue;
      const bool any = cell.count() > 0;
      FlatRow row{{"model", player.model},
                  {"challenge", field.challenges[c]->name},
                  {"device", to_string(field.device)},
                  {"partial", field.is_partial(c)},
                  {"attempts", cell.attempts.size()},
                  {"counted", cell.count()},
                  {"stale", cell.stale.size()}};
      for (const compare::By by : {compare::By::mean, compare::By::best, compare::By::first})
        add_estimate(row, to_string(by), any ? std::optional(cell.figure(by)) : std::nullopt);
      row["worst"] = any ? number_or_text(cell.worst()) : FlatRow();
      row["deviation"] = cell.count() > 1 ? number_or_text(cell.spread()) : FlatRow();
      std::size_t correct = 0;
      for (const BoardRow* r : cell.graded) correct += compare::is_correct(*r) ? 1 : 0;
      row["correct"] = correct;
      row["verdict"] = code(cell.best->score.verdict);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<FlatRow> attempt_rows(const compare::Field& field, const CodeOf& code_of) {
  std::vector<FlatRow> rows;
  for (const compare::Player& player : field.players) {
    for (std::size_t c = 0; c < player.cells.size(); ++c) {
      const compare::Cell& cell = player.cells[c];
      for (const BoardRow* r : cell.attempts) {
        const bool counted = std::ranges::find(cell.graded, r) != cell.graded.end();
        const auto reasons = stale_reasons(*r, field.yardsticks[c]);
        rows.push_back(attempt_row(*r, field.is_partial(c), counted,
                                   fmt::format("{}", fmt::join(reasons, ", "))));
        add_code(rows.back(), code_of(*r));
      }
    }
  }
  return rows;
}

std::vector<FlatRow> case_rows(const CellResult& cell) {
  std::vector<FlatRow> rows;
  for (const CaseResult& r : cell.cases) {
    FlatRow row = key_columns(cell.key);
    row["case"] = r.name;
    row["group"] = to_string(r.group);
    row["verdict"] = code(r.verdict);
    row["seed"] = std::to_string(r.seed);
    row["shape"] = r.shape;
    row["error"] = number_or_null(r.error);
    row["bound"] = number_or_null(r.bound);
    row["accuracy"] = number_or_null(r.accuracy);
    row["seconds"] = number_or_text(r.seconds);
    row["detail"] = r.detail;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<FlatRow> timing_rows(const CellResult& cell) {
  std::vector<FlatRow> rows;
  for (const CaseResult& r : cell.cases) {
    for (std::size_t i = 0; i < r.samples.size(); ++i) {
      FlatRow row = key_columns(cell.key);
      row["case"] = r.name;
      row["repetition"] = i;
      row["naive_s"] = number_or_null(r.samples[i].naive);
      row["par_s"] = number_or_null(r.samples[i].par);
      row["submission_s"] = number_or_null(r.samples[i].submission);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string csv_header(const FlatRow& row) {
  std::string text;
  for (const auto& [name, value] : row.items()) text += (text.empty() ? "" : ",") + name;
  return text + "\n";
}

std::string csv_line(const FlatRow& row) {
  std::string text;
  bool first_column = true;
  for (const auto& [name, value] : row.items()) {
    if (!first_column) text += ',';
    first_column = false;
    text += csv_field(value);
  }
  return text + "\n";
}

std::string json_line(const FlatRow& row) {
  return row.dump(-1, ' ', false, FlatRow::error_handler_t::replace) + "\n";
}

}  // namespace assay::report
