// The program's own description, from what its commands and options say in --help: nothing to keep
// in step.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace assay::cli {

// In the man macros of groff.
std::string man_page(const CLI::App&, const std::string& version);

// A script for bash that completes commands, options and those of their values that are known:
// choices, and challenges.
std::string bash_completion(const CLI::App&, const std::vector<std::string>& challenges);

}  // namespace assay::cli
