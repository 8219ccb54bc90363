// Files in folders that somebody else filled.
#pragma once

#include <cstddef>
#include <string>

namespace assay {

struct PlainFile {
  std::string contents;
  std::string objection;  // why it was not read: "is a symbolic link"; "" when it was
};

// Reads a regular file of an open folder without following links, waiting for pipes or reading more
// than `limit` bytes. Never throws.
PlainFile read_plain_file(int folder, const std::string& name, std::size_t limit);

}  // namespace assay
