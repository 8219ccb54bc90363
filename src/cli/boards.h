// Opens the boards that commands work on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cli/context.h"
#include "store/board_file.h"

namespace assay::cli {

// The board of a results folder, empty if nothing was measured. A board of schema 1 is first
// rewritten, with a message on stderr; if the folder is not writable, it is only read.
Scoreboard open_board(const std::filesystem::path& folder);

// The same for a command that changes the board: throws Error if the folder is not writable.
Scoreboard open_board_to_change(const std::filesystem::path& folder);

// Whether the folder holds a board, finished or still in a journal.
bool has_board(const std::filesystem::path& folder);

// The named folder, else the results of the working folder. Throws Error if a named folder holds no
// board; otherwise a typo would look like an empty board.
std::filesystem::path results_folder(const Context&, const std::string& named);

// One line: the location of the board's site, or the command that makes one. `named` is the folder
// as given with --results, or "".
std::string where_the_site_is(const std::filesystem::path& results, const std::string& named);

// The --gpu on which the board's rows are modelled; the default if that data sheet no longer
// exists.
std::string data_sheet_of(const Scoreboard&);

std::vector<std::string> models_of(const Scoreboard&);  // each once, sorted
// Throws Error for a model that has no row on the board, with the nearest name that has.
void require_on_board(const std::vector<std::string>& models, const Scoreboard&);

}  // namespace assay::cli
