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

// By the average over all whole challenges of the device; who left some out stands below, unranked.
std::string overall_table(const Standings&, std::size_t most);
// What the speeds of the device are, and what earns full marks; "" where they are measured.
std::string device_note(const Standings&);
// What its ranks, averages and strengths mean, for standings by that figure.
std::string rank_note(compare::By);
// By strength over the challenges that each two attempted, so that all models stand in one list.
// Empty when no two met.
std::string strength_table(const Standings&, std::size_t most);
std::string strength_note();
// Rankings over sets of challenges that some model attempted and no more; empty when every model
// attempted all.
std::string subset_tables(const Standings&, std::size_t most);
// Pass rates, fast_p and mean speed-ups.
std::string figures_table(const Standings&, std::size_t most);
std::string grade_matrix(const Standings&);
std::string attempts_table(const Standings&);  // empty when no model made several
// Empty when there are fewer than two models.
std::string head_to_head_table(const Standings&, std::size_t most);
std::string challenge_table(const Standings&, std::size_t column, std::size_t most);

// The models that answered on several devices, a line for each device; empty when there are none.
// The standings of all devices are over the same challenges.
std::string side_by_side_table(const std::map<Device, Standings>& devices);

std::string how_measured(const Scoreboard&, std::size_t most);
// That rows of C++ were compiled for different targets, with the models of each; "" where they were
// not. Speeds are relative to par on the same target, but not every answer gains alike from more.
std::string targets_note(const Scoreboard&);
// Likewise where answers in C++ were timed on machines of different kinds, see kind_of().
std::string machines_note(const Scoreboard&);

}  // namespace assay::report
