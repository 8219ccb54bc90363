// Results that are awkward to write, and boards of them.
#pragma once

#include <cmath>
#include <limits>

#include "../report/boards.h"

namespace assay::testing {

inline CellResult awkward_cell() {
  CellResult cell = sample_cell(sample_spec(), "model \"x\" <b>");
  cell.seed = std::numeric_limits<std::uint64_t>::max();
  cell.target = "x86-64-v3";
  cell.tests_note = {Note::Kind::tests_not_run, "line\nbreak\ttab \x01 é"};
  cell.faults = {"cannot fork: \"EAGAIN\" \x01 é", "while timed with others: out of memory"};
  cell.code = CodeFacts{.files = 2,
                        .code_lines = 30,
                        .comment_lines = 4,
                        .blank_lines = 5,
                        .duplicated_lines = 12,
                        .functions = 3,
                        .longest = CodePlace{"A::f", "\"é\".cpp", 7, 20},
                        .deepest = CodePlace{"g", "b.h", 2, 3},
                        .most_complex = CodePlace{"A::f", "b.h", 9, 8},
                        .warnings = CompilerWarnings{2, {"b.h:3:1: warning: \"é\"", "x"}, true}};
  CaseResult& a = case_of(cell, "core_a");
  a.verdict = Verdict::wrong_answer;
  a.error = HUGE_VAL;
  a.accuracy = std::numeric_limits<double>::quiet_NaN();
  a.bound = 0.1 + 0.2;
  a.detail = "dx[0,1]: got nan, expected 1 | \\ \x01 é";
  a.metrics.push_back({"negative", -HUGE_VAL});
  a.seconds = 5e-324;
  CaseResult& t = case_of(cell, "timed_a");
  t.samples[3] = {};
  t.samples[4].submission = 1e-300;
  return cell;
}

inline BoardEntry entry_of(CellResult cell) { return graded_entry(sample_spec(), std::move(cell)); }

inline Scoreboard board_of(const std::vector<CellResult>& cells) {
  Scoreboard board;
  for (const CellResult& c : cells) merge(board, row_of(entry_of(c)));
  return board;
}

}  // namespace assay::testing
