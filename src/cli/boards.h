// The boards that commands start from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/results.h"
#include "store/board_file.h"

namespace assay::cli {

// The board of a results folder, empty when nothing was measured. One of schema 1 is rewritten
// first, and stderr told; where the folder cannot be written it is only read.
Scoreboard open_board(const std::filesystem::path& folder);

// The same for a command that will change it: throws Error where it cannot be written.
Scoreboard open_board_to_change(const std::filesystem::path& folder);

// Whether the folder holds a board, finished or still in a journal.
bool has_board(const std::filesystem::path& folder);

// Where the site of a board lies, or the command that makes one; a line. `named` is the folder as
// the user named it with --results, or "".
std::string where_the_site_is(const std::filesystem::path& results, const std::string& named);

std::vector<std::string> models_of(const Scoreboard&);  // each once, sorted

}  // namespace assay::cli
