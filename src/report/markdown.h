// The tables of the rankings, as GitHub Markdown. Names and details are escaped; every table ends
// with an empty line. `most` limits the rows, and columns, that grow with the board; a note below
// the table says what is left out.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "assay/results.h"
#include "report/standings.h"

namespace assay::report {

const char* device_title(Device);  // "C++ on the CPU"

// By the average over all whole challenges of the device. Models that left some out are listed
// below, unranked.
std::string overall_table(const Standings&, std::size_t most);
// What the device's speeds are, and what earns full marks; "" if they are measured.
std::string device_note(const Standings&);
// Explains ranks, averages and strengths, for standings by that figure.
std::string rank_note(compare::By);
// By strength, which uses the challenges that each pair of models both attempted, so that all
// models fit in one list. Empty if no two models share a challenge.
std::string strength_table(const Standings&, std::size_t most);
std::string strength_note();
// Rankings over sets of challenges that are exactly those that some model attempted; empty if every
// model attempted all.
std::string subset_tables(const Standings&, std::size_t most);
// Pass rates, fast_p and mean speed-ups.
std::string figures_table(const Standings&, std::size_t most);
std::string grade_matrix(const Standings&);
std::string attempts_table(const Standings&);  // empty if no model made several attempts
// Empty if there are fewer than two models.
std::string head_to_head_table(const Standings&, std::size_t most);
std::string challenge_table(const Standings&, std::size_t column, std::size_t most);

// The models that answered on several devices, one line per device; empty if there are none. The
// standings of all devices must cover the same challenges.
std::string side_by_side_table(const std::map<Device, Standings>& devices);

std::string how_measured(const Scoreboard&, std::size_t most);
// Says that rows of C++ were compiled for different targets, with the models of each; "" if they
// were not. Speeds are relative to par on the same target, but not every answer gains equally from
// a better one.
std::string targets_note(const Scoreboard&);
// Likewise if answers in C++ were timed on different kinds of machines, see kind_of().
std::string machines_note(const Scoreboard&);

}  // namespace assay::report
