// Opinions in a results folder: opinions/<judge>/<model>/<challenge>/[<attempt>.]<device>.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "judge/opinion.h"

namespace assay::judge {

std::filesystem::path opinions_folder(const std::filesystem::path& results);
std::filesystem::path opinion_path(const std::filesystem::path& results, const std::string& judge,
                                   const CellKey&);

// Nothing if there is no file. Throws Error if it does not hold an opinion, or one of another judge
// or answer than its path says.
std::optional<Opinion> read_opinion(const std::filesystem::path& results, const std::string& judge,
                                    const CellKey&);

// Writes atomically by rename; the file is on disk when the call returns. Creates the folders.
void write_opinion(const std::filesystem::path& results, const Opinion&);

// All opinions in a folder, or those on one answer, sorted by path. Throws Error as read_opinion
// does.
std::vector<Opinion> read_opinions(const std::filesystem::path& results);
std::vector<Opinion> read_opinions(const std::filesystem::path& results, const CellKey&);

}  // namespace assay::judge
