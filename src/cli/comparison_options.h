// Options shared by the commands that compare.
#pragma once

#include <string>

#include "cli/context.h"
#include "compare/field.h"

namespace assay::cli {

// Declares --by mean|best|first, stored in `by`.
void add_figure_option(CLI::App&, std::string& by);
compare::By figure_named(const std::string&);  // for a value accepted by the option

}  // namespace assay::cli
