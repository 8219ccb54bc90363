// Small file operations whose errors name the path and the cause.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "assay/error.h"

namespace assay {

std::string read_file(const std::filesystem::path&);

// Writes to a temporary name in the same folder, flushes to disk and renames, so that a reader, or
// a kill at any moment, leaves the old contents or the new, never a part. On disk when it returns.
// No other writer, thread or process, uses the same temporary name (<path>.<something>.tmp).
// `mode`: the new file's permissions, before the umask.
void write_file_atomically(const std::filesystem::path&, std::string_view contents,
                           mode_t mode = 0644);

// The same for a file that only one process writes at a time. The temporary name is always the
// same, so the next write overwrites whatever a kill left there.
void write_file_alone(const std::filesystem::path&, std::string_view contents);

// Flushes a finished temporary file in the same folder to disk, and renames it.
void replace_file(const std::filesystem::path&, const std::filesystem::path& temporary);

// Creates the folder and its parents; on disk when it returns.
void create_folder(const std::filesystem::path&);

// Flushes a folder's entries to disk: without that, a new file may be gone after a power cut.
void flush_folder(const std::filesystem::path&);

// Writes all bytes, in as many calls as that takes. `path` is for the error.
void write_all(int fd, std::string_view contents, const std::filesystem::path& path);

// What cannot be done, worded to follow "cannot": "read". Checked at compile time.
class Action {
 public:
  consteval Action(const char* words) : words_(words) {
    if (words_.empty() || words_.starts_with("cannot")) throw "begin with the verb";
  }
  std::string_view words() const { return words_; }

 private:
  std::string_view words_;
};

// Throws Error, "cannot read results/x: No such file or directory", with the cause from errno; a
// TransientFault (util/transient_fault.h) if the cause can pass by itself.
[[noreturn]] void fail_with_errno(Action, const std::filesystem::path&);

// Creates the folder (and its parents) and proves that files can be written in it.
void require_writable_directory(const std::filesystem::path&);

// Sets the modification time to now; does nothing if that is impossible.
void touch(const std::filesystem::path&) noexcept;

}  // namespace assay
