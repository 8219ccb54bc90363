// Words for a POSIX shell.
#pragma once

#include <string>

namespace assay {

// A word as a POSIX shell takes it.
std::string quoted(const std::string& word);

}  // namespace assay
