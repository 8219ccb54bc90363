// Reads files in folders that somebody else filled.
#pragma once

#include <cstddef>
#include <string>

namespace assay {

struct PlainFile {
  std::string contents;
  std::string objection;  // why it was not read: "is a symbolic link"; "" if it was
};

// Reads a regular file in an open folder. Does not follow links, wait for pipes or read more than
// `limit` bytes. Throws Error only for what the file cannot help: see is_fault_of_machine().
PlainFile read_plain_file(int folder, const std::string& name, std::size_t limit);

}  // namespace assay
