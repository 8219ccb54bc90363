// A board with everything that a report has to show.
#pragma once

#include <algorithm>

#include "../grade/samples.h"
#include "grade/grade.h"
#include "records/scoreboard.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"

namespace assay::testing {

inline std::vector<ChallengeSpec> two_specs() {
  ChallengeSpec first = sample_spec();
  ChallengeSpec second = sample_spec("kv_cache");
  second.title = "Paged | cache";
  second.difficulty = "hard";
  return {first, second};
}

inline BoardEntry graded_entry(const ChallengeSpec& spec, CellResult cell) {
  BoardEntry e;
  e.score = grade(spec, cell);
  e.cell = std::move(cell);
  e.assay_version = "0.1.0";
  e.assay_commit = "0123456789abcdef";
  e.machine = sample_machine();
  return e;
}

inline BoardRow row_of(const BoardEntry& e) {
  return store::row_of({"a-run", e}, store::evidence_path(e.cell.key));
}

inline BoardRow graded_row(const ChallengeSpec& spec, CellResult cell) {
  return row_of(graded_entry(spec, std::move(cell)));
}

// A wrong core and a wrong trap case, half of par's speed, one capability missing.
inline CellResult flawed_cell(const ChallengeSpec& spec) {
  CellResult cell = sample_cell(spec, "flawed <b>*model*</b>");
  CaseResult& core = case_of(cell, "core_b");
  core.verdict = Verdict::wrong_answer;
  core.detail = "dx[3,17]: got nan, expected 0.25 (non-finite values differ)";
  CaseResult& trap = case_of(cell, "trap_a");
  trap.verdict = Verdict::wrong_answer;
  trap.detail = "dx[0,1]: got 1.5, expected 1 | <script>";
  trap.error = 0.5;
  trap.bound = 4e-7;
  case_of(cell, "strided").verdict = Verdict::unsupported;
  mutant_of(cell, "wrong_b").verdict = TestVerdict::accepted;
  case_of(cell, "timed_a").samples = sample_times(2);
  case_of(cell, "timed_b").samples = sample_times(2);
  return cell;
}

inline CellResult unbuilt_cell(const ChallengeSpec& spec) {
  CellResult cell = sample_cell(spec, "unbuilt");
  cell.cases.clear();
  cell.mutants.clear();
  cell.build.verdict = Verdict::build_error;
  cell.build.log =
      "submission.cpp: In function:\nsubmission.cpp:3:5: error: expected ';'\n    3 | int\n";
  return cell;
}

inline CellResult untimed_cell(const ChallengeSpec& spec) {
  CellResult cell = sample_cell(spec, "untimed");
  for (const char* name : {"timed_a", "timed_b"}) {
    case_of(cell, name).verdict = Verdict::skipped;
    case_of(cell, name).detail = "timing was switched off";
    case_of(cell, name).samples.clear();
  }
  return cell;
}

inline CellResult quick_cell(const ChallengeSpec& spec, const std::string& model) {
  CellResult cell = sample_cell(spec, model);
  for (CaseResult& r : cell.cases) {
    if (r.name != "core_a" && r.name != "trap_a" && r.name != "timed_a")
      r.verdict = Verdict::skipped;
  }
  return cell;
}

// In the order of a board.
inline std::vector<BoardEntry> full_entries() {
  const auto specs = two_specs();
  std::vector<BoardEntry> entries;
  const auto add = [&](std::size_t spec, CellResult cell, const std::string& attempt = "") {
    cell.key.attempt = attempt;
    entries.push_back(graded_entry(specs[spec], std::move(cell)));
  };
  add(0, sample_cell(specs[0], "textbook"));
  add(1, sample_cell(specs[1], "textbook"));
  add(0, sample_cell(specs[0], "tuned"));
  add(0, flawed_cell(specs[0]));
  add(0, unbuilt_cell(specs[0]));
  add(1, untimed_cell(specs[1]));
  for (const char* attempt : {"1", "2", "10"}) {
    CellResult cell = sample_cell(specs[1], "tuned");
    if (attempt[0] == '2') {
      case_of(cell, "edge_a").verdict = Verdict::time_limit;
    } else {
      case_of(cell, "trap_a").verdict = Verdict::wrong_answer;
    }
    cell.finished_at = "2026-11-22T04:00:00Z";
    cell.seed = 43;
    add(1, cell, attempt);
  }
  CellResult quick = quick_cell(specs[1], "quickly");
  quick.spec_hash = "another";
  add(1, quick);
  std::ranges::sort(entries, {}, [](const BoardEntry& e) { return e.cell.key; });
  return entries;
}

inline Scoreboard full_board() {
  Scoreboard board;
  for (const BoardEntry& e : full_entries()) merge(board, row_of(e));
  return board;
}

}  // namespace assay::testing
