// Scores in words and figures, as all reports show them. Plain text, not escaped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "assay/case.h"
#include "assay/results.h"

namespace assay::report {

inline constexpr const char* kNotRun = "not run";

std::string points(double value);                   // "86.2"
std::string points_of(const Dimension&);            // "41.2 of 50" or "not run"
std::string with_interval(double value, Interval);  // "86.2 (84.0 to 88.1)"
std::string total(const Score&);                    // "86.2 (84.0 to 88.1)" or "not run"
std::string grade_and_total(const Score&);          // "A- 86.2" or "not run"
std::string verdict(Verdict);                       // "WA (wrong answer)"
// For tables: "WA"; but "JE (fault of the harness)", since that is not the answer's fault.
std::string short_verdict(Verdict);

// Makes untrusted text safe for a terminal, on one line, cut at `columns` bytes.
std::string one_line(std::string untrusted, std::size_t columns = 400);

// "name" for an answer in C++, "name (sim)" for one on that device. Not escaped.
std::string with_device(const std::string& name, const CellKey&);

// "Llama 3.3 (Meta, 70B, fp8), 2026-11"; "" if nothing is said. Made safe.
std::string model_facts(const ModelInfo&);
// "3 turns, 1200 tokens in, 800 out, 12.5 s, $0.03, finished by stop"; "" if nothing is known. Made
// safe.
std::string attempt_facts(const AttemptRecord&);
std::string dollars(double amount);  // "$0.0312"

// Null if the spec gives the dimension no weight.
const Dimension* dimension(const Score&, const std::string& name);
std::string dimension_points(const Score&, const std::string& name);  // "41.2 of 50", "not run"

// The geometric mean over the timed cases of the submission's speed relative to par's.
std::optional<ShapeSpeed> overall_speed(const Score&);
// "0.85x (0.82 to 0.88)", "0.31x modelled", without a par kernel "0.02x of the floor", "failed",
// "not run", or "not graded" if the spec gives speed no weight.
std::string speed_against_par(const Score&);
std::string duration(double seconds);  // "12.3 us", "4.56 ms", "1.234 s"

// Indents every line of the text by `columns`; ends with one newline.
std::string indented(const std::string& text, std::size_t columns);

}  // namespace assay::report
