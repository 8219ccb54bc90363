// Results as flat tables for notebooks: one row a line, every row with the same columns.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::report {

// The columns of a row, in order, with their values: text, numbers, true and false, null where a
// thing is not known. SI units.
using FlatRow = nlohmann::ordered_json;

// Every cell of the field: model, challenge and device with what its attempts come to.
std::vector<FlatRow> cell_rows(const compare::Field&);
// The facts of an attempt's code, nothing where they are not known.
using CodeOf = std::function<std::optional<CodeFacts>(const BoardRow&)>;
// Every attempt of the board for these challenges: a score, dimensions, speeds, provenance, code.
std::vector<FlatRow> attempt_rows(const compare::Field&, const CodeOf&);
// Of one attempt's evidence: its cases, and the raw timings, a row for each repetition of each
// timed case.
std::vector<FlatRow> case_rows(const CellResult&);
std::vector<FlatRow> timing_rows(const CellResult&);

// As RFC 4180 has it, with \n at the end. A text that a spreadsheet would take for a formula gets
// an apostrophe before it, for it may come from a submission.
std::string csv_header(const FlatRow&);
std::string csv_line(const FlatRow&);
std::string json_line(const FlatRow&);

}  // namespace assay::report
