// Quoting for a POSIX shell, and what its commands print.
#pragma once

#include <string>

namespace assay {

// Quotes a word so that a POSIX shell takes it literally.
std::string quoted(const std::string& word);

// The first line that a command of the shell prints, "" if it prints nothing. Throws Error if no
// shell can be started.
std::string first_line_of(const std::string& command);

}  // namespace assay
