// The fields of each record of results, in the order of its file; see record_json.h.
// challenges/scoreboard.schema.json describes the same records, and the tests compare the two.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "assay/results.h"
#include "records/evidence.h"
#include "records/record_json.h"

namespace assay {

// Lets a table accept both a const record, to write, and a mutable one, to read.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// --- checks --------------------------------------------------------------------

inline std::string not_empty(const std::string& text) {
  return text.empty() ? "may not be empty" : "";
}

inline std::string is_finite(double x) {
  return std::isfinite(x) ? "" : "expected a finite number";
}

inline std::string is_positive(double x) { return x > 0 ? "" : "expected a positive number"; }

inline std::string are_positive(const Interval& interval) {
  return interval.low > 0 && interval.high > 0 ? "" : "expected positive numbers";
}

inline std::string is_letter(const std::string& letter) {
  constexpr std::array<std::string_view, 10> kLetters{"A",  "A-", "B+", "B", "B-",
                                                      "C+", "C",  "D",  "F", ""};
  const bool known = std::ranges::find(kLetters, letter) != kLetters.end();
  return known ? "" : "unknown \"" + letter + "\"";
}

// --- parts of several records ----------------------------------------------------

void key_fields(auto& f, Is<CellKey> auto& key) {
  f.required("model", key.model, not_empty);
  f.required("challenge", key.challenge, not_empty);
  f.required("attempt", key.attempt);
  f.required("device", key.device);
}

// The program that measured, for records that name it.
void assay_field(auto& f, auto& record) {
  f.object("assay", [&](auto& assay) {
    assay.required("version", record.assay_version);
    assay.required("commit", record.assay_commit);
  });
}

void fields(auto& f, Is<Note> auto& note) {
  f.required("kind", note.kind);
  f.required("text", note.text);
}

// --- what was measured -------------------------------------------------------------

void fields(auto& f, Is<BuildRecord> auto& build) {
  f.required("verdict", build.verdict);
  f.required("source_hash", build.source_hash);
  f.required("command", build.command);
  f.optional("log", build.log);
  f.required("seconds", build.seconds);
  f.required("cached", build.cached);
}

void fields(auto& f, Is<Metric> auto& metric) {
  f.required("name", metric.name);
  f.required("value", metric.value);
}

void fields(auto& f, Is<CaseResult> auto& result) {
  f.required("name", result.name);
  f.required("group", result.group);
  f.required("verdict", result.verdict);
  f.required("seed", result.seed);
  f.optional("shape", result.shape);
  f.optional("error", result.error);
  f.optional("bound", result.bound);
  f.optional("accuracy", result.accuracy);
  f.optional("detail", result.detail);
  f.required("seconds", result.seconds);
  f.optional("metrics", result.metrics);
  f.optional("samples", result.samples);
}

void fields(auto& f, Is<Mutant> auto& mutant) {
  f.required("subject", mutant.subject);
  f.required("correct", mutant.correct);
  f.required("verdict", mutant.verdict);
  f.optional("reason", mutant.reason);
  f.required("seconds", mutant.seconds);
}

void fields(auto& f, Is<CodePlace> auto& place) {
  f.required("name", place.name);
  f.required("file", place.file);
  f.required("line", place.line);
  f.required("value", place.value);
}

void fields(auto& f, Is<CompilerWarnings> auto& warnings) {
  f.required("count", warnings.count);
  f.required("first", warnings.first);
  f.required("cut", warnings.cut);
}

void fields(auto& f, Is<CodeFacts> auto& code) {
  f.required("files", code.files);
  f.required("code_lines", code.code_lines);
  f.required("comment_lines", code.comment_lines);
  f.required("blank_lines", code.blank_lines);
  f.required("duplicated_lines", code.duplicated_lines);
  f.required("functions", code.functions);
  f.optional("longest", code.longest);
  f.optional("deepest", code.deepest);
  f.optional("most_complex", code.most_complex);
  f.optional("warnings", code.warnings);
}

void fields(auto& f, Is<CellResult> auto& cell) {
  key_fields(f, cell.key);
  f.required("spec_hash", cell.spec_hash);
  f.added("revision", cell.revision, 0);
  f.required("isolation", cell.isolation);
  f.required("seed", cell.seed);
  f.required("finished_at", cell.finished_at);
  f.required("build", cell.build);
  f.required("cases", cell.cases);
  f.required("mutants", cell.mutants);
  f.optional("target", cell.target, kNativeTarget);
  f.optional("tests_note", cell.tests_note);
  f.optional("faults", cell.faults);
  f.optional("code", cell.code);
}

// --- the machine ---------------------------------------------------------------------

// Without the state in which the GPU was found, which says nothing about the cells: their metrics
// have their own.
void fields(auto& f, Is<GpuMachine> auto& gpu) {
  f.required("name", gpu.name, not_empty);
  f.required("driver", gpu.driver);
  f.required("compute_capability", gpu.compute_capability);
  f.required("multiprocessors", gpu.multiprocessors);
  f.required("memory_bytes", gpu.memory_bytes);
  f.required("ecc", gpu.ecc);
  f.required("copy_bytes_per_s", gpu.copy_bytes_per_s);
  f.required("bf16_flops_per_s", gpu.bf16_flops_per_s);
  f.required("isolation", gpu.isolation);
  f.optional("pci_bus_id", gpu.pci_bus_id);
  f.optional("driver_release", gpu.driver_release);
  f.optional("max_sm_mhz", gpu.max_sm_mhz);
  f.optional("mig", gpu.mig);
}

void fields(auto& f, Is<Machine> auto& machine) {
  f.required("cpu", machine.cpu);
  f.required("kernel", machine.kernel);
  f.required("os", machine.os);
  f.required("compiler", machine.compiler);
  f.required("cores", machine.cores);
  f.required("memory_bytes", machine.memory_bytes);
  f.required("l3_bytes", machine.l3_bytes);
  f.required("copy_bytes_per_s", machine.copy_bytes_per_s);
  f.required("fma_flops_per_s", machine.fma_flops_per_s);
  f.optional("gpu", machine.gpu);
}

// --- the score -----------------------------------------------------------------------

void fields(auto& f, Is<Dimension> auto& dimension) {
  f.required("name", dimension.name);
  f.required("points", dimension.points);
  f.required("max", dimension.max);
  f.required("interval", dimension.interval);
  f.required("why", dimension.why);
}

void fields(auto& f, Is<ShapeSpeed> auto& speed) {
  f.required("case", speed.case_name);
  f.required("ratio_to_par", speed.ratio_to_par, is_positive);
  f.required("ratio_interval", speed.ratio_interval, are_positive);
  f.required("ratio_to_naive", speed.ratio_to_naive, is_positive);
  f.required("points", speed.points);
  f.optional("ratio_to_floor", speed.ratio_to_floor);
}

void fields(auto& f, Is<Score> auto& score) {
  f.required("verdict", score.verdict);
  f.required("total", score.total);
  f.required("interval", score.interval);
  f.required("letter", score.letter, is_letter);
  f.required("capped", score.capped);
  f.required("dimensions", score.dimensions);
  f.required("speeds", score.speeds);
  f.required("flags", score.flags);
  f.optional("modelled_on", score.modelled_on);
  f.optional("gpu_sheet", score.gpu_sheet);
}

// --- documents -------------------------------------------------------------------------

void fields(auto& f, Is<EvidenceRef> auto& evidence) {
  f.required("path", evidence.path);
  f.required("sha256", evidence.sha256);
}

// A graded cell, in its evidence and in boards of schema 1.
void fields(auto& f, Is<BoardEntry> auto& entry) {
  assay_field(f, entry);
  f.required("machine", entry.machine);
  f.optional("model", entry.about);
  f.optional("attempt", entry.attempt);
  f.required("score", entry.score);
  f.required("cell", entry.cell);
}

void fields(auto& f, Is<Evidence> auto& evidence) {
  int schema = Scoreboard::kSchema;
  std::string kind = "cell";
  f.required("schema", schema);
  f.required("kind", kind);
  f.required("run_id", evidence.run_id);
  fields(f, evidence.entry);
}

// The cell of a board row.
void board_cell_fields(auto& f, Is<BoardRow> auto& row) {
  key_fields(f, row.key);
  f.required("spec_hash", row.spec_hash);
  f.required("source_hash", row.source_hash);
  f.added("revision", row.revision, 0);
  f.required("isolation", row.isolation);
  f.required("seed", row.seed);
  f.required("finished_at", row.finished_at);
  f.required("seconds", row.seconds, is_finite);
  f.optional("target", row.target, kNativeTarget);
}

// A board row. `machine` is the machine itself, or the board's key for it.
void row_fields(auto& f, Is<BoardRow> auto& row, auto& machine) {
  f.object("cell", [&](auto& cell) { board_cell_fields(cell, row); });
  f.required("score", row.score);
  f.required("reason", row.reason);
  f.optional("failed", row.failed);
  assay_field(f, row);
  f.required("machine", machine);
  f.required("evidence", row.evidence);
  f.optional("attempt", row.attempt);
}

// A row on its own line, including what a board stores once for many rows.
void line_fields(auto& f, Is<BoardRow> auto& row) {
  int schema = Scoreboard::kSchema;
  f.required("schema", schema);
  row_fields(f, row, row.machine);
  f.optional("model", row.about);
}

}  // namespace assay
