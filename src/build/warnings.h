// What the compiler warned of, out of what it printed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "assay/code_facts.h"

namespace assay {

// Of g++ and of nvcc, which reads a source twice and warns of the same twice: each counts once.
// `cut`: see CompilerWarnings.
CompilerWarnings warnings_in(std::string_view log, bool cut);

// The log without the warnings of g++, so that errors come first. Those of nvcc's own stay.
std::string without_warnings(std::string_view log);

// As a file of the cache, and back; nothing when it is no such file.
std::string warnings_text(const CompilerWarnings&);
std::optional<CompilerWarnings> warnings_from(std::string_view text);

}  // namespace assay
