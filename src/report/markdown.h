// The tables of the rankings, as GitHub Markdown. Names and details are escaped; every table ends
// with an empty line. `most` limits the rows of a table that would grow with the board, and those
// columns that grow with it; what is left out is said below it.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "assay/results.h"
#include "report/standings.h"

namespace assay::report {

const char* device_title(Device);  // "C++ on the CPU"

std::string overall_table(const Standings&, std::size_t most);
std::string rank_note();  // what its ranks and averages mean
std::string grade_matrix(const Standings&);
std::string attempts_table(const Standings&);  // empty when no model made several
// Empty when there are fewer than two models.
std::string head_to_head_table(const Standings&, std::size_t most);
std::string challenge_table(const Standings&, std::size_t column, std::size_t most);

// The models that answered on several devices, a line for each device; empty when there are none.
// The standings of all devices are over the same challenges.
std::string side_by_side_table(const std::map<Device, Standings>& devices);

std::string how_measured(const Scoreboard&, std::size_t most);

}  // namespace assay::report
