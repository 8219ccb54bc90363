// Opinions in a folder of results: opinions/<judge>/<model>/<challenge>/[<attempt>.]<device>.json.
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

// Nothing where there is no file. Throws Error when it holds no opinion, or one of another judge or
// answer than its place says.
std::optional<Opinion> read_opinion(const std::filesystem::path& results, const std::string& judge,
                                    const CellKey&);

// By rename, on disk when it returns. Creates the folders.
void write_opinion(const std::filesystem::path& results, const Opinion&);

// All of a folder, or those of one answer, sorted by path. Throws Error as read_opinion does.
std::vector<Opinion> read_opinions(const std::filesystem::path& results);
std::vector<Opinion> read_opinions(const std::filesystem::path& results, const CellKey&);

}  // namespace assay::judge
