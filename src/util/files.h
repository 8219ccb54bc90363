// Small file operations whose errors name the path and the cause.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "assay/error.h"

namespace assay {

std::string read_file(const std::filesystem::path&);

// Writes to a temporary name in the same folder, flushes to disk and renames, so that a reader (or
// a kill at any moment) finds the old contents or the new, never a part. On disk when it returns.
// The temporary name (<path>.<something>.tmp) is no other writer's, be it a thread or a process.
void write_file_atomically(const std::filesystem::path&, std::string_view contents);

// The same where only one process writes the file at a time: the temporary name is always the same,
// so what a kill leaves there is overwritten by the next write.
void write_file_alone(const std::filesystem::path&, std::string_view contents);

// Creates the folder and its parents, on disk when it returns.
void create_folder(const std::filesystem::path&);

// Flushes a folder's list of names to disk: without it a new file may be gone after a power cut.
void flush_folder(const std::filesystem::path&);

// Writes all bytes, however many calls that takes. `path` is for the error.
void write_all(int fd, std::string_view contents, const std::filesystem::path& path);

// What cannot be done, in words that follow "cannot": "read". That is looked at when it is
// compiled.
class Action {
 public:
  consteval Action(const char* words) : words_(words) {
    if (words_.empty() || words_.starts_with("cannot")) throw "begin with the verb";
  }
  std::string_view words() const { return words_; }

 private:
  std::string_view words_;
};

// Throws Error, "cannot read results/x: No such file or directory", the cause from errno; a
// TransientFault (util/transient_fault.h) where that can pass by itself.
[[noreturn]] void fail_with_errno(Action, const std::filesystem::path&);

// Creates the folder (and its parents) and proves that files can be written in it.
void require_writable_directory(const std::filesystem::path&);

// Sets the time of last modification to now; does nothing where the file cannot be touched.
void touch(const std::filesystem::path&) noexcept;

}  // namespace assay
