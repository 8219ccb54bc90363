// What the commands that compare have in common.
#pragma once

#include <filesystem>
#include <string>

#include "cli/context.h"
#include "compare/field.h"

namespace assay::cli {

// --by mean|best|first, into the text.
void add_figure_option(CLI::App&, std::string& by);
compare::By figure_named(const std::string&);  // of a value that the option accepted

// The named folder, else the results of the working folder. Throws Error where a named one holds no
// board: a typing error would look like an empty one.
std::filesystem::path results_folder(const Context&, const std::string& named);

}  // namespace assay::cli
