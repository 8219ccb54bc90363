// Names of C++ as their authors wrote them.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// "f(int)" for "_Z1fi"; the name itself if it is not mangled.
std::string demangled(const std::string& name);

// The text with all its mangled names demangled.
std::string demangled_within(std::string_view text);

}  // namespace assay
