// Words and CSS classes that several pages share.
#pragma once

#include <span>
#include <string>

#include "assay/results.h"
#include "site/svg_chart.h"

namespace assay::site {

const char* device_words(Device);  // "C++ on the CPU"
const char* device_note(Device);   // explains its speeds in one sentence

std::string grade_class(const Score&);  // "grade gA"
std::string grade_class(const std::string& letter);
std::string verdict_class(Verdict);          // "v ok", "v bad", "v none"
std::string correctness_text(const Score&);  // "41.2 of 50", "not run"
int dimension_series(const std::string&);    // its colour, the same on all pages

ChartAxis score_axis();                     // 0 to 100
double middle_of(std::span<const double>);  // the median; the values may be infinite; 0 if empty

}  // namespace assay::site
