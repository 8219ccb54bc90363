// Reads files from a revision of a git repository.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace assay::cli {

// The full hash of the commit that a revision names in the repository around the folder. Nothing if
// there is no such revision, no repository, or no git.
std::optional<std::string> commit_named(const std::filesystem::path& folder,
                                        const std::string& revision);

// The bytes of a file in that commit; `path` is relative to the folder. Nothing if there is no such
// file.
std::optional<std::string> file_at(const std::filesystem::path& folder, const std::string& commit,
                                   const std::string& path);

}  // namespace assay::cli
