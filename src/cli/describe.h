// Generates the program's documentation from the --help of its commands and options, so that
// nothing has to be kept in sync.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace assay::cli {

// A manual page in groff's man macros. `keys` describes the files of results, as man_keys() does.
std::string man_page(const CLI::App&, const std::string& version, const std::string& keys);

// A bash script that completes commands, options and their known values: choices, and challenges.
std::string bash_completion(const CLI::App&, const std::vector<std::string>& challenges);

}  // namespace assay::cli
