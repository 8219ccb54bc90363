// Published grades in a folder of results.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "compare/published.h"

namespace assay::cli {

// published/ in the results folder.
std::filesystem::path published_folder(const std::filesystem::path& results);

// Name -> grades, for every published/NAME.json; empty if there is no such folder. Throws Error
// naming the file.
std::map<std::string, compare::Published> read_published(const std::filesystem::path& results);

}  // namespace assay::cli
