// Extracts compiler warnings from the compiler's output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "assay/code_facts.h"

namespace assay {

// Warnings of g++ and nvcc. nvcc reads a source twice and repeats its warnings; each counts once.
// `cut`: see CompilerWarnings.
CompilerWarnings warnings_in(std::string_view log, bool cut);

// The log without such warnings, so that errors come first.
std::string without_warnings(std::string_view log);

// To the text of a cache file and back; nothing if the text is malformed.
std::string warnings_text(const CompilerWarnings&);
std::optional<CompilerWarnings> warnings_from(std::string_view text);

}  // namespace assay
