// Results as flat tables for notebooks: one line per row, every row with the same columns.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::report {

// A row's columns in order, with their values: text, numbers, true and false, null if unknown. SI
// units.
using FlatRow = nlohmann::ordered_json;

// Every cell of the field: model, challenge and device, with the figures of its attempts.
std::vector<FlatRow> cell_rows(const compare::Field&);
// The facts of an attempt's code; absent if unknown.
using CodeOf = std::function<std::optional<CodeFacts>(const BoardRow&)>;
// Every attempt on the board at these challenges: score, dimensions, speeds, provenance, code.
std::vector<FlatRow> attempt_rows(const compare::Field&, const CodeOf&);
// From one attempt's evidence: its cases, and the raw timings with a row for each repetition of
// each timed case.
std::vector<FlatRow> case_rows(const CellResult&);
std::vector<FlatRow> timing_rows(const CellResult&);

// In the format of RFC 4180, but with \n line ends. A text that a spreadsheet would take for a
// formula is prefixed with an apostrophe, because it may come from a submission.
std::string csv_header(const FlatRow&);
std::string csv_line(const FlatRow&);
std::string json_line(const FlatRow&);

}  // namespace assay::report
