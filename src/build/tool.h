// Finds the programs that builds use.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace assay {

// The first executable of this name in PATH that `accepts` approves.
std::optional<std::filesystem::path> find_in_path(
    const std::string& name, bool (*accepts)(const std::filesystem::path&) = nullptr);

}  // namespace assay
