// Quoting for a POSIX shell.
#pragma once

#include <string>

namespace assay {

// Quotes a word so that a POSIX shell takes it literally.
std::string quoted(const std::string& word);

}  // namespace assay
