// Options shared by the commands that compare.
#pragma once

#include <filesystem>
#include <string>

#include "cli/context.h"
#include "compare/field.h"

namespace assay::cli {

// Declares --by mean|best|first, stored in `by`.
void add_figure_option(CLI::App&, std::string& by);
compare::By figure_named(const std::string&);  // for a value accepted by the option

// The named folder, else the results of the working folder. Throws Error if a named folder holds no
// board; otherwise a typo would look like an empty board.
std::filesystem::path results_folder(const Context&, const std::string& named);

}  // namespace assay::cli
